package admission_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// manifest is a whole task from what a case is about: the spec in flow style, or metadata and spec in block style.
func manifest(text string) string {
	const header = "apiVersion: aiops.example.com/v1\nkind: AITask\n"
	if strings.HasPrefix(text, "metadata:") {
		return header + text
	}
	return header + "metadata: {name: web}\nspec: " + text + "\n"
}

// apply creates a task as kubectl does: YAML becomes JSON, and the API server is asked to be strict about fields.
func apply(ctx context.Context, namespace, manifest string) error {
	GinkgoHelper()
	body, err := yaml.YAMLToJSON([]byte(manifest))
	Expect(err).NotTo(HaveOccurred())
	return create(ctx, namespace, body)
}

func create(ctx context.Context, namespace string, body []byte) error {
	return tasks.Post().Namespace(namespace).Resource("aitasks").
		Param("fieldValidation", "Strict").Param("fieldManager", "kubectl-client-side-apply").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}
