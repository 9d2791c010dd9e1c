package cluster

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// KubernetesVariable names the environment variable that chooses the minor version of Kubernetes, such as 1.34. It decides
// the version of kube-apiserver, kube-controller-manager and kube-scheduler; etcd, the simulated nodes, metrics-server and
// kubectl stay as they are. [KubernetesVersions] lists what may be chosen. Default: the newest.
const KubernetesVariable = "AIOPS_KUBERNETES"

// release is one version of Kubernetes whose control plane can be built.
type release struct {
	// version is complete, such as 1.37.2. It must agree with the module's go.mod, which decides what is built.
	version string
	// module is the folder of the module below test/cluster.
	module string
}

// releases lists what can be chosen, the default first. The last one is the oldest that the operator is tested with, which is
// what minKubeVersion of the ClusterServiceVersion says.
func releases() []release {
	return []release{
		{version: "1.37.2", module: "programs"},
		{version: "1.36.3", module: "kubernetes-1.36"},
		{version: "1.35.4", module: "kubernetes-1.35"},
		{version: "1.34.4", module: "kubernetes-1.34"},
	}
}

func defaultRelease() release { return releases()[0] }

// KubernetesVersions lists the minor versions that [KubernetesVariable] may name, the default first.
func KubernetesVersions() []string {
	var versions []string
	for _, candidate := range releases() {
		versions = append(versions, candidate.minorVersion())
	}
	return versions
}

// chosenRelease is the release that the environment asks for.
func chosenRelease() (release, error) {
	wanted := os.Getenv(KubernetesVariable)
	if wanted == "" {
		return defaultRelease(), nil
	}
	for _, candidate := range releases() {
		if candidate.minorVersion() == wanted {
			return candidate, nil
		}
	}
	return release{}, fmt.Errorf("no Kubernetes %q (%s): choose from %s", wanted, KubernetesVariable, strings.Join(KubernetesVersions(), ", "))
}

// minorVersion is the version without its patch number: 1.37.
func (r release) minorVersion() string { return r.version[:strings.LastIndex(r.version, ".")] }

// minor is the second number of the version: 37.
func (r release) minor() string { return strings.Split(r.version, ".")[1] }

// program describes one of the control plane's own programs. A ready-made one must have the same minor version, because the
// others that talk to it are built for that version.
func (r release) program(name, usualTime string) program {
	return program{
		name: name, module: r.module, packagePath: "k8s.io/kubernetes/cmd/" + name, usualTime: usualTime,
		linkVariables: r.linkVariables(), versionArgument: "--version",
		fits: func(major, minor int) bool { return major == 1 && strconv.Itoa(minor) == r.minor() },
	}
}

func (r release) linkVariables() []string {
	var variables []string
	for _, versionPackage := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		variables = append(variables,
			versionPackage+".gitVersion=v"+r.version,
			versionPackage+".gitMajor=1",
			versionPackage+".gitMinor="+r.minor(),
			versionPackage+".gitTreeState=clean",
		)
	}
	return variables
}
