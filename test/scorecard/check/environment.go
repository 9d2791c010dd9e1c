package check

import (
	"context"
	"errors"
	"fmt"
	"os"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/packaging/bundle"
)

// Program is where the scorecard image has the program. With the argument [Idle] it is what the workloads of the checks run: no
// other image is needed, and theirs is on the node already.
const (
	Program = "/scorecard"
	Idle    = "idle"
)

// Environment is what a check sees.
type Environment struct {
	// Client has the rights of the ServiceAccount that the scorecard was given. Required.
	Client client.Client
	// Namespace is where workloads and AITasks are made: the scorecard's own. Required.
	Namespace string
	// CSV is the ClusterServiceVersion of the bundle under test. Required.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Image is what the workloads run, with the command [Program] [Idle]. Required.
	Image string
	// PullSecrets are those of the pod that the check runs in. Default: none.
	PullSecrets []corev1.LocalObjectReference
	// Clock is what log lines, requests and results are dated by. Default: the machine's.
	Clock clock.PassiveClock
	// Owner is the pod that the check runs in: whatever a killed check leaves goes with its pod. Default: nobody.
	Owner *metav1.OwnerReference
}

// NewEnvironment looks around with this access; folder is that of the bundle under test. An empty image means that of the pod which this process runs in.
func NewEnvironment(ctx context.Context, config *rest.Config, namespace, folder, image string) (Environment, error) {
	access, err := NewClient(config)
	if err != nil {
		return Environment{}, err
	}
	csv, err := LoadCSV(folder)
	if err != nil {
		return Environment{}, err
	}
	environment := Environment{Client: access, Namespace: namespace, CSV: csv, Image: image}
	if image != "" {
		return environment, nil
	}
	return environment, environment.readPod(ctx)
}

// NewClient returns access that knows the types of the checks.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, aiopsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	access, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return access, nil
}

// LoadCSV reads the ClusterServiceVersion from the folder of a bundle.
func LoadCSV(folder string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	loaded, err := bundle.Load(folder)
	if err != nil {
		return nil, fmt.Errorf("read the bundle in %s: %w", folder, err)
	}
	if len(loaded.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) != 1 {
		return nil, fmt.Errorf("read the bundle in %s: its ClusterServiceVersion has not exactly one Deployment", folder)
	}
	return loaded.CSV, nil
}

// readPod finds the pod that this process runs in: a container's host name is its pod's name.
func (e *Environment) readPod(ctx context.Context) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find the pod that this runs in: %w", err)
	}
	pod := &corev1.Pod{}
	if err := e.Client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, pod); err != nil {
		return explain(fmt.Errorf("find the pod that this runs in, for its image (outside a pod, give one with --image): %w", err), *e)
	}
	if len(pod.Spec.Containers) == 0 {
		return fmt.Errorf("pod %s has no container", name)
	}
	e.Image, e.PullSecrets = pod.Spec.Containers[0].Image, pod.Spec.ImagePullSecrets
	e.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	return nil
}

// explain says what to do where a check failed for want of the operator or of rights.
func explain(err error, environment Environment) error {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, new(*unmetError)):
		return err // which says what to do already
	case meta.IsNoMatchError(err):
		return unmet("the cluster does not know the kind AITask: %s: %w", installFirst, err)
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		return unmet("the ServiceAccount of the scorecard lacks a right: apply test/scorecard/rbac.yaml and run "+
			"`operator-sdk scorecard --namespace aiops-scorecard --service-account scorecard` (this runs in namespace %s): %w", environment.Namespace, err)
	}
	return err
}

const installFirst = "install the operator first: `operator-sdk run bundle <image of this bundle>`"
