package lifecycle_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// What users see of the operator, one scenario each. Each needs rights that no other one needs.

func (s *stage) getsReady(p *play) {
	p.Expect(s.leader.WaitReadyWithin(p.ctx, p.patience)).To(Succeed())
}

// getsReadyByLists is an API server that does not stream lists, as an administrator may have set it.
func (s *stage) getsReadyByLists(p *play) {
	p.Expect(s.standby.WaitReadyWithin(p.ctx, p.patience)).To(Succeed())
	ready := time.Now()
	for _, resource := range []string{"aitasks", "deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions", "pods", "horizontalpodautoscalers"} {
		var listed []cluster.AuditEvent
		p.soon(func() []cluster.AuditEvent {
			listed = s.lists(p, resource)
			return listed
		}).ShouldNot(BeEmpty(), resource)
		p.Expect(listed[0].Received).To(BeTemporally("<", ready), "ready before %s were listed", resource)
	}
}

// lists are the operator's lists of a whole resource. Only the replica that gets none streamed asks for them.
func (s *stage) lists(p *play, resource string) []cluster.AuditEvent {
	out, err := kubernetes.AuditEventsSince(s.mark, func(event cluster.AuditEvent) bool {
		return event.User == operatorUser && event.Verb == "list" && event.Resource == resource && event.Namespace == "" && event.APIGroup != "metrics.k8s.io"
	})
	p.Expect(err).NotTo(HaveOccurred())
	return out
}

func (s *stage) watches(p *play) {
	p.create(harness.Deployment(p.namespace, "web", 1, "shop/web:1"), harness.Task(p.namespace, "web", "Restart"))
	p.soon(p.task("web")).Should(HaveField("Status.Phase", aiopsv1.PhaseWatching))
}

func (s *stage) restartsDeployment(p *play) {
	p.create(harness.Deployment(p.namespace, "web", 2, "shop/web:1"), harness.Task(p.namespace, "web", "Restart"))
	p.settled("web")
	p.breakPods("web", cluster.NotReady)
	p.comesTo("web", "Restart Recovered")
}

// restartsDaemonSet breaks pods by crashing: one that was ready for less than a second counts as starting, and would be left alone.
func (s *stage) restartsDaemonSet(p *play) {
	task := taskOn(p.namespace, "DaemonSet", "agent", aiopsv1.Step{Name: "again", Action: aiopsv1.ActionRestart})
	judgeCrashes(task)
	p.create(harness.DaemonSet(p.namespace, "agent", "shop/agent:1"), task)
	p.settled("agent")
	p.breakPods("agent", cluster.Crash)
	p.comesTo("agent", "Restart Recovered")
}

func (s *stage) rollsDeploymentBack(p *play) {
	deployment := harness.Deployment(p.namespace, "web", 2, "shop/web:1")
	p.create(deployment, taskOn(p.namespace, "Deployment", "web", aiopsv1.Step{Name: "back", Action: aiopsv1.ActionRollback}))
	p.settled("web")
	p.image(deployment, "shop/web:crash")
	p.comesTo("web", "Rollback Recovered")
}

// rollsStatefulSetBack frees the pod that blocks the rollout, too.
func (s *stage) rollsStatefulSetBack(p *play) {
	set := harness.StatefulSet(p.namespace, "db", 2, "shop/db:1")
	p.create(set, taskOn(p.namespace, "StatefulSet", "db", aiopsv1.Step{Name: "back", Action: aiopsv1.ActionRollback}))
	p.settled("db")
	p.image(set, "shop/db:missing")
	p.comesTo("db", "Rollback Recovered")
}

func (s *stage) evicts(p *play) {
	p.create(harness.Deployment(p.namespace, "web", 2, "shop/web:1"), harness.Task(p.namespace, "web", "Evict"))
	p.settled("web")
	broken := p.pods("web")[:1]
	p.annotate(&broken[0], cluster.BehaviourAnnotation, string(cluster.Crash))
	p.comesTo("web", "Evict Recovered")
}

// evictsDespiteBudget deletes a pod that a PodDisruptionBudget keeps.
func (s *stage) evictsDespiteBudget(p *play) {
	keep := intstr.FromInt32(2)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "keep"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &keep, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	p.create(harness.Deployment(p.namespace, "web", 2, "shop/web:1"), budget,
		taskOn(p.namespace, "Deployment", "web", aiopsv1.Step{Name: "evict", Action: aiopsv1.ActionEvict, Evict: &aiopsv1.EvictStep{UnhealthyPods: aiopsv1.IgnoreBudget}}))
	p.settled("web")
	broken := p.pods("web")[:1]
	p.annotate(&broken[0], cluster.BehaviourAnnotation, string(cluster.Crash))
	p.comesTo("web", "Evict Recovered")
}

func (s *stage) leavesReplicasToAutoscaler(p *play) {
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3, MinReplicas: harness.Of[int32](2),
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}}
	p.create(harness.Deployment(p.namespace, "web", 2, "shop/web:1"), autoscaler, taskOn(p.namespace, "Deployment", "web", scaleStep()))
	p.settled("web")
	p.breakPods("web", cluster.NotReady)
	p.soon(p.task("web")).Should(HaveField("Status.History", ContainElement(HaveField("Reason", aiopsv1.ReasonOwnedByAutoscaler))))
}

