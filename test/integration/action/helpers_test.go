package action_test

import (
	"context"
	"fmt"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/target"
	"github.com/example/aiops-operator/test/harness"
)

// name is that of every workload: each has a namespace of its own.
const name = "web"

func referenceTo(object client.Object) target.Reference {
	reference := target.Reference{APIVersion: "apps/v1", Namespace: object.GetNamespace(), Name: object.GetName()}
	switch object.(type) {
	case *appsv1.Deployment:
		reference.Kind = "Deployment"
	case *appsv1.StatefulSet:
		reference.Kind = "StatefulSet"
	case *appsv1.DaemonSet:
		reference.Kind = "DaemonSet"
	}
	return reference
}

// workload builds a workload of a kind with three pods.
func workload(kind, namespace, image string) client.Object {
	switch kind {
	case "Deployment":
		return harness.Deployment(namespace, name, 3, image)
	case "StatefulSet":
		return harness.StatefulSet(namespace, name, 3, image)
	default:
		return harness.DaemonSet(namespace, name, image)
	}
}

func templateOf(object client.Object) *corev1.PodTemplateSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template
	case *appsv1.StatefulSet:
		return &object.Spec.Template
	default:
		return &object.(*appsv1.DaemonSet).Spec.Template
	}
}

// create makes a workload and waits until its caches and controllers agree that it is well.
func create(ctx context.Context, object client.Object) target.Reference {
	GinkgoHelper()
	Expect(admin.Create(ctx, object)).To(Succeed())
	reference := referenceTo(object)
	eventuallyWell(ctx, reference)
	return reference
}

// eventuallyWell waits until the caches show the workload as it is now, at rest and healthy.
func eventuallyWell(ctx context.Context, reference target.Reference) {
	GinkgoHelper()
	generation := read(ctx, reference).GetGeneration()
	Eventually(ctx, func(ctx context.Context) string {
		state, err := resolver.Resolve(ctx, reference, now())
		if err != nil || state.Generation < generation {
			return "the caches are behind"
		}
		return unwell(state)
	}).Should(BeEmpty())
}

// unwell says what is missing for a workload to be at rest and healthy.
func unwell(state target.State) string {
	ready := 0
	for _, pod := range state.Pods {
		if pod.Ready && pod.Revision == state.Revision {
			ready++
		}
	}
	switch {
	case !state.Settled, state.Rollout != (target.Rollout{}), state.Revision == "":
		return fmt.Sprintf("settled %t, rollout %+v, revision %q", state.Settled, state.Rollout, state.Revision)
	case state.Replicas == 0, state.Available != state.Replicas, state.Updated != state.Replicas, ready != int(state.Replicas), len(state.Pods) != ready:
		return fmt.Sprintf("%d replicas, %d updated, %d available, %d pods, %d ready", state.Replicas, state.Updated, state.Available, len(state.Pods), ready)
	}
	return ""
}

// state is what the caches know.
func state(ctx context.Context, reference target.Reference) target.State {
	GinkgoHelper()
	state, err := resolver.Resolve(ctx, reference, now())
	Expect(err).NotTo(HaveOccurred())
	return state
}

// live is what the API server knows of the workload, and the caches of its pods.
func live(ctx context.Context, reference target.Reference) target.State {
	GinkgoHelper()
	state, err := resolver.ResolveLive(ctx, reference, now())
	Expect(err).NotTo(HaveOccurred())
	return state
}

func read(ctx context.Context, reference target.Reference) client.Object {
	GinkgoHelper()
	object, err := reference.NewObject()
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// setImage changes a workload's image as its owner would.
func setImage(ctx context.Context, reference target.Reference, image string) {
	GinkgoHelper()
	object := read(ctx, reference)
	before := object.DeepCopyObject().(client.Object)
	templateOf(object).Spec.Containers[0].Image = image
	Expect(admin.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

func imageOf(ctx context.Context, reference target.Reference) string {
	GinkgoHelper()
	return templateOf(read(ctx, reference)).Spec.Containers[0].Image
}

func annotate(ctx context.Context, object client.Object, key, value string) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	Expect(admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

func podUIDs(state target.State) []types.UID {
	var uids []types.UID
	for _, pod := range state.Pods {
		uids = append(uids, pod.UID)
	}
	return uids
}

// plan makes a plan that must not be refused.
func plan(ctx context.Context, act action.Action, request action.Request) action.Plan {
	GinkgoHelper()
	plan, refusal, err := act.Plan(ctx, request)
	Expect(err).NotTo(HaveOccurred())
	Expect(refusal).To(BeNil())
	return plan
}

// planAndOrder plans on the live state and records the order.
func planAndOrder(ctx context.Context, act action.Action, id string, request action.Request) action.Request {
	GinkgoHelper()
	request.Now = now()
	request.Order = orderFor(id, request.Target, plan(ctx, act, request))
	return request
}

// execute runs an order that must be executed.
func execute(ctx context.Context, act action.Action, request action.Request) action.Outcome {
	GinkgoHelper()
	outcome, err := act.Run(ctx, request)
	Expect(err).NotTo(HaveOccurred())
	Expect(outcome.Refusal).To(BeNil())
	Expect(outcome.Executed).To(BeTrue())
	return outcome
}

// refused runs an order that must be refused.
func refused(ctx context.Context, act action.Action, request action.Request) action.Refusal {
	GinkgoHelper()
	outcome, err := act.Run(ctx, request)
	Expect(err).NotTo(HaveOccurred())
	Expect(outcome.Executed).To(BeFalse())
	Expect(outcome.Refusal).NotTo(BeNil())
	return *outcome.Refusal
}

func taskWith(healthy string) *aiopsv1.AITask {
	return &aiopsv1.AITask{Status: aiopsv1.AITaskStatus{Target: &aiopsv1.TargetStatus{HealthyRevision: healthy}}}
}

// dying is a client of a process that dies right before its first deletion or eviction that is not a dry run.
func dying() client.Client {
	var dead atomic.Bool
	die := func() error {
		dead.Store(true)
		return context.Canceled
	}
	return interceptor.NewClient(acting, interceptor.Funcs{
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if !dead.Load() {
				return die()
			}
			return to.Delete(ctx, object, options...)
		},
		SubResourceCreate: func(ctx context.Context, to client.Client, name string, object client.Object, sub client.Object, options ...client.SubResourceCreateOption) error {
			dryRun := (&client.SubResourceCreateOptions{}).ApplyOptions(options).DryRun
			if len(dryRun) == 0 && !dead.Load() {
				return die()
			}
			return to.SubResource(name).Create(ctx, object, sub, options...)
		},
	})
}
