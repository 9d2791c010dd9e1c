package main_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
	"github.com/example/aiops-operator/test/packaging/bundle"
	"github.com/example/aiops-operator/test/scorecard/check"
)

// together runs checks at the same time, as the scorecard runs a stage, and returns their results by name.
func together(ctx context.Context, environment check.Environment, names ...string) map[string]v1alpha3.TestResult {
	GinkgoHelper()
	var mutex sync.Mutex
	var all sync.WaitGroup
	out := map[string]v1alpha3.TestResult{}
	for _, name := range names {
		chosen := named(name)
		all.Go(func() {
			status := chosen.Run(ctx, environment)
			mutex.Lock()
			defer mutex.Unlock()
			out[name] = status.Results[0]
		})
	}
	all.Wait()
	return out
}

// stages reads from the bundle which of our tests run together.
func stages() [][]string {
	GinkgoHelper()
	loaded, err := bundle.Load(bundleFolder())
	Expect(err).NotTo(HaveOccurred())
	var out [][]string
	for _, stage := range loaded.Scorecard.Stages {
		var names []string
		for _, test := range stage.Tests {
			if test.Labels["suite"] == "aiops" {
				Expect(test.Entrypoint).To(HaveLen(2))
				Expect(test.Entrypoint[0]).To(Equal(check.Program))
				Expect(test.Labels["test"]).To(Equal(test.Entrypoint[1] + "-test"))
				names = append(names, test.Entrypoint[1])
			}
		}
		out = append(out, names)
	}
	return out
}

func allNames() []string {
	var out []string
	for _, one := range check.All() {
		out = append(out, one.Name)
	}
	return out
}

// unbindUpgrade takes the rights to replace the operator's pods from the checks until the spec ends.
func unbindUpgrade(ctx context.Context) {
	GinkgoHelper()
	binding := &rbacv1.RoleBinding{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: harness.Namespace, Name: "aiops-scorecard-upgrade"}, binding)).To(Succeed())
	Expect(admin.Delete(ctx, binding.DeepCopy())).To(Succeed())
	binding.ObjectMeta = metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.Name}
	DeferCleanup(func(ctx context.Context) { Expect(admin.Create(ctx, binding)).To(Succeed()) })
}

// within is a context that ends after some time, or with the spec.
func within(ctx context.Context, limit time.Duration) context.Context {
	limited, cancel := context.WithTimeout(ctx, limit)
	DeferCleanup(cancel)
	return limited
}

// expectNothingLeft looks for what checks have made, and for what that has made in turn.
func expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{&aiopsv1.AITaskList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}} {
		Eventually(func() (client.ObjectList, error) { return list, admin.List(ctx, list, client.InNamespace(namespace)) }).
			Should(HaveField("Items", BeEmpty()), "%T", list)
	}
}

// repeat does something again and again until the spec ends.
func repeat(ctx context.Context, do func(context.Context)) {
	repeating, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-repeating.Done():
				return
			case <-ticker.C:
				do(repeating)
			}
		}
	}()
	DeferCleanup(func() {
		end()
		<-done
	})
}

// meddle does something to every Deployment that a check makes, once it succeeds, until the spec ends.
func meddle(ctx context.Context, do func(context.Context, *appsv1.Deployment) error) {
	done := map[string]bool{}
	repeat(ctx, func(ctx context.Context) {
		list := &appsv1.DeploymentList{}
		if admin.List(ctx, list, client.InNamespace(namespace), client.HasLabels{check.RunLabel}) != nil {
			return // the spec ends
		}
		for i := range list.Items {
			if name := list.Items[i].Name; !done[name] {
				done[name] = do(ctx, &list.Items[i]) == nil
			}
		}
	})
}

// unholdDeleted takes the finalizers off tasks as soon as they are deleted, until the spec ends.
func unholdDeleted(ctx context.Context) {
	repeat(ctx, func(ctx context.Context) {
		list := &aiopsv1.AITaskList{}
		if admin.List(ctx, list, client.InNamespace(namespace)) != nil {
			return // the spec ends
		}
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp != nil {
				_ = unhold(ctx, &list.Items[i]) // the next round tries again
			}
		}
	})
}

func ownerReference(task *aiopsv1.AITask) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: aiopsv1.GroupVersion().String(), Kind: "AITask", Name: task.Name, UID: task.UID}
}

// merge applies a JSON merge patch.
func merge(ctx context.Context, object client.Object, patch string) error {
	return admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// unhold takes the finalizers off an object that may be gone.
func unhold(ctx context.Context, object client.Object) error {
	return client.IgnoreNotFound(merge(ctx, object, `{"metadata":{"finalizers":null}}`))
}
