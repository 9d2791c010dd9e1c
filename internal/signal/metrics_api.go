package signal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// metricsShared is for how long one list of a namespace answers everybody: much less than metrics-server's 15 seconds between
	// two measurements.
	metricsShared = 5 * time.Second
	// Up to this many pods of a namespace are read one by one in that time; for more, one list of the namespace costs less.
	metricsSingleReads = 8
)

// MetricsAPI reads usage from metrics.k8s.io, and as little of it as many tasks in one namespace need together. Safe for
// concurrent use.
type MetricsAPI struct {
	reader client.Reader

	mutex      sync.Mutex
	namespaces map[string]*namespaceUsage
}

// namespaceUsage is what was asked about one namespace since a moment.
type namespaceUsage struct {
	// users counts who is at it. Guarded by the MetricsAPI's mutex, all else by turn, which holds one token.
	users int
	turn  chan struct{}

	since time.Time
	// singles counts the pods that were read one by one.
	singles int
	// listed is the usage of all pods. Nil: the namespace was not listed.
	listed map[string]PodUsage
}

// NewMetricsAPI returns a reader of usage. reader must not be cached (metrics.k8s.io cannot be watched), and its scheme must
// know k8s.io/metrics/pkg/apis/metrics/v1beta1.
func NewMetricsAPI(reader client.Reader) *MetricsAPI {
	return &MetricsAPI{reader: reader, namespaces: map[string]*namespaceUsage{}}
}

// ReadPodUsage reads the usage of the named pods. The answer may be 5 seconds old: it is shared between all who ask about the namespace.
func (m *MetricsAPI) ReadPodUsage(ctx context.Context, namespace string, names []string, now time.Time) (map[string]PodUsage, error) {
	shared := m.enter(namespace, now)
	defer m.leave(shared)
	select {
	case shared.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the usage of the pods of namespace %s: %w", namespace, ctx.Err())
	}
	if shared.outdated(now) {
		shared.since, shared.singles, shared.listed = now, 0, nil
	}
	if shared.listed == nil && shared.singles+len(names) <= metricsSingleReads {
		shared.singles += len(names)
		<-shared.turn
		return m.readSingly(ctx, namespace, names)
	}
	defer func() { <-shared.turn }()
	if shared.listed == nil {
		listed, err := m.list(ctx, namespace)
		if err != nil {
			return nil, err
		}
		shared.since, shared.listed = now, listed
	}
	return pickUsage(shared.listed, names), nil
}

// outdated says that what was asked at that time is no answer now. A clock that was set back counts like one that went on.
func (n *namespaceUsage) outdated(now time.Time) bool {
	return now.Sub(n.since).Abs() >= metricsShared
}

// enter returns what is shared about a namespace, and drops what is of no use to anybody any more.
func (m *MetricsAPI) enter(namespace string, now time.Time) *namespaceUsage {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for name, other := range m.namespaces {
		if other.users == 0 && other.outdated(now) {
			delete(m.namespaces, name)
		}
	}
	shared := m.namespaces[namespace]
	if shared == nil {
		shared = &namespaceUsage{turn: make(chan struct{}, 1), since: now}
		m.namespaces[namespace] = shared
	}
	shared.users++
	return shared
}

func (m *MetricsAPI) leave(shared *namespaceUsage) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	shared.users--
}

func (m *MetricsAPI) readSingly(ctx context.Context, namespace string, names []string) (map[string]PodUsage, error) {
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

func (m *MetricsAPI) list(ctx context.Context, namespace string) (map[string]PodUsage, error) {
	var all metricsv1beta1.PodMetricsList
	if err := m.reader.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the usage of the pods of namespace %s: %w", namespace, err)
	}
	usage := make(map[string]PodUsage, len(all.Items))
	for i := range all.Items {
		usage[all.Items[i].Name] = usageOf(all.Items[i])
	}
	return usage, nil
}

func pickUsage(from map[string]PodUsage, names []string) map[string]PodUsage {
	usage := make(map[string]PodUsage, len(names))
	for _, name := range names {
		if found, has := from[name]; has {
			usage[name] = found
		}
	}
	return usage
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
