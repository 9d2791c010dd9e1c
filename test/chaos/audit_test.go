package chaos_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/aiops-operator/test/cluster"
)

func auditMark() cluster.AuditMark {
	GinkgoHelper()
	mark, err := kubernetes.AuditMark()
	Expect(err).NotTo(HaveOccurred())
	return mark
}

// actions counts what the API server did to workloads and pods for any operator since the mark, by namespace: granted patches of a
// Deployment, and granted evictions.
type actions struct {
	patches   map[string]int
	evictions map[string]int
}

func actionsSince(mark cluster.AuditMark) actions {
	GinkgoHelper()
	out := actions{patches: map[string]int{}, evictions: map[string]int{}}
	_, err := kubernetes.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
		if event.User != operatorUser || event.Code < 200 || event.Code > 299 || event.DryRun {
			return false
		}
		switch {
		case event.Verb == "patch" && event.Resource == "deployments":
			out.patches[event.Namespace]++
		case event.Verb == "create" && event.Resource == "pods" && event.Subresource == "eviction":
			out.evictions[event.Namespace]++
		}
		return false
	})
	Expect(err).NotTo(HaveOccurred())
	return out
}
