package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of what OLM makes.
const (
	olmOwner     = "olm.owner"
	olmOwnerKind = "olm.owner.kind"
	olmManaged   = "olm.managed"
	csvKind      = "ClusterServiceVersion"
)

// account is the operator's ServiceAccount, with what its ClusterServiceVersion asks for.
type account struct {
	namespace, name string
	csv             string
	anywhere        []rbacv1.PolicyRule
	inNamespace     []rbacv1.PolicyRule
}

// rightsSufficientAndMinimal compares what the ClusterServiceVersion asks for with what the operator's account may really do: all
// of it, and nothing beyond.
func rightsSufficientAndMinimal(ctx context.Context, s *stage) error {
	who := accountOf(s.CSV, s.operator.Namespace, s.operator.Spec.Template.Spec.ServiceAccountName)
	s.logf("The operator is ServiceAccount %s/%s", who.namespace, who.name)
	grants, err := s.bindings(ctx, who)
	if err != nil {
		return err
	}
	return errors.Join(immodest(who), s.sufficient(ctx, who), excess(who, grants), s.harmless(ctx, who))
}

func accountOf(csv *operatorsv1alpha1.ClusterServiceVersion, namespace, name string) account {
	if name == "" {
		name = "default"
	}
	out := account{namespace: namespace, name: name, csv: csv.Name}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	out.anywhere = rulesFor(strategy.ClusterPermissions, name)
	out.inNamespace = rulesFor(strategy.Permissions, name)
	return out
}

func rulesFor(permissions []operatorsv1alpha1.StrategyDeploymentPermissions, account string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, permission := range permissions {
		if permission.ServiceAccountName == account {
			out = append(out, permission.Rules...)
		}
	}
	return out
}

// immodest looks for what no ClusterServiceVersion of ours asks for.
func immodest(who account) error {
	var problems []error
	for _, one := range expand(slices.Concat(who.anywhere, who.inNamespace)) {
		if one.dangerous() {
			problems = append(problems, fmt.Errorf("the ClusterServiceVersion asks for the right to %s", one))
		}
	}
	return errors.Join(problems...)
}

// sufficient asks the API server for every single right.
func (s *stage) sufficient(ctx context.Context, who account) error {
	var problems []error
	count := 0
	for _, scope := range []struct {
		namespace string
		rules     []rbacv1.PolicyRule
	}{{"", who.anywhere}, {who.namespace, who.inNamespace}} {
		for _, one := range expand(scope.rules) {
			count++
			allowed, err := s.may(ctx, who, scope.namespace, one)
			if err != nil {
				return err
			}
			if !allowed {
				problems = append(problems, fmt.Errorf("the operator may not %s%s, though its ClusterServiceVersion asks for it", one, in(scope.namespace)))
			}
		}
	}
	s.logf("Asked for %d rights of the ClusterServiceVersion", count)
	if count == 0 {
		return fmt.Errorf("the ClusterServiceVersion asks for no right for ServiceAccount %s", who.name)
	}
	return errors.Join(problems...)
}

// harmless asks for what would make the operator's account worth stealing. It also finds what an authorizer other than RBAC grants.
func (s *stage) harmless(ctx context.Context, who account) error {
	var problems []error
	for _, one := range sensitive() {
		allowed, err := s.may(ctx, who, "", one)
		if err != nil {
			return err
		}
		if allowed {
			problems = append(problems, fmt.Errorf("the operator may %s", one))
		}
	}
	s.logf("Asked for %d rights that the operator must not have", len(sensitive()))
	return errors.Join(problems...)
}

func (s *stage) may(ctx context.Context, who account, namespace string, one right) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + who.namespace + ":" + who.name,
		Groups: who.groups(),
	}}
	if one.path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: one.verb, Path: one.path}
	} else {
		resource, subresource := one.split()
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: one.verb, Group: one.group, Resource: resource, Subresource: subresource, Name: one.name}
	}
	if err := s.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether the operator may %s: %w", one, err)
	}
	return review.Status.Allowed, nil
}

func (a account) groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + a.namespace, "system:authenticated"}
}

