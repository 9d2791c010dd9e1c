package check

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// everything is RBAC's wildcard.
const everything = "*"

// right is one verb on one resource, or on one path. Resource holds the subresource too, as in RBAC: pods/eviction.
type right struct {
	verb, group, resource, name string
	path                        string
}

// String is the right as the end of "may ...", such as `get secrets` or `patch deployments.apps named web`.
func (r right) String() string {
	if r.path != "" {
		return r.verb + " " + r.path
	}
	out := r.verb + " " + r.resource
	if r.group != "" {
		out = fmt.Sprintf("%s %s.%s", r.verb, r.resource, r.group)
	}
	if r.name != "" {
		out += " named " + r.name
	}
	return out
}

func (r right) split() (resource, subresource string) {
	resource, subresource, _ = strings.Cut(r.resource, "/")
	return resource, subresource
}

// expand takes rules apart into single rights.
func expand(rules []rbacv1.PolicyRule) []right {
	var out []right
	for i := range rules {
		rule := &rules[i]
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, path := range rule.NonResourceURLs {
				out = append(out, right{verb: verb, path: path})
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						out = append(out, right{verb: verb, group: group, resource: resource, name: name})
					}
				}
			}
		}
	}
	return out
}

// coveredBy says whether a rule grants the right. A wildcard covers whatever it stands for; a right with a wildcard is covered by
// a wildcard alone.
func (r right) coveredBy(rule rbacv1.PolicyRule) bool {
	if !holds(rule.Verbs, r.verb) {
		return false
	}
	if r.path != "" {
		return holds(rule.NonResourceURLs, r.path)
	}
	named := len(rule.ResourceNames) == 0 || r.name != "" && slices.Contains(rule.ResourceNames, r.name)
	return named && holds(rule.APIGroups, r.group) && holds(rule.Resources, r.resource)
}

func holds(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, everything)
}

// dangerous rights are those that lead to any other, and those on secrets.
func (r right) dangerous() bool {
	resource, _ := r.split()
	return slices.Contains([]string{everything, "escalate", "bind", "impersonate"}, r.verb) ||
		strings.Contains(r.group+r.resource+r.path, everything) || resource == "secrets" && r.group == ""
}

// sensitive are rights that nothing the operator does needs, in all namespaces.
func sensitive() []right {
	const rbac = rbacv1.GroupName
	return []right{
		{verb: everything, group: everything, resource: everything},
		{verb: "get", resource: "secrets"},
		{verb: "list", resource: "secrets"},
		{verb: "watch", resource: "secrets"},
		{verb: "create", resource: "secrets"},
		{verb: "get", resource: "configmaps"},
		{verb: "create", resource: "pods"},
		{verb: "create", resource: "pods/exec"},
		{verb: "get", resource: "pods/log"},
		{verb: "patch", resource: "pods/ephemeralcontainers"},
		{verb: "create", resource: "serviceaccounts/token"},
		{verb: "impersonate", resource: "users"},
		{verb: "impersonate", resource: "groups"},
		{verb: "impersonate", resource: "serviceaccounts"},
		{verb: "bind", group: rbac, resource: "clusterroles"},
		{verb: "escalate", group: rbac, resource: "clusterroles"},
		{verb: "bind", group: rbac, resource: "roles"},
		{verb: "escalate", group: rbac, resource: "roles"},
		{verb: "create", group: rbac, resource: "clusterrolebindings"},
		{verb: "create", group: rbac, resource: "rolebindings"},
		{verb: "create", group: "apps", resource: "deployments"},
		{verb: "delete", group: "apps", resource: "deployments"},
		{verb: "create", group: "batch", resource: "jobs"},
		{verb: "delete", resource: "namespaces"},
		{verb: "delete", resource: "persistentvolumeclaims"},
		{verb: "get", resource: "nodes/proxy"},
		{verb: "patch", group: "aiops.example.com", resource: "aitasks"},
		{verb: "update", group: "aiops.example.com", resource: "aitasks"},
		{verb: "delete", group: "aiops.example.com", resource: "aitasks"},
		{verb: "patch", group: "apiextensions.k8s.io", resource: "customresourcedefinitions"},
		{verb: "create", group: "admissionregistration.k8s.io", resource: "validatingwebhookconfigurations"},
		{verb: "create", group: "admissionregistration.k8s.io", resource: "mutatingwebhookconfigurations"},
	}
}
