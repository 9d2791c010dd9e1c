package signal

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

const (
	metricsTimeout = 10 * time.Second
	metricsQueue   = "metrics.k8s.io"
	// metricsMaxAge is how old usage may be. metrics-server measures every 15 seconds, and a node that stopped reporting keeps
	// its last numbers for a while.
	metricsMaxAge = 2 * time.Minute
	// Up to this many pods are read one by one; for more, one list of the namespace costs less.
	metricsSingleReads = 8
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

// PodUsageReader reads the usage of the named pods of a namespace. A pod without usage is absent from the answer; an error
// means that nothing is known. Source: the metrics.k8s.io API, which a metrics-server serves.
type PodUsageReader interface {
	ReadPodUsage(ctx context.Context, namespace string, names []string) (map[string]PodUsage, error)
}

// MetricsAPI reads usage from metrics.k8s.io.
type MetricsAPI struct {
	reader client.Reader
}

// NewMetricsAPI returns a reader of usage. reader must not be cached (metrics.k8s.io cannot be watched), and its scheme must
// know k8s.io/metrics/pkg/apis/metrics/v1beta1.
func NewMetricsAPI(reader client.Reader) *MetricsAPI {
	return &MetricsAPI{reader: reader}
}

// ReadPodUsage reads the usage of the named pods.
func (m *MetricsAPI) ReadPodUsage(ctx context.Context, namespace string, names []string) (map[string]PodUsage, error) {
	if len(names) > metricsSingleReads {
		return m.list(ctx, namespace, names)
	}
	usage := make(map[string]PodUsage, len(names))
	for _, name := range names {
		var metrics metricsv1beta1.PodMetrics
		err := m.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &metrics)
		if missing(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the usage of pod %s/%s: %w", namespace, name, err)
		}
		usage[name] = usageOf(metrics)
	}
	return usage, nil
}

func (m *MetricsAPI) list(ctx context.Context, namespace string, names []string) (map[string]PodUsage, error) {
	var all metricsv1beta1.PodMetricsList
	if err := m.reader.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the usage of the pods of namespace %s: %w", namespace, err)
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	usage := make(map[string]PodUsage, len(names))
	for _, metrics := range all.Items {
		if wanted[metrics.Name] {
			usage[metrics.Name] = usageOf(metrics)
		}
	}
	return usage, nil
}

// missing says that the API answered that it has nothing about this pod, as opposed to that there is no such API.
func missing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != "" && len(details.Causes) == 0 // a cause says that the answer was not the API's
}

func usageOf(metrics metricsv1beta1.PodMetrics) PodUsage {
	usage := PodUsage{Time: metrics.Timestamp.Time, Containers: make(map[string]ContainerUsage, len(metrics.Containers))}
	for _, container := range metrics.Containers {
		usage.Containers[container.Name] = ContainerUsage{
			CPU:    container.Usage.Cpu().AsApproximateFloat64(),
			Memory: container.Usage.Memory().AsApproximateFloat64(),
		}
	}
	return usage
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
	usage, err := reader.ReadPodUsage(ctx, request.Target.Reference.Namespace, names)
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
