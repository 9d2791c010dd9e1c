package target

import (
	"bytes"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owners is what managedFields tell about who wrote which part of a workload.
type owners struct {
	replicasAppliedBy string
	templateAppliedBy string
	// templateTime is when somebody who owns a part of the pod template last changed something: never before the template's last change.
	templateTime time.Time
}

// ownersOf decides per field, never by a label: a workload that Argo CD tracks may well leave its replicas to others.
func ownersOf(entries []metav1.ManagedFieldsEntry) owners {
	var found owners
	for i := range entries {
		entry := &entries[i]
		if entry.FieldsV1 == nil || entry.Subresource == "status" {
			continue
		}
		fields := entry.FieldsV1.GetRawBytes()
		if entry.Time != nil && entry.Time.After(found.templateTime) && bytes.Contains(fields, []byte(`"f:template":{`)) {
			found.templateTime = entry.Time.UTC()
		}
		if isGitOps(entry.Manager) {
			found.add(entry.Manager, fields)
		}
	}
	return found
}

func (o *owners) add(manager string, fields []byte) {
	var owned struct {
		Spec struct {
			Replicas json.RawMessage `json:"f:replicas"`
			Template json.RawMessage `json:"f:template"`
		} `json:"f:spec"`
	}
	if json.Unmarshal(fields, &owned) != nil {
		return // the API server writes this field; what it did not write owns nothing
	}
	if owned.Spec.Replicas != nil {
		o.replicasAppliedBy = manager
	}
	if owned.Spec.Template != nil {
		o.templateAppliedBy = manager
	}
}

// isGitOps knows the field managers of the tools that put back what they applied: Argo CD (server-side and, under its
// program's name, client-side apply) and Flux's controllers for kustomizations and Helm releases.
func isGitOps(manager string) bool {
	switch manager {
	case "argocd-controller", "argocd-application-controller", "kustomize-controller", "helm-controller":
		return true
	}
	return false
}
