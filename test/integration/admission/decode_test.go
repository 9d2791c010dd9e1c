package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
	crdschema "github.com/example/aiops-operator/test/integration/admission/schema"
)

const (
	oddBodies = 1500
	// one of so many bodies is stored, the others are tried without being stored.
	storedShare = 3
	seed        = 20260101
)

// crowd sends generated bodies to the API server and remembers what should not have happened.
type crowd struct {
	namespace string
	admission *crdschema.Admission
	decoder   runtime.Decoder

	admitted, stored, statuses atomic.Int64

	mutex    sync.Mutex
	problems []string
}

func newCrowd(namespace string) *crowd {
	GinkgoHelper()
	admission, err := crdschema.New(readCRD())
	Expect(err).NotTo(HaveOccurred())
	scheme, err := harness.Scheme()
	Expect(err).NotTo(HaveOccurred())
	return &crowd{namespace: namespace, admission: admission, decoder: serializer.NewCodecFactory(scheme).UniversalDeserializer()}
}

func (c *crowd) problem(format string, args ...any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// send creates a body and then writes its status, as somebody with the right to do so might.
func (c *crowd) send(ctx context.Context, i uint64) {
	random := rand.New(rand.NewPCG(seed, i))
	name := fmt.Sprintf("odd-%d", i)
	body, err := c.admission.Generate(random.IntN, name)
	if err != nil {
		c.problem("generate %s: %v", name, err)
		return
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil {
		c.problem("read %s: %v", name, err)
		return
	}
	status := parts["status"]
	delete(parts, "status")
	stored := i%storedShare == 0
	request := tasks.Post().Namespace(c.namespace).Resource("aitasks").SetHeader("Content-Type", "application/json").Body(encode(parts))
	if !stored {
		request.Param("dryRun", "All")
	}
	if !c.judge(ctx, request, encode(parts)) {
		return
	}
	c.admitted.Add(1)
	if !stored {
		return
	}
	c.stored.Add(1)
	patch := tasks.Patch(types.JSONPatchType).Namespace(c.namespace).Resource("aitasks").Name(name).SubResource("status").
		Body([]byte(fmt.Sprintf(`[{"op":"add","path":"/status","value":%s}]`, status)))
	parts["spec"], parts["status"] = json.RawMessage(`{"targetDeployment":"web"}`), status
	if c.judge(ctx, patch, encode(parts)) {
		c.statuses.Add(1)
	}
}

// judge says whether the API server admits the request. Its answer must decode, and the schema in process must have come to the
// same verdict, or the fuzz test that runs without a server would prove nothing.
func (c *crowd) judge(ctx context.Context, request *rest.Request, body []byte) bool {
	answer, refusal := request.Do(ctx).Raw()
	if _, err := c.admission.Admit(ctx, body); (err == nil) != (refusal == nil) {
		c.problem("the API server says %v, its schema says %v: %s", refusal, err, body)
	}
	if refusal != nil {
		return false
	}
	list := fmt.Appendf(nil, `{"apiVersion":"aiops.example.com/v1","kind":"AITaskList","items":[%s]}`, answer)
	if err := runtime.DecodeInto(c.decoder, list, &aiopsv1.AITaskList{}); err != nil {
		c.problem("admitted and not decoded: %v: %s", err, answer)
	}
	return true
}

func encode(parts map[string]json.RawMessage) []byte {
	var out bytes.Buffer
	separator := "{"
	for name, part := range parts {
		fmt.Fprintf(&out, "%s%q:%s", separator, name, part)
		separator = ","
	}
	out.WriteString("}")
	return out.Bytes()
}

func (c *crowd) sendAll(ctx context.Context) {
	numbers := make(chan uint64)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range numbers {
				c.send(ctx, i)
			}
		})
	}
	for i := range uint64(oddBodies) {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

// behave makes every pod of a namespace behave so.
func behave(ctx context.Context, namespace, behaviour string) {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, cluster.BehaviourAnnotation, behaviour))
	for i := range pods.Items {
		Expect(admin.Patch(ctx, &pods.Items[i], patch)).To(Succeed())
	}
}

func breached(ctx context.Context, key types.NamespacedName) func() string {
	return func() string {
		task := &aiopsv1.AITask{}
		if err := admin.Get(ctx, key, task); err != nil {
			return err.Error()
		}
		for _, condition := range task.Status.Conditions {
			if condition.Type == aiopsv1.ConditionBreached {
				return condition.Status
			}
		}
		return ""
	}
}

// panics counts the passes of every operator in this process that ended in one.
func panics() float64 {
	GinkgoHelper()
	families, err := controllermetrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	total := 0.0
	for _, family := range families {
		if strings.Contains(family.GetName(), "panics_total") {
			for _, metric := range family.GetMetric() {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total
}

// writesSince counts the operator's writes in a namespace since it was last asked.
func writesSince(namespace string) func(g Gomega) int {
	mark, err := kubernetes.AuditMark()
	Expect(err).NotTo(HaveOccurred())
	return func(g Gomega) int {
		events, err := kubernetes.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
			return event.Namespace == namespace && strings.HasSuffix(event.User, ":"+harness.ServiceAccount)
		})
		g.Expect(err).NotTo(HaveOccurred())
		mark, err = kubernetes.AuditMark()
		g.Expect(err).NotTo(HaveOccurred())
		return len(events)
	}
}

var _ = It("decodes whatever is admitted, and goes on judging the others (I14)", func(ctx context.Context) {
	control := types.NamespacedName{Namespace: newNamespace(ctx), Name: "web"}
	odd := newCrowd(newNamespace(ctx))
	for _, namespace := range []string{control.Namespace, odd.namespace} {
		Expect(admin.Create(ctx, harness.Deployment(namespace, "web", 2, "app:v1"))).To(Succeed())
	}
	task := harness.Task(control.Namespace, control.Name, "Restart")
	task.Spec.Mode = aiopsv1.ModeObserve
	Expect(admin.Create(ctx, task)).To(Succeed())
	Eventually(breached(ctx, control)).Should(Equal("False"))

	odd.sendAll(ctx)
	Expect(odd.problems).To(BeEmpty())
	Expect(odd.admitted.Load()).To(BeNumerically(">", oddBodies/3), "too few bodies are admitted to say anything")
	Expect(odd.admitted.Load()).To(BeNumerically("<", oddBodies*9/10), "too few bodies are refused to say anything")
	Expect(odd.statuses.Load()).To(BeNumerically(">", odd.stored.Load()/3), "too few statuses are admitted to say anything")

	list := &aiopsv1.AITaskList{}
	Expect(admin.List(ctx, list, client.InNamespace(odd.namespace))).To(Succeed())
	Expect(list.Items).To(HaveLen(int(odd.stored.Load())))

	behave(ctx, control.Namespace, "not-ready")
	Eventually(breached(ctx, control)).Should(Equal("True"))
	behave(ctx, control.Namespace, "healthy")
	Eventually(breached(ctx, control)).Should(Equal("False"))
	Expect(panics()).To(BeZero())
	Eventually(writesSince(odd.namespace)).WithPolling(time.Second).MustPassRepeatedly(2).Should(BeZero(), "the operator does not come to rest")
})
