package lifecycle_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
)

// goBack takes the operator back to an older version: rights and replicas. The newer definition stays, as OLM keeps it.
func (v version) goBack(ctx context.Context, from version, replicas []*harness.Process, config string) *harness.Process {
	GinkgoHelper()
	Expect(v.release.InstallRights(ctx, admin)).To(Succeed())
	out := v.start(ctx, "older-again", config)
	for _, replica := range replicas {
		Expect(replica.Stop()).To(Succeed())
	}
	Expect(from.release.RemoveRights(ctx, admin)).To(Succeed())
	return out
}

// raw reads an AITask with everything that is in it.
func (p *play) raw(name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(aiopsv1.GroupVersion().WithKind("AITask"))
	p.Expect(admin.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, out)).To(Succeed())
	return out
}

func (p *play) patchStatus(name, patch string) {
	p.Expect(admin.Status().Patch(p.ctx, p.raw(name), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// writeNewerFields writes into every place that only the newer version knows, and a condition of its own.
func (p *play) writeNewerFields(name string) {
	task := p.raw(name)
	status, found, err := unstructured.NestedMap(task.Object, "status")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(found).To(BeTrue())
	status[newer] = newer
	for _, place := range []string{"decision", "target", "incident"} {
		inner, ok := status[place].(map[string]any)
		p.Expect(ok).To(BeTrue(), place)
		inner[newer] = newer
	}
	for _, place := range []string{"conditions", "signals", "history"} {
		list, ok := status[place].([]any)
		p.Expect(ok).To(BeTrue(), place)
		p.Expect(list).NotTo(BeEmpty(), place)
		for _, element := range list {
			element.(map[string]any)[newer] = newer
		}
	}
	conditions, _ := status["conditions"].([]any)
	status["conditions"] = append(conditions, map[string]any{"type": "Rehearsed", "status": "True", newer: newer})
	patch, err := json.Marshal(map[string]any{"status": status})
	p.Expect(err).NotTo(HaveOccurred())
	p.patchStatus(name, string(patch))
	p.Expect(admin.Patch(p.ctx, task, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"newer": "newer"}}`)))).To(Succeed())
}

// newerPlaces returns the places of an AITask that hold a newer field, such as "status.history[Restart]", an element by what names it.
func newerPlaces(task *unstructured.Unstructured) []string {
	var out []string
	for _, place := range []string{"spec", "status"} {
		out = append(out, placesIn(place, task.Object[place])...)
	}
	return out
}

func placesIn(place string, value any) []string {
	var out []string
	switch value := value.(type) {
	case map[string]any:
		if value[newer] == newer {
			out = append(out, place)
		}
		for name, inner := range value {
			out = append(out, placesIn(place+"."+name, inner)...)
		}
	case []any:
		for _, element := range value {
			out = append(out, placesIn(place+nameOf(element), element)...)
		}
	}
	return out
}

// nameOf tells an element of a list from the others.
func nameOf(element any) string {
	fields, _ := element.(map[string]any)
	for _, key := range []string{"type", "name", "id"} {
		if name, ok := fields[key].(string); ok {
			return "[" + name + "]"
		}
	}
	return "[]"
}
