package admission_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
)

const userSpec = `{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":"web"},
	"spec":{"targetDeployment":"web","threshold":1,"forSeconds":0,"mode":"Observe","steps":[{"name":"again","action":"Restart"},{"name":"back","action":"Rollback","timeoutSeconds":60}]}}`

// applyAs is server-side apply by a field manager.
func applyAs(ctx context.Context, key types.NamespacedName, manager, body string) error {
	task := &aiopsv1.AITask{}
	task.Namespace, task.Name = key.Namespace, key.Name
	return admin.Patch(ctx, task, client.RawPatch(types.ApplyPatchType, []byte(body)), client.FieldOwner(manager))
}

// owners returns the top-level fields that each field manager owns.
func owners(ctx context.Context, key types.NamespacedName) map[string][]string {
	GinkgoHelper()
	task := &aiopsv1.AITask{}
	Expect(admin.Get(ctx, key, task)).To(Succeed())
	out := map[string][]string{}
	for _, entry := range task.ManagedFields {
		var fields map[string]json.RawMessage
		Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)).To(Succeed())
		for field := range fields {
			out[entry.Manager] = append(out[entry.Manager], field)
		}
	}
	return out
}

func specOf(ctx context.Context, key types.NamespacedName) (spec aiopsv1.AITaskSpec, generation int64) {
	GinkgoHelper()
	task := &aiopsv1.AITask{}
	Expect(admin.Get(ctx, key, task)).To(Succeed())
	return task.Spec, task.Generation
}

var _ = Describe("the fields of a task (I6)", func() {
	var key types.NamespacedName

	BeforeEach(func(ctx context.Context) {
		key = types.NamespacedName{Namespace: newNamespace(ctx), Name: "web"}
		Expect(admin.Create(ctx, harness.Deployment(key.Namespace, "web", 2, "app:v1"))).To(Succeed())
		Expect(applyAs(ctx, key, "user", userSpec)).To(Succeed())
	})

	It("leaves spec to its author and owns status alone", func(ctx context.Context) {
		spec, generation := specOf(ctx, key)
		Eventually(breached(ctx, key)).Should(Equal("False"))
		Expect(owners(ctx, key)).To(Equal(map[string][]string{"user": {"f:spec"}, "aiops-operator": {"f:status"}}))

		By("an incident, too, changes nothing but status")
		behave(ctx, key.Namespace, "not-ready")
		Eventually(breached(ctx, key)).Should(Equal("True"))
		behave(ctx, key.Namespace, "healthy")
		Eventually(breached(ctx, key)).Should(Equal("False"))
		Expect(owners(ctx, key)).To(Equal(map[string][]string{"user": {"f:spec"}, "aiops-operator": {"f:status"}}))
		specAfter, generationAfter := specOf(ctx, key)
		Expect(specAfter).To(Equal(spec))
		Expect(generationAfter).To(Equal(generation))
	})

	It("lets the author apply again without a conflict or a change", func(ctx context.Context) {
		Eventually(breached(ctx, key)).Should(Equal("False"))
		_, generation := specOf(ctx, key)
		Expect(applyAs(ctx, key, "user", userSpec)).To(Succeed())
		_, again := specOf(ctx, key)
		Expect(again).To(Equal(generation))
	})

	It("lets two authors own steps of their own, and tells them apart", func(ctx context.Context) {
		Expect(applyAs(ctx, key, "platform", `{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":"web"},"spec":{"steps":[{"name":"page","action":"Notify","notify":{"receiver":"pager"}}]}}`)).To(Succeed())
		spec, _ := specOf(ctx, key)
		names := []string{}
		for _, step := range spec.Steps {
			names = append(names, step.Name)
		}
		Expect(names).To(ConsistOf("again", "back", "page"))
		Expect(applyAs(ctx, key, "platform", `{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":"web"},"spec":{"steps":[{"name":"back","action":"Evict"}]}}`)).
			To(MatchError(ContainSubstring(`conflict with "user"`)))
	})

	It("does not let the operator's account write spec", func(ctx context.Context) {
		config, err := kubernetes.ServiceAccountConfig(ctx, harness.Namespace, harness.ServiceAccount)
		Expect(err).NotTo(HaveOccurred())
		operator, err := harness.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		task := &aiopsv1.AITask{}
		task.Namespace, task.Name = key.Namespace, key.Name
		Expect(operator.Patch(ctx, task, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"threshold":2}}`)))).To(MatchError(ContainSubstring("forbidden")))
	})
})
