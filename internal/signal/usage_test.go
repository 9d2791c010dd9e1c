package signal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// usageReader answers with what it is, or with an error.
type usageReader struct {
	usage map[string]PodUsage
	err   error
}

func (u usageReader) ReadPodUsage(context.Context, string, []string, time.Time) (map[string]PodUsage, error) {
	return u.usage, u.err
}

func used(containers map[string]ContainerUsage) PodUsage {
	return PodUsage{Time: at(-15 * second), Containers: containers}
}

func sized(name string, cpuMilli, memoryRequest, memoryLimit int64) target.Container {
	return target.Container{Name: name, Running: true, CPURequestMilli: cpuMilli, MemoryRequest: memoryRequest, MemoryLimit: memoryLimit}
}

func TestUtilization(t *testing.T) {
	const mebi = 1 << 20
	app := sized("app", 500, 64*mebi, 128*mebi)
	proxy := sized("proxy", 500, 64*mebi, 0)
	setup := target.Container{Name: "setup", Init: true}
	sidecar := sized("sidecar", 1000, 64*mebi, 128*mebi)
	sidecar.Init = true
	two := withPods(pod("a", with(app, proxy, setup)), pod("b", with(app, proxy, setup)))
	usage := map[string]PodUsage{
		"a": used(map[string]ContainerUsage{"app": {CPU: 0.25, Memory: 64 * mebi}, "proxy": {CPU: 0.05, Memory: 32 * mebi}}),
		"b": used(map[string]ContainerUsage{"app": {CPU: 1.5, Memory: 120 * mebi}, "proxy": {CPU: 0.2, Memory: 72 * mebi}}),
	}
	stale := used(usage["b"].Containers)
	stale.Time = at(-2*minute - second)
	earlier := used(usage["b"].Containers)
	for name, test := range map[string]struct {
		state       target.State
		container   *string
		usage       map[string]PodUsage
		err         error
		cpu, memory Reading
	}{
		"mean and highest": {state: workload(two), usage: usage, cpu: value(100), memory: value(100)},
		"one container":    {state: workload(two), container: ptr.To("app"), usage: usage, cpu: value(175), memory: value(93.75)},
		"a sidecar that runs counts": {
			state: workload(withPods(pod("a", with(app, sidecar)))),
			usage: map[string]PodUsage{"a": used(map[string]ContainerUsage{
				"app": {CPU: 0.5, Memory: 64 * mebi}, "sidecar": {CPU: 0.25, Memory: 96 * mebi},
			})},
			cpu: value(50), memory: value(62.5),
		},
		"pods that are not ready are left out": {
			state: workload(withPods(pod("a", with(app, proxy)), pod("c", notReady, with(app)))), usage: usage, cpu: value(30), memory: value(50),
		},
		"one pod missing makes all unknown": {
			state: workload(two), usage: map[string]PodUsage{"a": usage["a"]},
			cpu:    no(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of pod b yet"),
			memory: no(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of pod b yet"),
		},
		"one container missing makes all unknown": {
			state: workload(two), usage: map[string]PodUsage{"a": usage["a"], "b": used(map[string]ContainerUsage{"app": {CPU: 9, Memory: 9}})},
			cpu:    no(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of container proxy of pod b"),
			memory: no(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of container proxy of pod b"),
		},
		"old usage is stale": {
			state: workload(two), usage: map[string]PodUsage{"a": usage["a"], "b": stale},
			cpu:    no(aiopsv1.ReasonStale, "The usage of pod b at metrics.k8s.io is older than 2m0s"),
			memory: no(aiopsv1.ReasonStale, "The usage of pod b at metrics.k8s.io is older than 2m0s"),
		},
		"usage of an earlier pod of that name is none": {
			state: workload(withPods(pod("b", createdAt(at(-10*second)), with(app, proxy)))), usage: map[string]PodUsage{"b": earlier},
			cpu:    no(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of pod b yet"),
			memory: no(aiopsv1.ReasonNoMetrics, "metrics.k8s.io has no usage of pod b yet"),
		},
		"nothing is a percentage of nothing": {
			state: workload(withPods(pod("a", with(app, sized("proxy", 0, 0, 0))))), usage: usage,
			cpu:    no(aiopsv1.ReasonNoRequests, "Container proxy of pod a has no CPU request: CPU utilization is a percentage of it"),
			memory: no(aiopsv1.ReasonNoRequests, "Container proxy of pod a has no memory limit or request: memory utilization is a percentage of it"),
		},
		"a container of another name": {
			state: workload(two), container: ptr.To("absent"), usage: usage,
			cpu:    no(aiopsv1.ReasonNoMetrics, "Pod a has no running container that the signal names"),
			memory: no(aiopsv1.ReasonNoMetrics, "Pod a has no running container that the signal names"),
		},
		"no pod is ready": {
			state:  workload(withPods(pod("a", notReady, with(app)))),
			cpu:    no(aiopsv1.ReasonNoMetrics, "Deployment/web has no ready pod to measure"),
			memory: no(aiopsv1.ReasonNoMetrics, "Deployment/web has no ready pod to measure"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader := usageReader{usage: test.usage, err: test.err}
			expect(t, test.cpu, NewCPUUtilization(reader).Measure(t.Context(), request(test.state, aiopsv1.Signal{
				CPUUtilization: &aiopsv1.CPUUtilizationSignal{Container: test.container},
			})))
			expect(t, test.memory, NewMemoryUtilization(reader).Measure(t.Context(), request(test.state, aiopsv1.Signal{
				MemoryUtilization: &aiopsv1.MemoryUtilizationSignal{Container: test.container},
			})))
		})
	}
}

func TestErrorsOfTheMetricsAPIAreTypedAndStayInside(t *testing.T) {
	pods := schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		want Reading
	}{
		"time is up":        {fmt.Errorf("secret: %w", context.DeadlineExceeded), no(aiopsv1.ReasonTimeout, "metrics.k8s.io did not answer in 10s")},
		"the server's time": {apierrors.NewTimeoutError("secret", 1), no(aiopsv1.ReasonTimeout, "metrics.k8s.io did not answer in 10s")},
		"no such API":       {&meta.NoKindMatchError{}, no(aiopsv1.ReasonNoMetrics, "This cluster does not serve metrics.k8s.io: install metrics-server")},
		"no such path": {
			apierrors.NewGenericServerResponse(404, "get", pods, "", "secret", 0, true),
			no(aiopsv1.ReasonNoMetrics, "This cluster does not serve metrics.k8s.io: install metrics-server"),
		},
		"forbidden":   {apierrors.NewForbidden(pods, "a", errors.New("secret")), no(aiopsv1.ReasonUnauthorized, "The operator may not read pods at metrics.k8s.io")},
		"unavailable": {apierrors.NewServiceUnavailable("secret"), no(aiopsv1.ReasonUnreachable, "metrics.k8s.io is not available: look at the metrics-server")},
		"broken":      {apierrors.NewInternalError(errors.New("secret")), no(aiopsv1.ReasonServerError, "metrics.k8s.io answered with an error (500)")},
		"unreachable": {errors.New("dial secret: connection refused"), no(aiopsv1.ReasonUnreachable, "metrics.k8s.io could not be read")},
	} {
		t.Run(name, func(t *testing.T) {
			source := NewCPUUtilization(usageReader{err: fmt.Errorf("read usage: %w", test.err)})
			expect(t, test.want, source.Measure(t.Context(), request(workload(withPods(pod("a"))), aiopsv1.Signal{})))
		})
	}
}

// countingMetrics serves the usage of pods pod-0, pod-1 and so on, and counts how it is asked.
type countingMetrics struct {
	client.Reader
	gets, lists atomic.Int32
	failure     error
	// listing, if set, is told of each list, which then waits until it is answered.
	listing chan struct{}
}

func newCountingMetrics(t *testing.T, pods int) *countingMetrics {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metricsv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, name := range podNames(pods) {
		builder = builder.WithObjects(&metricsv1beta1.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Timestamp: metav1.NewTime(at(0)),
			Containers: []metricsv1beta1.ContainerMetrics{{Name: "app", Usage: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1500000n"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}}},
		})
	}
	return &countingMetrics{Reader: builder.Build()}
}

func podNames(pods int) []string {
	var names []string
	for i := range pods {
		names = append(names, fmt.Sprintf("pod-%d", i))
	}
	return names
}

func (c *countingMetrics) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.gets.Add(1)
	return c.Reader.Get(ctx, key, object, options...)
}

func (c *countingMetrics) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists.Add(1)
	if c.listing != nil {
		c.listing <- struct{}{}
		<-c.listing
	}
	if c.failure != nil {
		return c.failure
	}
	return c.Reader.List(ctx, list, options...)
}

func (c *countingMetrics) expect(t *testing.T, gets, lists int32) {
	t.Helper()
	if c.gets.Load() != gets || c.lists.Load() != lists {
		t.Errorf("%d gets and %d lists, want %d and %d", c.gets.Load(), c.lists.Load(), gets, lists)
	}
}

func TestMetricsAPIReadsFewPodsOneByOneAndManyAtOnce(t *testing.T) {
	names := podNames(metricsSingleReads + 1)
	for name, test := range map[string]struct {
		asked       []string
		gets, lists int32
		want        int
	}{
		"few":                 {names[:metricsSingleReads], metricsSingleReads, 0, metricsSingleReads},
		"many":                {names, 0, 1, metricsSingleReads + 1},
		"one without metrics": {[]string{"pod-0", "absent"}, 2, 0, 1},
		"many, one without":   {append([]string{"absent"}, names[:metricsSingleReads]...), 0, 1, metricsSingleReads},
	} {
		t.Run(name, func(t *testing.T) {
			served := newCountingMetrics(t, len(names))
			got, err := NewMetricsAPI(served).ReadPodUsage(t.Context(), "shop", test.asked, at(0))
			if err != nil || len(got) != test.want {
				t.Fatalf("%d pods, %v, want %d", len(got), err, test.want)
			}
			served.expect(t, test.gets, test.lists)
			usage := got["pod-0"].Containers["app"]
			if usage.CPU != 0.0015 || usage.Memory != 64<<20 || !got["pod-0"].Time.Equal(at(0)) {
				t.Errorf("usage %+v", got["pod-0"])
			}
		})
	}
}

func TestManyTasksOfANamespaceShareOneList(t *testing.T) {
	served := newCountingMetrics(t, 40)
	usage := NewMetricsAPI(served)
	read := func(namespace string, names []string, now time.Time) {
		t.Helper()
		got, err := usage.ReadPodUsage(t.Context(), namespace, names, now)
		if err != nil || namespace == "shop" && len(got) != len(names) {
			t.Fatalf("usage of %v: %v, %v", names, got, err)
		}
	}
	for task := range 20 {
		read("shop", podNames(40)[2*task:2*task+2], at(time.Duration(task)*10*time.Millisecond))
	}
	served.expect(t, metricsSingleReads, 1)
	read("shop", podNames(40), at(5*second))
	served.expect(t, metricsSingleReads, 1)

	read("shop", podNames(1), at(6*second))
	served.expect(t, metricsSingleReads+1, 1)
	read("shop", podNames(40), at(6*second))
	served.expect(t, metricsSingleReads+1, 2)

	read("another", podNames(40), at(6*second))
	served.expect(t, metricsSingleReads+1, 3)
	if len(usage.namespaces) != 2 {
		t.Errorf("%d namespaces are remembered, want the 2 that were asked about", len(usage.namespaces))
	}
	read("another", podNames(40), at(minute))
	if len(usage.namespaces) != 1 {
		t.Errorf("%d namespaces are remembered, want the one that is asked about", len(usage.namespaces))
	}
}

func TestAFailedListIsNobodysAnswer(t *testing.T) {
	served := newCountingMetrics(t, 40)
	usage := NewMetricsAPI(served)
	served.failure = apierrors.NewServiceUnavailable("later")
	if got, err := usage.ReadPodUsage(t.Context(), "shop", podNames(40), at(0)); err == nil {
		t.Errorf("usage %v, want the error", got)
	}
	served.failure = nil
	if got, err := usage.ReadPodUsage(t.Context(), "shop", podNames(40), at(0)); err != nil || len(got) != 40 {
		t.Errorf("usage %v, %v, want that of all pods", got, err)
	}
}

func TestWhoWaitsForAListGivesUpInTime(t *testing.T) {
	served := newCountingMetrics(t, 40)
	served.listing = make(chan struct{})
	usage := NewMetricsAPI(served)
	var working sync.WaitGroup
	working.Go(func() {
		if _, err := usage.ReadPodUsage(t.Context(), "shop", podNames(40), at(0)); err != nil {
			t.Errorf("the one that lists: %v", err)
		}
	})
	<-served.listing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := usage.ReadPodUsage(ctx, "shop", podNames(40), at(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("the one that waits: %v, want the end of its time", err)
	}
	served.listing <- struct{}{}
	working.Wait()
	served.expect(t, 0, 1)
}

func TestMetricsAPITellsAMissingPodFromAMissingAPI(t *testing.T) {
	pods := schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}
	if !missing(apierrors.NewNotFound(pods, "a")) {
		t.Error("a pod without metrics is an error")
	}
	for name, err := range map[string]error{
		"no such path": apierrors.NewGenericServerResponse(404, "get", pods, "a", "the server could not find the requested resource", 0, true),
		"another":      apierrors.NewInternalError(errors.New("x")),
		"none":         nil,
	} {
		if missing(err) {
			t.Errorf("%s: taken for a pod without metrics", name)
		}
	}
}
