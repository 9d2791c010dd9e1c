package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
)

// leaders is how many operators believe to be the only one.
type leaders int

// String names the variant.
func (l leaders) String() string {
	return fmt.Sprintf("%d operators that each believe to be the only one", int(l))
}

var _ = Describe("Two operators that both believe to be the leader", func() {
	It("do exactly one action for each of 20 incidents at the same time", func(ctx context.Context) {
		mark := auditMark()
		namespace := newNamespace(ctx, Default)
		for range 2 {
			DeferCleanup(start(Default, namespace).crash)
		}
		numbers := make([]int, 20)
		for i := range numbers {
			numbers[i] = i
		}
		incidents := inParallel(numbers, func(t *try, number int) *incident {
			in := prepareIn(ctx, t, namespace, fmt.Sprintf("web-%d", number), everyAction()[number%len(everyAction())])
			in.settle()
			in.begin()
			t.Eventually(func() string {
				in.play()
				return in.summary()
			}).Should(HavePrefix("Watching, recovered: true, ["+string(in.action)), in.state)
			t.Expect(in.results()).To(HaveEach(BeElementOf(in.resultsOfTwo())))
			in.sawOneAction()
			return in
		})
		sawOneActionEach(mark, incidents)
	})
})

// resultsOfTwo are what two operators may write of one action: never that it did not run. One that recorded the order and then meets with
// its stamp, since the other one was quicker to run it, can only say that the order ran and is not judged; what is written depends on
// who writes first. The workload sees one action all the same.
func (in *incident) resultsOfTwo() []string {
	var out []string
	for _, result := range []string{aiopsv1.ResultRecovered, aiopsv1.ResultDone, aiopsv1.ResultCancelled} {
		out = append(out, string(in.action)+" "+result)
	}
	return out
}

// orders follows the unfinished orders of the tasks of a namespace, and whether two of them were ever acting at the same time.
type orders struct {
	watch watch.Interface

	mutex  sync.Mutex
	acting map[string]bool
	most   int
}

func followOrders(ctx context.Context, g Gomega, namespace string) *orders {
	watching, err := admin.Watch(ctx, &aiopsv1.AITaskList{}, client.InNamespace(namespace))
	g.Expect(err).NotTo(HaveOccurred())
	o := &orders{watch: watching, acting: map[string]bool{}}
	go func() {
		for event := range watching.ResultChan() {
			if task, ok := event.Object.(*aiopsv1.AITask); ok {
				o.add(task)
			}
		}
	}()
	return o
}

func (o *orders) add(task *aiopsv1.AITask) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.acting, task.Name)
	if order := task.Status.Order; order != nil && order.State == aiopsv1.OrderVerifying {
		o.acting[task.Name] = true
	}
	o.most = max(o.most, len(o.acting))
}

func (o *orders) mostActing() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.most
}

// rival is the second task on a workload.
const rival = "rival"

var _ = Describe("Two tasks on one workload that is breached for both in the same moment", func() {
	It("act one at a time, and once in each cooldown", func(ctx context.Context) {
		mark := auditMark()
		rounds := []leaders{1, 1, 1, 1, 2, 2, 2, 2}
		incidents := inParallel(rounds, func(t *try, operators leaders) *incident {
			in := prepare(ctx, t, aiopsv1.ActionRestart)
			t.Expect(admin.Create(ctx, in.newTask(rival))).To(Succeed())
			following := followOrders(ctx, t, in.namespace)
			defer following.watch.Stop()
			for range operators {
				t.start(in.namespace)
			}
			in.settle()
			t.Eventually(func() string { return in.taskNamed(rival).Status.Phase }).Should(Equal(aiopsv1.PhaseWatching))

			in.begin()
			// Of two operators one may find the order of the other one busy, changed or run already, and say so: what is written of it
			// depends on who wrote first. The workload sees one action all the same, which is what is counted below.
			ended := ConsistOf("Watching", "Watching", "Restart Recovered")
			if operators > 1 {
				ended = And(ContainElements("Watching", "Watching"), HaveEach(BeElementOf("Watching", "Restart Recovered", "Restart Cancelled")))
			}
			t.Eventually(in.isWellAgain).Should(BeTrue())
			t.Eventually(in.bothTasks).Should(ended)
			if operators == 1 {
				t.Expect(following.mostActing()).To(BeNumerically("<=", 1), "orders under way at the same time")
			}

			By("breaking it again within the cooldown: neither acts")
			broken := in.livePods()[0]
			in.behave(&broken, cluster.Crash)
			t.Eventually(in.bothReasons).Should(HaveEach(aiopsv1.ReasonCooldown))
			in.behave(&broken, cluster.Healthy)
			t.Eventually(in.bothTasks).Should(ended)
			t.Expect(in.deployment().Generation).To(Equal(in.generation + 1))
			return in
		})
		sawOneActionEach(mark, incidents)
	})
})

// bothTasks are the phases of both tasks, and what they have executed.
func (in *incident) bothTasks() []string {
	var out []string
	for _, name := range []string{in.name, rival} {
		task := in.taskNamed(name)
		out = append(out, task.Status.Phase)
		out = append(out, slices.DeleteFunc(resultsOf(task), func(result string) bool { return result == "Restart Withdrawn" })...)
	}
	return out
}

func (in *incident) bothReasons() []string {
	var out []string
	for _, name := range []string{in.name, rival} {
		decision := in.taskNamed(name).Status.Decision
		if decision == nil {
			return nil
		}
		out = append(out, decision.Reason)
	}
	return out
}