// grant is a role that is bound to the account, in one namespace or (empty) in all.
type grant struct {
	role      string
	namespace string
	labels    map[string]string
	rules     []rbacv1.PolicyRule
}

// bindings returns every role that is bound to the account by itself or by one of its groups. What Kubernetes itself grants to
// everyone is left out.
func (s *stage) bindings(ctx context.Context, who account) ([]grant, error) {
	var out []grant
	clusterBindings := &rbacv1.ClusterRoleBindingList{}
	if err := s.Client.List(ctx, clusterBindings); err != nil {
		return nil, fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	for i := range clusterBindings.Items {
		binding := &clusterBindings.Items[i]
		if !who.bound(binding.ObjectMeta, "", binding.Subjects) {
			continue
		}
		found, err := s.role(ctx, "", binding.RoleRef)
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	bindings := &rbacv1.RoleBindingList{}
	if err := s.Client.List(ctx, bindings); err != nil {
		return nil, fmt.Errorf("list RoleBindings: %w", err)
	}
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		if !who.bound(binding.ObjectMeta, binding.Namespace, binding.Subjects) {
			continue
		}
		found, err := s.role(ctx, binding.Namespace, binding.RoleRef)
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	return out, nil
}

// bound says whether one of a binding's subjects is the account. A ServiceAccount without a namespace is one of the binding's.
func (a account) bound(binding metav1.ObjectMeta, namespace string, subjects []rbacv1.Subject) bool {
	if binding.Labels["kubernetes.io/bootstrapping"] != "" {
		return false
	}
	return slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool {
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			return subject.Name == a.name && (subject.Namespace == a.namespace || subject.Namespace == "" && namespace == a.namespace)
		case rbacv1.GroupKind:
			return slices.Contains(a.groups(), subject.Name)
		}
		return subject.Name == "system:serviceaccount:"+a.namespace+":"+a.name
	})
}

// role reads what a binding refers to. One that does not exist grants nothing.
func (s *stage) role(ctx context.Context, namespace string, reference rbacv1.RoleRef) (grant, error) {
	out := grant{role: reference.Kind + " " + reference.Name, namespace: namespace}
	var err error
	if reference.Kind == "ClusterRole" {
		role := &rbacv1.ClusterRole{}
		err = s.Client.Get(ctx, client.ObjectKey{Name: reference.Name}, role)
		out.labels, out.rules = role.Labels, role.Rules
	} else {
		role := &rbacv1.Role{}
		err = s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, role)
		out.labels, out.rules = role.Labels, role.Rules
	}
	if client.IgnoreNotFound(err) != nil {
		return grant{}, fmt.Errorf("read %s: %w", out.role, err)
	}
	return out, nil
}

// excess is what the roles grant beyond the ClusterServiceVersion.
func excess(who account, grants []grant) error {
	var problems []error
	for _, granted := range grants {
		allowed := who.allowed(granted)
		for _, one := range expand(granted.rules) {
			if !slices.ContainsFunc(allowed, one.coveredBy) {
				problems = append(problems, fmt.Errorf("%s lets the operator %s%s, which its ClusterServiceVersion does not ask for", granted.role, one, in(granted.namespace)))
			}
		}
	}
	return errors.Join(problems...)
}

// allowed is what a role may grant: what the ClusterServiceVersion asks for in that place, and what OLM adds on its own account. For an
// operator that watches all namespaces it makes the rules of one namespace good for all, and lets it read namespaces; and it gives
// every operator its OperatorCondition.
func (a account) allowed(granted grant) []rbacv1.PolicyRule {
	out := a.anywhere
	if granted.namespace == a.namespace {
		out = slices.Concat(out, a.inNamespace)
		if granted.labels[olmManaged] == "true" {
			out = append(out, rbacv1.PolicyRule{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"},
				ResourceNames: []string{a.csv}, Verbs: []string{"get", "update", "patch"}})
		}
	}
	if granted.namespace == "" && granted.labels[olmOwner] == a.csv && granted.labels[olmOwnerKind] == csvKind {
		out = slices.Concat(out, a.inNamespace, []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}}})
	}
	return out
}

func in(namespace string) string {
	if namespace == "" {
		return " in all namespaces"
	}
	return " in namespace " + namespace
}
