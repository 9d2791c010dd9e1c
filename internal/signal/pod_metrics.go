package signal

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

const (
	metricsTimeout = 10 * time.Second
	metricsQueue   = "metrics.k8s.io"
	// metricsMaxAge is how old usage may be. metrics-server measures every 15 seconds, and a node that stopped reporting keeps
	// its last numbers for a while.
	metricsMaxAge = 2 * time.Minute
)

// PodUsage is what the containers of one pod used, as measured at Time: CPU in cores, memory in bytes.
type PodUsage struct {
	Time       time.Time
	Containers map[string]ContainerUsage
}

// ContainerUsage is what one container used: CPU in cores, memory in bytes.
type ContainerUsage struct {
	CPU    float64
	Memory float64
}

// PodUsageReader reads the usage of the named pods of a namespace, as of now or a few seconds before. A pod without usage is absent from the answer; an error
// means that nothing is known. Source: the metrics.k8s.io API, which a metrics-server serves.
type PodUsageReader interface {
	ReadPodUsage(ctx context.Context, namespace string, names []string, now time.Time) (map[string]PodUsage, error)
}

// usedAndMeant is what one pod used and what it was meant to use, in the same unit.
type usedAndMeant struct {
	used, meant float64
}

// meter is what CPU and memory measure differently.
type meter struct {
	resource string
	// used picks the resource out of a container's usage, meant what the container was given. Zero: it was given nothing.
	used  func(ContainerUsage) float64
	meant func(target.Container) float64
	// needed is what a container lacks when meant is zero.
	needed string
}

// measurePods reads the usage of every ready pod. A pod or container that is missing from the answer makes all of it unknown: the
// value of a part can be on the other side of the threshold.
func measurePods(ctx context.Context, request Request, reader PodUsageReader, container *string, meter meter) ([]usedAndMeant, *Reading) {
	var names []string
	for _, pod := range request.Target.Pods {
		if pod.Ready {
			names = append(names, pod.Name)
		}
	}
	if len(names) == 0 {
		problem := unknown(request, aiopsv1.ReasonNoMetrics, "%s has no ready pod to measure", request.Target.Reference)
		return nil, &problem
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	usage, err := reader.ReadPodUsage(ctx, request.Target.Reference.Namespace, names, request.Now)
	if err != nil {
		problem := metricsProblem(ctx, request, err)
		return nil, &problem
	}
	measured := make([]usedAndMeant, 0, len(names))
	for _, pod := range request.Target.Pods {
		if !pod.Ready {
			continue
		}
		sum, problem := measurePod(request, pod, usage[pod.Name], container, meter)
		if problem != nil {
			return nil, problem
		}
		measured = append(measured, sum)
	}
	return measured, nil
}

func measurePod(request Request, pod target.Pod, usage PodUsage, name *string, meter meter) (usedAndMeant, *Reading) {
	fail := func(reason, format string, arguments ...any) (usedAndMeant, *Reading) {
		problem := unknown(request, reason, format, arguments...)
		return usedAndMeant{}, &problem
	}
	if usage.Containers == nil || usage.Time.Before(pod.CreationTime) { // or of an earlier pod of the same name
		return fail(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of pod %s yet", pod.Name)
	}
	if request.Now.Sub(usage.Time) > metricsMaxAge {
		return fail(aiopsv1.ReasonStale, "The usage of pod %s at metrics.k8s.io is older than %s", pod.Name, metricsMaxAge)
	}
	sum, measured := usedAndMeant{}, 0
	for _, container := range pod.Containers {
		if !applies(name, container.Name) || (container.Init && !container.Running) {
			continue
		}
		used, found := usage.Containers[container.Name]
		if !found {
			return fail(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of container %s of pod %s", container.Name, pod.Name)
		}
		meant := meter.meant(container)
		if meant <= 0 {
			return fail(aiopsv1.ReasonNoRequests, "Container %s of pod %s has no %s: %s utilization is a percentage of it",
				container.Name, pod.Name, meter.needed, meter.resource)
		}
		sum.used += meter.used(used)
		sum.meant += meant
		measured++
	}
	if measured == 0 {
		return fail(aiopsv1.ReasonNoMetrics, "Pod %s has no running container that the signal names", pod.Name)
	}
	return sum, nil
}

// metricsProblem sorts errors of the API. Their texts stay here: an aggregated API is somebody else's server.
func metricsProblem(ctx context.Context, request Request, err error) Reading {
	switch {
	case ctx.Err() != nil || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		return unknown(request, aiopsv1.ReasonTimeout, "metrics.k8s.io did not answer in %s", metricsTimeout)
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return unknown(request, aiopsv1.ReasonNoMetrics, "This cluster does not serve metrics.k8s.io: install metrics-server")
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return unknown(request, aiopsv1.ReasonUnauthorized, "The operator may not read pods at metrics.k8s.io")
	case apierrors.IsServiceUnavailable(err):
		return unknown(request, aiopsv1.ReasonUnreachable, "metrics.k8s.io is not available: look at the metrics-server")
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return unknown(request, aiopsv1.ReasonServerError, "metrics.k8s.io answered with an error (%d)", status.Status().Code)
	}
	return unknown(request, aiopsv1.ReasonUnreachable, "metrics.k8s.io could not be read")
}
