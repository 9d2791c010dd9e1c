package admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
)

// ready is the condition Ready of a task, in one line.
func ready(ctx context.Context, key types.NamespacedName) func() string {
	return func() string {
		task := &aiopsv1.AITask{}
		if err := admin.Get(ctx, key, task); err != nil {
			return err.Error()
		}
		for _, condition := range task.Status.Conditions {
			if condition.Type == aiopsv1.ConditionReady && condition.ObservedGeneration == task.Generation {
				return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
			}
		}
		return "no condition Ready"
	}
}

// What is wrong only in this cluster, with this operator or for now is stored, and said on the object.
var _ = DescribeTable("reports on the object",
	func(ctx context.Context, text, want string) {
		namespace := newNamespace(ctx)
		Expect(admin.Create(ctx, harness.Deployment(namespace, "web", 2, "app:v1"))).To(Succeed())
		Expect(admin.Create(ctx, harness.DaemonSet(namespace, "agent", "app:v1"))).To(Succeed())
		Expect(apply(ctx, namespace, manifest(text))).To(Succeed())
		Eventually(ready(ctx, types.NamespacedName{Namespace: namespace, Name: "web"})).Should(HavePrefix("False " + want))
	},
	// Targets
	Entry("a Pod", "{targetRef: {apiVersion: v1, kind: Pod, name: web}}", "InvalidSpec: targetRef v1 Pod is not supported: write apiVersion apps/v1 and kind Deployment, StatefulSet or DaemonSet"),
	Entry("a ReplicaSet", "{targetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: web}}", "InvalidSpec: targetRef apps/v1 ReplicaSet is not supported: write apiVersion apps/v1 and kind Deployment"),
	Entry("a Job", "{targetRef: {apiVersion: batch/v1, kind: Job, name: web}}", "InvalidSpec: targetRef batch/v1 Job is not supported: write apiVersion apps/v1 and kind Deployment"),
	Entry("a kind in lower case", "{targetRef: {apiVersion: apps/v1, kind: deployment, name: web}}", "InvalidSpec: targetRef apps/v1 deployment is not supported: write apiVersion apps/v1 and kind Deployment"),
	Entry("an old API version", "{targetRef: {apiVersion: extensions/v1beta1, kind: Deployment, name: web}}", "InvalidSpec: targetRef extensions/v1beta1 Deployment is not supported: write apiVersion apps/v1"),
	Entry("a Deployment that does not exist", "{targetDeployment: wbe, threshold: 1}", "TargetNotFound: Deployment/wbe does not exist in namespace"),
	Entry("a StatefulSet that does not exist", "{targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, threshold: 1}", "TargetNotFound: StatefulSet/web does not exist in namespace"),
	Entry("kind and name as the target's name", "{targetDeployment: Deployment/web, threshold: 1}", `InvalidSpec: targetDeployment "Deployment/web" can't be the name of an object: write the name alone, in lower-case letters, digits, '-' and '.'`),
	Entry("a target's name with a capital", "{targetRef: {apiVersion: apps/v1, kind: Deployment, name: Web}, threshold: 1}", `InvalidSpec: targetRef.name "Web" can't be the name of an object: write the name alone, in lower-case letters`),

	// When
	Entry("an action without a threshold", "{"+target+", action: Restart}", "InvalidSpec: action is set, but nothing says when it is due: set threshold (unavailable replicas) or signals"),
	Entry("steps without a threshold", "{"+target+", steps: [{name: a, action: Restart}]}", "InvalidSpec: steps are set, but nothing says when they are due: set threshold (unavailable replicas) or signals"),
	Entry("a threshold of 0", "{"+target+", threshold: 0}", "AlwaysBreached: threshold: AtLeast 0 is always reached, since UnavailableReplicas is never below 0: write 1 or more"),
	Entry("a threshold of -0", "{"+target+", threshold: -0}", "AlwaysBreached: threshold: AtLeast 0 is always reached, since UnavailableReplicas is never below 0: write 1 or more"),
	Entry("a threshold below 0", "{"+target+", threshold: -5}", "AlwaysBreached: threshold: AtLeast -5 is always reached"),
	Entry("a signal's threshold of 0", withSignal("{name: kills, type: OOMKills, threshold: 0}"), `AlwaysBreached: signals["kills"].threshold: AtLeast 0 is always reached, since OOMKills is never below 0: write 1 or more`),
	Entry("AtMost below 0", withSignal("{name: kills, type: OOMKills, threshold: -1, comparison: AtMost}"), `ThresholdUnreachable: signals["kills"].threshold: AtMost -1 is never reached, since OOMKills is never below 0: write 0 or more`),
	Entry("a condition at least 2", withSignal("{name: up, type: Condition, threshold: 2, condition: {type: Available, status: 'False'}}"), `ThresholdUnreachable: signals["up"].threshold: AtLeast 2 is never reached, since Condition is 0 or 1: write 1`),
	Entry("a condition at most 1", withSignal("{name: up, type: Condition, threshold: 1, comparison: AtMost, condition: {type: Available, status: 'False'}}"), `AlwaysBreached: signals["up"].threshold: AtMost 1 is always reached, since Condition is 0 or 1: write 0`),
	Entry("a threshold above the replicas", "{"+target+", threshold: 3}", "ThresholdUnreachable: threshold 3 can never be reached: Deployment/web has 2 replicas. Write 2 or less"),
	Entry("a signal's threshold above the replicas", withSignal("{name: down, type: UnavailableReplicas, threshold: 3}"), "ThresholdUnreachable: "),
	Entry("an endpoint that is not configured", withSignal("{name: queue, type: Prometheus, threshold: 1, prometheus: {query: up, endpoint: longterm}}"), `InvalidSpec: signals["queue"].prometheus.endpoint "longterm" is not in the operator's configuration (prometheusEndpoints): use one of default, long-term`),

	// What
	Entry("a receiver that is not configured", withStep("{name: page, action: Notify, notify: {receiver: slack}}"), `InvalidSpec: steps["page"].notify.receiver "slack" is not in the operator's configuration (receivers): use one of pager`),
	Entry("no receiver, and none is the default", withStep("{name: page, action: Notify}"), `InvalidSpec: steps["page"].notify.receiver "default" (its value when absent) is not in the operator's configuration (receivers): use one of pager`),
	Entry("Scale of a DaemonSet", "{targetRef: {apiVersion: apps/v1, kind: DaemonSet, name: agent}, threshold: 1, steps: [{name: more, action: Scale, scale: {by: 1, max: 6}}]}", `InvalidSpec: steps["more"]: a DaemonSet has no replicas to set; use Restart, Evict or Rollback`),
	Entry("scaling by 0", withStep("{name: more, action: Scale, scale: {by: 0, max: 6}}"), `InvalidSpec: steps["more"].scale.by is 0, which changes nothing: write how many replicas to add, or to take away with a minus`),
	Entry("scaling to more than the maximum", withStep("{name: more, action: Scale, scale: {to: 7, max: 6}}"), `InvalidSpec: steps["more"].scale.to 7 is above max 6: write 6 or less, or raise max`),
	Entry("scaling to less than the minimum", withStep("{name: more, action: Scale, scale: {to: 1, min: 2, max: 6}}"), `InvalidSpec: steps["more"].scale.to 1 is below min 2: write 2 or more, or set min to 1`),
	Entry("scaling to 0 without a minimum", withStep("{name: none, action: Scale, scale: {to: 0, max: 6}}"), `InvalidSpec: steps["none"].scale.to 0 is below min 1 (its value when absent): write 1 or more, or set min to 0`),
	Entry("a maximum of 0 without a minimum", withStep("{name: none, action: Scale, scale: {by: -1, max: 0}}"), `InvalidSpec: steps["none"].scale.min 1 (its value when absent) is above max 0: set min to 0, or raise max`),
)

var _ = It("accepts a task as soon as it is corrected", func(ctx context.Context) {
	key := types.NamespacedName{Namespace: newNamespace(ctx), Name: "web"}
	Expect(admin.Create(ctx, harness.Deployment(key.Namespace, "web", 2, "app:v1"))).To(Succeed())
	Expect(apply(ctx, key.Namespace, manifest("{"+target+", threshold: 0}"))).To(Succeed())
	Eventually(ready(ctx, key)).Should(HavePrefix("False AlwaysBreached: "))
	Expect(admin.Patch(ctx, &aiopsv1.AITask{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"threshold":1}}`)))).To(Succeed())
	Eventually(ready(ctx, key)).Should(HavePrefix("True Accepted: "))
})
