// Package helm runs the program that users of the chart run, and its tests run it against a real control plane. What can be
// judged without a cluster is tested in test/packaging.
package helm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/example/aiops-operator/test/cluster"
)

// Program is helm with a configuration of its own: repositories, plugins and a kubeconfig that the user has do not count.
type Program struct {
	path        string
	environment []string
}

// New finds or builds helm. home is an empty folder for what it keeps; kubeconfig may be empty when no cluster is needed.
func New(ctx context.Context, log io.Writer, home, kubeconfig string) (Program, error) {
	const name = "helm"
	paths, err := cluster.Build(ctx, log, name)
	if err != nil {
		return Program{}, err
	}
	if kubeconfig == "" {
		kubeconfig = os.DevNull
	}
	return Program{path: paths[name], environment: []string{
		"HOME=" + home,
		"PATH=" + os.Getenv("PATH"),
		"HELM_CACHE_HOME=" + filepath.Join(home, "cache"),
		"HELM_CONFIG_HOME=" + filepath.Join(home, "config"),
		"HELM_DATA_HOME=" + filepath.Join(home, "data"),
		"KUBECONFIG=" + kubeconfig,
	}}, nil
}

// Run returns what helm prints. The error holds what it complains about.
func (p Program) Run(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, p.path, arguments...)
	command.Env = p.environment
	var printed, problems bytes.Buffer
	command.Stdout, command.Stderr = &printed, &problems
	if err := command.Run(); err != nil {
		return printed.String(), fmt.Errorf("helm %s: %w\n%s", arguments[0], err, problems.Bytes())
	}
	return printed.String(), nil
}
