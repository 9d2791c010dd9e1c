package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}

func path(path string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: verbs}
}

func TestExpand(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "pods/eviction"}, Verbs: []string{"get", "list"}},
		named(rule("apps", "deployments", "patch"), "a", "b"),
		path("/metrics", "get"),
	}
	want := []string{
		"get pods", "get pods/eviction", "get pods.apps", "get pods/eviction.apps",
		"list pods", "list pods/eviction", "list pods.apps", "list pods/eviction.apps",
		"patch deployments.apps named a", "patch deployments.apps named b", "get /metrics",
	}
	var got []string
	for _, one := range expand(rules) {
		got = append(got, one.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCoveredBy(t *testing.T) {
	get := right{verb: "get", resource: "pods"}
	tests := map[string]struct {
		right right
		rule  rbacv1.PolicyRule
		want  bool
	}{
		"same":                             {get, rule("", "pods", "list", "get"), true},
		"another verb":                     {get, rule("", "pods", "list"), false},
		"another group":                    {get, rule("metrics.k8s.io", "pods", "get"), false},
		"another resource":                 {get, rule("", "nodes", "get"), false},
		"a subresource":                    {get, rule("", "pods/log", "get"), false},
		"every verb":                       {get, rule("", "pods", "*"), true},
		"every group":                      {get, rule("*", "pods", "get"), true},
		"every resource":                   {get, rule("", "*", "get"), true},
		"one name of all":                  {get, named(rule("", "pods", "get"), "a"), false},
		"a name of all":                    {right{verb: "get", resource: "pods", name: "a"}, rule("", "pods", "get"), true},
		"the name":                         {right{verb: "get", resource: "pods", name: "a"}, named(rule("", "pods", "get"), "a"), true},
		"another name":                     {right{verb: "get", resource: "pods", name: "a"}, named(rule("", "pods", "get"), "b"), false},
		"a wildcard, of one":               {right{verb: "*", resource: "pods"}, rule("", "pods", "get"), false},
		"a path":                           {right{verb: "get", path: "/metrics"}, path("/metrics", "get"), true},
		"another path":                     {right{verb: "get", path: "/metrics"}, path("/healthz", "get"), false},
		"a path, of a rule for everything": {right{verb: "get", path: "/metrics"}, rule("*", "*", "*"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.right.coveredBy(test.rule); got != test.want {
				t.Errorf("coveredBy() = %t, want %t", got, test.want)
			}
		})
	}
}

func TestExcess(t *testing.T) {
	who := account{namespace: "operators", name: "manager", csv: "aiops-operator.v0.1.0",
		anywhere: []rbacv1.PolicyRule{rule("", "pods", "get")}, inNamespace: []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "get")}}
	byOLM := map[string]string{olmOwner: who.csv, olmOwnerKind: csvKind}
	managed := map[string]string{olmManaged: "true"}
	leases, namespaces := rule("coordination.k8s.io", "leases", "get"), rule("", "namespaces", "get", "list", "watch")
	condition := named(rule("operators.coreos.com", "operatorconditions", "get", "update", "patch"), who.csv)
	const beyond = ", which its ClusterServiceVersion does not ask for"
	tests := map[string]struct {
		grant grant
		want  []string
	}{
		"asked for":               {grant{rules: []rbacv1.PolicyRule{rule("", "pods", "get")}}, nil},
		"asked for, in one place": {grant{namespace: "operators", rules: []rbacv1.PolicyRule{rule("", "pods", "get"), leases}}, nil},
		"asked for, in another place": {grant{role: "Role r", namespace: "other", rules: []rbacv1.PolicyRule{leases}},
			[]string{"Role r lets the operator get leases.coordination.k8s.io in namespace other" + beyond}},
		"asked for, but not in all places": {grant{role: "ClusterRole r", rules: []rbacv1.PolicyRule{leases}},
			[]string{"ClusterRole r lets the operator get leases.coordination.k8s.io in all namespaces" + beyond}},
		"one verb too many": {grant{role: "ClusterRole r", rules: []rbacv1.PolicyRule{rule("", "pods", "get", "delete")}},
			[]string{"ClusterRole r lets the operator delete pods in all namespaces" + beyond}},
		"everything": {grant{role: "ClusterRole r", rules: []rbacv1.PolicyRule{rule("*", "*", "*")}},
			[]string{"ClusterRole r lets the operator * *.* in all namespaces" + beyond}},
		"made good for all namespaces by OLM": {grant{labels: byOLM, rules: []rbacv1.PolicyRule{leases, namespaces}}, nil},
		"of another package's OLM role": {grant{role: "ClusterRole r", labels: map[string]string{olmOwner: "other.v1", olmOwnerKind: csvKind}, rules: []rbacv1.PolicyRule{leases}},
			[]string{"ClusterRole r lets the operator get leases.coordination.k8s.io in all namespaces" + beyond}},
		"more than OLM adds": {grant{role: "ClusterRole r", labels: byOLM, rules: []rbacv1.PolicyRule{rule("", "namespaces", "delete")}},
			[]string{"ClusterRole r lets the operator delete namespaces in all namespaces" + beyond}},
		"its OperatorCondition": {grant{namespace: "operators", labels: managed, rules: []rbacv1.PolicyRule{condition}}, nil},
		"another OperatorCondition": {grant{role: "Role r", namespace: "operators", labels: managed, rules: []rbacv1.PolicyRule{named(condition, "other")}}, []string{
			"Role r lets the operator get operatorconditions.operators.coreos.com named other in namespace operators" + beyond,
			"Role r lets the operator update operatorconditions.operators.coreos.com named other in namespace operators" + beyond,
			"Role r lets the operator patch operatorconditions.operators.coreos.com named other in namespace operators" + beyond,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := excess(who, []grant{test.grant}); err != nil {
				got = messages(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBound(t *testing.T) {
	who := account{namespace: "operators", name: "manager"}
	tests := map[string]struct {
		binding   metav1.ObjectMeta
		namespace string
		subject   rbacv1.Subject
		want      bool
	}{
		"the account":             {subject: rbacv1.Subject{Kind: "ServiceAccount", Namespace: "operators", Name: "manager"}, want: true},
		"of another name":         {subject: rbacv1.Subject{Kind: "ServiceAccount", Namespace: "operators", Name: "other"}},
		"of another namespace":    {subject: rbacv1.Subject{Kind: "ServiceAccount", Namespace: "other", Name: "manager"}},
		"of the binding's":        {namespace: "operators", subject: rbacv1.Subject{Kind: "ServiceAccount", Name: "manager"}, want: true},
		"of the binding's, other": {namespace: "other", subject: rbacv1.Subject{Kind: "ServiceAccount", Name: "manager"}},
		"by its user name":        {subject: rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:operators:manager"}, want: true},
		"another user":            {subject: rbacv1.Subject{Kind: "User", Name: "manager"}},
		"by its namespace":        {subject: rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:operators"}, want: true},
		"by everyone":             {subject: rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}, want: true},
		"by Kubernetes itself": {binding: metav1.ObjectMeta{Labels: map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}},
			subject: rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}},
		"another group": {subject: rbacv1.Subject{Kind: "Group", Name: "system:masters"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := who.bound(test.binding, test.namespace, []rbacv1.Subject{test.subject}); got != test.want {
				t.Errorf("bound() = %t, want %t", got, test.want)
			}
		})
	}
}

func TestImmodest(t *testing.T) {
	tests := map[string]struct {
		rule rbacv1.PolicyRule
		want string
	}{
		"modest":             {rule("apps", "deployments", "patch"), ""},
		"a path":             {path("/metrics", "get"), ""},
		"secrets":            {rule("", "secrets", "get"), "get secrets"},
		"secrets of a group": {rule("example.com", "secrets", "get"), ""},
		"every verb":         {rule("", "pods", "*"), "* pods"},
		"every resource":     {rule("", "*", "get"), "get *"},
		"every subresource":  {rule("", "*/scale", "get"), "get */scale"},
		"every group":        {rule("*", "pods", "get"), "get pods.*"},
		"every path":         {path("*", "get"), "get *"},
		"bind":               {rule("rbac.authorization.k8s.io", "roles", "bind"), "bind roles.rbac.authorization.k8s.io"},
		"escalate":           {rule("rbac.authorization.k8s.io", "roles", "escalate"), "escalate roles.rbac.authorization.k8s.io"},
		"impersonate":        {rule("", "users", "impersonate"), "impersonate users"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, want := "", ""
			if err := immodest(account{anywhere: []rbacv1.PolicyRule{test.rule}}); err != nil {
				got = err.Error()
			}
			if test.want != "" {
				want = "the ClusterServiceVersion asks for the right to " + test.want
			}
			if got != want {
				t.Errorf("immodest() = %q, want %q", got, want)
			}
		})
	}
}