func (s *stage) measuresOnePod(p *play) { s.measures(p, 1) }

// measuresManyPods asks for all of a namespace at once.
func (s *stage) measuresManyPods(p *play) { s.measures(p, 12) }

func (s *stage) measures(p *play, replicas int32) {
	deployment := harness.Deployment(p.namespace, "web", replicas, "shop/web:1")
	harness.RequestCPU(deployment, "100m")
	deployment.Spec.Template.Annotations = map[string]string{cluster.CPUAnnotation: "50m"}
	task := harness.Task(p.namespace, "web", "")
	task.Spec.Threshold, task.Spec.IntervalSeconds = nil, harness.Of[int32](5)
	task.Spec.Signals = []aiopsv1.Signal{{Name: "cpu", Type: aiopsv1.SignalCPUUtilization, Threshold: harness.Of[int64](80)}}
	p.create(deployment, task)
	p.soon(p.task("web")).Should(HaveField("Status.Decision.Summary", HaveSuffix(" < 80")))
}

// tells is the events about a task.
func (s *stage) tells(p *play) {
	p.create(harness.Deployment(p.namespace, "web", 1, "shop/web:1"), harness.Task(p.namespace, "web", "Restart"))
	p.settled("web")
	p.annotate(p.task("web")(), aiopsv1.ResetAnnotation, "yesterday")
	p.soon(p.events("web")).Should(ContainElement("RequestRefused 1"))
}

// tellsOfLeader is the event by which an administrator sees which replica acts.
func (s *stage) tellsOfLeader(p *play) {
	p.soon(func() []corev1.Event {
		list := &corev1.EventList{}
		_ = admin.List(p.ctx, list, client.InNamespace(harness.Namespace))
		return list.Items
	}).Should(ContainElement(And(HaveField("Reason", "LeaderElection"), HaveField("Message", HaveSuffix("became leader")),
		HaveField("InvolvedObject.UID", s.lease(p).UID))))
}

func (s *stage) lease(p *play) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	p.soon(func() error { return admin.Get(p.ctx, leaseKey(), lease) }).Should(Succeed())
	return lease
}

// servesMetrics asks who scrapes and whether they may.
func (s *stage) servesMetrics(p *play) {
	allowed, err := kubernetes.ServiceAccountConfig(p.ctx, scraperNamespace, "default")
	p.Expect(err).NotTo(HaveOccurred())
	p.soon(func() string { return scrape(p.ctx, s.metrics, allowed) }).Should(Equal("200 OK"))
}

// handsOver is the last scenario: the standby takes the lease of the leader, and acts.
func (s *stage) handsOver(p *play) {
	p.create(harness.Deployment(p.namespace, "web", 2, "shop/web:1"), harness.Task(p.namespace, "web", "Restart"))
	p.settled("web")
	p.Expect(s.lease(p).Spec.RenewTime).NotTo(BeNil())
	before := s.lease(p).Spec.HolderIdentity
	p.soon(func() any { return s.lease(p).Spec.AcquireTime.Before(s.lease(p).Spec.RenewTime) }).Should(BeTrue(), "the leader renews its lease")
	p.Expect(s.leader.Stop()).To(Succeed())
	p.soon(func() *string { return s.lease(p).Spec.HolderIdentity }).Should(And(Not(Equal(before)), HaveValue(Not(BeEmpty()))))
	p.breakPods("web", cluster.NotReady)
	p.comesTo("web", "Restart Recovered")
}

func leaseKey() client.ObjectKey {
	return client.ObjectKey{Namespace: harness.Namespace, Name: "aiops-operator." + aiopsv1.GroupName}
}

// taskOn judges crashing, missing and unready pods alike: a workload without all of its replicas.
func taskOn(namespace, kind, name string, step aiopsv1.Step) *aiopsv1.AITask {
	task := harness.Task(namespace, name, "")
	task.Spec.TargetDeployment = nil
	task.Spec.TargetRef = &aiopsv1.TargetReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Name: name}
	task.Spec.Steps = []aiopsv1.Step{step}
	if step.Action == aiopsv1.ActionRollback {
		judgeCrashes(task)
	}
	return task
}

func judgeCrashes(task *aiopsv1.AITask) {
	task.Spec.Threshold = nil
	task.Spec.Signals = []aiopsv1.Signal{{Name: "crash", Type: aiopsv1.SignalCrashLoopingPods, Threshold: harness.Of[int64](1)}}
}

func scaleStep() aiopsv1.Step {
	return aiopsv1.Step{Name: "more", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{By: harness.Of[int32](1), Max: harness.Of[int32](10)}}
}

// scrape returns the status of an answer of the metrics endpoint, or why there is none.
func scrape(ctx context.Context, address string, who *rest.Config) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s/metrics", address), http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Authorization", "Bearer "+who.BearerToken)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
	return answer.Status
}
