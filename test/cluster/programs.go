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
	kwokVersion       = "0.8.0"
	prometheusVersion = "3.16.0"
	opmVersion        = "1.73.0"
	helmVersion       = "4.3.2"
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
	opmProgram               = "opm"
	catalogQueryProgram      = "catalog-query"
	helmProgram              = "helm"
)

// opmTags choose the parts of opm's image library that need no C library: signatures are checked in Go, and no local
// storage of a container engine is read.
const opmTags = "containers_image_openpgp,exclude_graphdriver_btrfs"

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

// programs lists everything that can be built, in the order that shares compiled packages best. The control plane is of the
// given release of Kubernetes; whatever talks to it is of the default one.
func programs(controlPlane release) []program {
	return []program{
		{
			name: etcdProgram, module: "programs", packagePath: "go.etcd.io/etcd/server/v3", usualTime: "30 s",
			versionArgument: "--version", fits: func(major, minor int) bool { return major == 3 && minor >= 6 },
		},
		controlPlane.program(apiServerProgram, "4 min"),
		controlPlane.program(controllerManagerProgram, "70 s"),
		controlPlane.program(schedulerProgram, "10 s"),
		{
			name: kwokProgram, module: "programs", packagePath: "sigs.k8s.io/kwok/cmd/kwok", usualTime: "10 s",
			linkVariables: []string{"sigs.k8s.io/kwok/pkg/consts.Version=v" + kwokVersion},
		},
		{name: metricsServerProgram, module: "programs", packagePath: "./metrics-server", usualTime: "10 s"},
		{
			name: kubectlProgram, module: "programs", packagePath: "k8s.io/kubernetes/cmd/kubectl", usualTime: "15 s",
			linkVariables: defaultRelease().linkVariables(), versionArgument: "version --client",
			fits: func(major, minor int) bool { return major == 1 && minor >= 36 && minor <= 38 },
		},
		{
			name: prometheusProgram, module: "prometheus-program", packagePath: "github.com/prometheus/prometheus/cmd/prometheus",
			usualTime: "70 s", tags: "remove_all_sd",
			linkVariables:   []string{"github.com/prometheus/common/version.Version=" + prometheusVersion},
			versionArgument: "--version", fits: func(major, _ int) bool { return major == 3 },
		},
		{
			name: helmProgram, module: "helm-program", packagePath: "helm.sh/helm/v4/cmd/helm", usualTime: "60 s",
			linkVariables:   []string{"helm.sh/helm/v4/internal/version.version=v" + helmVersion},
			versionArgument: "version --short", fits: func(major, _ int) bool { return major == 4 },
		},
		{
			name: opmProgram, module: "opm-program", packagePath: "github.com/operator-framework/operator-registry/cmd/opm",
			usualTime: "4 min", tags: opmTags,
			linkVariables: []string{"github.com/operator-framework/operator-registry/cmd/opm/version.opmVersion=v" + opmVersion},
			// What opm writes is kept in the tree and compared: another minor version may write it otherwise.
			versionArgument: "version", fits: func(major, minor int) bool { return major == 1 && minor == 73 },
		},
		{name: catalogQueryProgram, module: "opm-program", packagePath: "./catalog-query", usualTime: "10 s", tags: opmTags},
	}
}

// ProgramNames lists the programs [Build] knows, in build order.
func ProgramNames() []string {
	var names []string
	for _, candidate := range programs(defaultRelease()) {
		names = append(names, candidate.name)
	}
	return names
}

func programNamed(name string, controlPlane release) (program, error) {
	for _, candidate := range programs(controlPlane) {
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
