package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Versions of the programs. They must agree with the go.mod files of the program modules, which decide what is built.
const (
	kubernetesVersion = "1.37.2"
	kwokVersion       = "0.8.0"
	prometheusVersion = "3.16.0"
)

// Names of the programs.
const (
	etcdProgram              = "etcd"
	apiServerProgram         = "kube-apiserver"
	controllerManagerProgram = "kube-controller-manager"
	schedulerProgram         = "kube-scheduler"
	kwokProgram              = "kwok"
	metricsServerProgram     = "metrics-server"
	kubectlProgram           = "kubectl"
	prometheusProgram        = "prometheus"
)

// program says how one executable is built and which ready-made ones may replace it.
type program struct {
	name string
	// module is the folder of the module below test/cluster.
	module string
	// packagePath is what go build is given inside the module.
	packagePath string
	// linkVariables are set with -X.
	linkVariables []string
	tags          string
	// usualTime is what a first build took on two free cores, for the progress line.
	usualTime string
	// versionArgument makes the program print its version; empty means that no ready-made program is accepted.
	versionArgument string
	// fits judges a printed version.
	fits func(major, minor int) bool
}

// programs lists everything that can be built, in the order that shares compiled packages best.
func programs() []program {
	kubernetes := kubernetesLinkVariables()
	return []program{
		{
			name: etcdProgram, module: "programs", packagePath: "go.etcd.io/etcd/server/v3", usualTime: "30 s",
			versionArgument: "--version", fits: func(major, minor int) bool { return major == 3 && minor >= 6 },
		},
		kubernetesProgram(apiServerProgram, "4 min", kubernetes),
		kubernetesProgram(controllerManagerProgram, "70 s", kubernetes),
		kubernetesProgram(schedulerProgram, "10 s", kubernetes),
		{
			name: kwokProgram, module: "programs", packagePath: "sigs.k8s.io/kwok/cmd/kwok", usualTime: "10 s",
			linkVariables: []string{"sigs.k8s.io/kwok/pkg/consts.Version=v" + kwokVersion},
		},
		{name: metricsServerProgram, module: "programs", packagePath: "./metrics-server", usualTime: "10 s"},
		{
			name: kubectlProgram, module: "programs", packagePath: "k8s.io/kubernetes/cmd/kubectl", usualTime: "15 s",
			linkVariables: kubernetes, versionArgument: "version --client",
			fits: func(major, minor int) bool { return major == 1 && minor >= 36 && minor <= 38 },
		},
		{
			name: prometheusProgram, module: "prometheus-program", packagePath: "github.com/prometheus/prometheus/cmd/prometheus",
			usualTime: "70 s", tags: "remove_all_sd",
			linkVariables:   []string{"github.com/prometheus/common/version.Version=" + prometheusVersion},
			versionArgument: "--version", fits: func(major, _ int) bool { return major == 3 },
		},
	}
}

// kubernetesProgram describes one of the control plane's own programs. A ready-made one must have the same minor version,
// because the others that talk to it are built for that version.
func kubernetesProgram(name, usualTime string, linkVariables []string) program {
	return program{
		name: name, module: "programs", packagePath: "k8s.io/kubernetes/cmd/" + name, usualTime: usualTime,
		linkVariables: linkVariables, versionArgument: "--version",
		fits: func(major, minor int) bool { return major == 1 && minor == 37 },
	}
}

func kubernetesLinkVariables() []string {
	minor := strings.Split(kubernetesVersion, ".")[1]
	var variables []string
	for _, versionPackage := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		variables = append(variables,
			versionPackage+".gitVersion=v"+kubernetesVersion,
			versionPackage+".gitMajor=1",
			versionPackage+".gitMinor="+minor,
			versionPackage+".gitTreeState=clean",
		)
	}
	return variables
}

// ProgramNames lists the programs [Build] knows, in build order.
func ProgramNames() []string {
	var names []string
	for _, candidate := range programs() {
		names = append(names, candidate.name)
	}
	return names
}

func programNamed(name string) (program, error) {
	for _, candidate := range programs() {
		if candidate.name == name {
			return candidate, nil
		}
	}
	return program{}, fmt.Errorf("no program %q: choose from %s", name, strings.Join(ProgramNames(), ", "))
}

// buildArguments are the arguments of go that build the program into output.
func (p program) buildArguments(moduleFolder, output string) []string {
	linkFlags := []string{"-s", "-w"}
	for _, variable := range p.linkVariables {
		linkFlags = append(linkFlags, "-X", variable)
	}
	arguments := []string{"build", "-C", moduleFolder, "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", strings.Join(linkFlags, " ")}
	if p.tags != "" {
		arguments = append(arguments, "-tags", p.tags)
	}
	return append(arguments, "-o", output, p.packagePath)
}

// errNoSources says that the working directory is outside the repository.
var errNoSources = errors.New("the folder test/cluster is not above or below the working directory: run from inside the repository")

// sourceFolder finds test/cluster from any working directory inside the repository, which is where go test and go run
// always are.
func sourceFolder() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for {
		candidate := filepath.Join(folder, "test", "cluster")
		if _, err := os.Stat(filepath.Join(candidate, "programs", "go.mod")); err == nil {
			return candidate, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errNoSources
		}
		folder = parent
	}
}
