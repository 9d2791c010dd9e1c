package chaos_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
)

func auditMark() cluster.AuditMark {
	GinkgoHelper()
	mark, err := kubernetes.AuditMark()
	Expect(err).NotTo(HaveOccurred())
	return mark
}

// auditedActions is what the API server did to Deployments and their pods for any operator, by namespace and name of the Deployment.
// A pod that is evicted twice is one eviction: the second request names its UID, and finds it terminating.
type auditedActions struct {
	patches map[string]int
	evicted map[string]map[string]bool
}

// actionsSince reads the audit log from the mark on.
func actionsSince(mark cluster.AuditMark) auditedActions {
	GinkgoHelper()
	out := auditedActions{patches: map[string]int{}, evicted: map[string]map[string]bool{}}
	_, err := kubernetes.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
		if event.User != operatorUser || event.Code < 200 || event.Code > 299 || event.DryRun {
			return false
		}
		switch {
		case event.Verb == "patch" && event.Resource == "deployments":
			out.patches[event.Namespace+"/"+event.Name]++
		case event.Verb == "create" && event.Resource == "pods" && event.Subresource == "eviction":
			key := event.Namespace + "/" + deploymentOf(event.Name)
			if out.evicted[key] == nil {
				out.evicted[key] = map[string]bool{}
			}
			out.evicted[key][event.Name] = true
		}
		return false
	})
	Expect(err).NotTo(HaveOccurred())
	return out
}

// deploymentOf takes the two parts off that ReplicaSet and pod add to a Deployment's name.
func deploymentOf(pod string) string {
	parts := strings.Split(pod, "-")
	return strings.Join(parts[:max(0, len(parts)-2)], "-")
}

// granted says what the audit log has to hold for one action: granted patches of the Deployment, and evicted pods.
func granted(action aiopsv1.ActionType) (patches, evicted int) {
	switch action {
	case aiopsv1.ActionNotify:
		return 0, 0
	case aiopsv1.ActionEvict:
		return 1, 1
	}
	return 1, 0
}

// sawOneActionEach asks the audit log the same that each workload was asked.
func sawOneActionEach(mark cluster.AuditMark, incidents []*incident) {
	GinkgoHelper()
	Expect(incidents).NotTo(BeEmpty())
	seen := actionsSince(mark)
	for _, in := range incidents {
		patches, evicted := granted(in.action)
		if in.lost {
			evicted = 0
		}
		key := in.namespace + "/" + in.name
		Expect(seen.patches[key]).To(Equal(patches), "granted patches of %s for %s", key, in.t.name)
		Expect(seen.evicted[key]).To(HaveLen(evicted), "evicted pods of %s for %s", key, in.t.name)
	}
}
