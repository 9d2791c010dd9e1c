package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// right is one verb on one resource. Its text is what kubectl auth can-i would be asked.
type right struct {
	verb, resource, subresource, group string
	// own says that it holds in the operator's own namespace alone.
	own bool
}

// String is the right's name in the table.
func (r right) String() string {
	out := r.verb + " " + r.resource
	if r.group != "" {
		out += "." + r.group
	}
	if r.subresource != "" {
		out += "/" + r.subresource
	}
	if r.own {
		out += " (own namespace)"
	}
	return out
}

// use is what a right is good for.
type use struct {
	// seen is what users see with it.
	seen string
	// scenario shows it.
	scenario string
}

// uses says of every right of the bundle what it is good for: no right is granted that is not here, and none is here in vain.
func uses() map[string]use {
	return map[string]use{
		"get aitasks.aiops.example.com":          {"a task acts on what its spec says now", "restart"},
		"list aitasks.aiops.example.com":         {"two tasks do not act on one workload at the same time", "restart"},
		"watch aitasks.aiops.example.com":        {"a new task is looked at", "watch"},
		"patch aitasks.aiops.example.com/status": {"a task tells its phase", "watch"},

		"get deployments.apps":   {"a Deployment is acted on as it is now", "restart"},
		"list deployments.apps":  {"an API server without streamed lists is enough", "lists"},
		"watch deployments.apps": {"Deployments are seen", "ready"},
		"patch deployments.apps": {"a Deployment is restarted", "restart"},

		"get statefulsets.apps":   {"a StatefulSet is acted on as it is now", "rollback-stateful"},
		"list statefulsets.apps":  {"an API server without streamed lists is enough", "lists"},
		"watch statefulsets.apps": {"StatefulSets are seen", "ready"},
		"patch statefulsets.apps": {"a StatefulSet is rolled back", "rollback-stateful"},

		"get daemonsets.apps":   {"a DaemonSet is acted on as it is now", "restart-daemon"},
		"list daemonsets.apps":  {"an API server without streamed lists is enough", "lists"},
		"watch daemonsets.apps": {"DaemonSets are seen", "ready"},
		"patch daemonsets.apps": {"a DaemonSet is restarted", "restart-daemon"},

		"get replicasets.apps":   {"a Deployment is rolled back to the template of a revision", "rollback"},
		"list replicasets.apps":  {"a Rollback finds the revision before", "rollback"},
		"watch replicasets.apps": {"the revision in force is known", "ready"},

		"get controllerrevisions.apps":   {"a StatefulSet is rolled back to the template of a revision", "rollback-stateful"},
		"list controllerrevisions.apps":  {"a Rollback finds the revision before", "rollback-stateful"},
		"watch controllerrevisions.apps": {"the revision in force is known", "ready"},

		"get pods":             {"only pods that are still broken are evicted", "evict"},
		"list pods":            {"an API server without streamed lists is enough", "lists"},
		"watch pods":           {"pods are seen", "ready"},
		"delete pods":          {"a broken pod is removed despite its budget, where the step says so", "evict-budget"},
		"create pods/eviction": {"a broken pod is evicted", "evict"},

		"list horizontalpodautoscalers.autoscaling":  {"an API server without streamed lists is enough", "lists"},
		"watch horizontalpodautoscalers.autoscaling": {"replicas are left to an autoscaler", "autoscaler"},

		"get pods.metrics.k8s.io":  {"the usage of one pod is measured", "usage"},
		"list pods.metrics.k8s.io": {"the usage of many pods is measured", "usage-many"},

		"create events.events.k8s.io": {"a transition is told as an event", "event"},

		"create tokenreviews.authentication.k8s.io":        {"metrics are served to who may read them", "metrics"},
		"create subjectaccessreviews.authorization.k8s.io": {"metrics are served to who may read them", "metrics"},

		"create leases.coordination.k8s.io (own namespace)": {"the first replica becomes the leader", "watch"},
		"get leases.coordination.k8s.io (own namespace)":    {"a replica sees whether there is a leader", "watch"},
		"update leases.coordination.k8s.io (own namespace)": {"a leader stays it, and hands over", "hand-over"},
		"create events (own namespace)":                     {"who becomes the leader is told", "event-leader"},
	}
}

// scenarios are the scenarios by name; the last one ends the leader.
func (s *stage) scenarios() map[string]func(*play) {
	return map[string]func(*play){
		"ready": s.getsReady, "lists": s.getsReadyByLists, "watch": s.watches,
		"restart": s.restartsDeployment, "restart-daemon": s.restartsDaemonSet,
		"rollback": s.rollsDeploymentBack, "rollback-stateful": s.rollsStatefulSetBack,
		"evict": s.evicts, "evict-budget": s.evictsDespiteBudget, "autoscaler": s.leavesReplicasToAutoscaler,
		"usage": s.measuresOnePod, "usage-many": s.measuresManyPods,
		"event": s.tells, "event-leader": s.tellsOfLeader,
		"metrics": s.servesMetrics, lastScenario: s.handsOver,
	}
}

const (
	lastScenario = "hand-over"
	// scraperNamespace holds the ServiceAccount that may read metrics.
	scraperNamespace = "default"
	// rightsVariable is the environment variable that says which rights are taken away in turn: each, or those whose names contain
	// its text. Empty: none, and all of them are shown to be used.
	rightsVariable = "AIOPS_RIGHTS"
	eachRight      = "each"
)

// stage is two replicas of the operator under the rights of a release.
type stage struct {
	leader, standby *harness.Process
	// metrics is the address of the leader's metrics endpoint.
	metrics string
	mark    cluster.AuditMark
	// results are the failures of the scenarios that were played, nil where there was none.
	results map[string]error
}

// perform installs a release, plays scenarios on it, and stops its replicas.
func perform(ctx context.Context, program string, release *harness.Release, patience time.Duration, names ...string) *stage {
	GinkgoHelper()
	s := &stage{results: map[string]error{}}
	Expect(client.IgnoreNotFound(admin.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseKey().Namespace, Name: leaseKey().Name}}))).To(Succeed())
	Expect(release.Install(ctx, admin)).To(Succeed())
	inForce(ctx, release)
	var err error
	s.mark, err = kubernetes.AuditMark()
	Expect(err).NotTo(HaveOccurred())
	s.metrics, err = cluster.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	s.leader = s.replica(ctx, program, "leader", harness.ProcessOptions{Flags: []string{"--metrics-bind-address=" + s.metrics}})
	defer s.leader.Kill()
	s.waitForLeader(ctx, patience)
	// A replica that gets no lists streamed falls back to asking for them page by page.
	s.standby = s.replica(ctx, program, "standby", harness.ProcessOptions{Environment: []string{"KUBE_FEATURE_WatchListClient=false"}})
	defer s.standby.Kill()

	scenarios := s.scenarios()
	errs := make(chan struct {
		name string
		err  error
	}, len(names))
	together := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == lastScenario })
	_ = inParallel(together, func(name string) error {
		errs <- struct {
			name string
			err  error
		}{name, attempt(ctx, patience, scenarios[name])}
		return nil
	})
	close(errs)
	for result := range errs {
		s.results[result.name] = result.err
	}
	if slices.Contains(names, lastScenario) {
		s.results[lastScenario] = attempt(ctx, patience, scenarios[lastScenario])
	}
	for name, err := range s.results {
		AddReportEntry(fmt.Sprintf("%s: %s", name, firstLine(err)))
	}
	return s
}

// inForce waits until the API server grants all that was asked for: it learns of roles and bindings a moment after they were made, and the
// operator must not have been denied anything by then.
func inForce(ctx context.Context, release *harness.Release) {
	GinkgoHelper()
	strategy := release.CSV.Spec.InstallStrategy.StrategySpec
	for namespace, entries := range map[string][]operatorsv1alpha1.StrategyDeploymentPermissions{
		metav1.NamespaceAll: strategy.ClusterPermissions, harness.Namespace: strategy.Permissions,
	} {
		for _, entry := range entries {
			for _, rule := range entry.Rules {
				for _, single := range singles(rule) {
					Eventually(mayOperator(ctx, namespace, single)).Should(BeTrue(), "%v", single)
				}
			}
		}
	}
}

// mayOperator asks, for Eventually, whether the operator has a right.
func mayOperator(ctx context.Context, namespace string, single rbacv1.PolicyRule) func() (bool, error) {
	resource, subresource, _ := strings.Cut(single.Resources[0], "/")
	asked := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: operatorUser,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: single.Verbs[0], Group: single.APIGroups[0], Resource: resource, Subresource: subresource,
			Name: strings.Join(single.ResourceNames, ""), // there is at most one
		}}}
	return func() (bool, error) {
		review := asked.DeepCopy()
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	}
}

// waitForLeader gives the first replica time to become the leader. Without the right to it, it does not.
func (s *stage) waitForLeader(ctx context.Context, patience time.Duration) {
	lease := &coordinationv1.Lease{}
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_ = admin.Get(ctx, leaseKey(), lease) // it may not exist yet
		return lease.Spec.HolderIdentity != nil, nil
	}) // the scenarios tell what came of it
}

func (s *stage) replica(ctx context.Context, program, name string, options harness.ProcessOptions) *harness.Process {
	GinkgoHelper()
	options.Name = "rights-" + name
	options.Config = configuration
	process, err := harness.StartProcess(ctx, kubernetes, program, options)
	Expect(err).NotTo(HaveOccurred())
	return process
}

// answers returns what the API server answered to the operator's requests that a right was needed for, as HTTP codes.
func (s *stage) answers() (granted, denied map[right]bool) {
	GinkgoHelper()
	granted, denied = map[right]bool{}, map[right]bool{}
	_, err := kubernetes.AuditEventsSince(s.mark, func(event cluster.AuditEvent) bool {
		if event.User != operatorUser || event.Resource == "" {
			return false
		}
		r := right{verb: event.Verb, resource: event.Resource, subresource: event.Subresource, group: event.APIGroup, own: isOwn(event)}
		switch {
		case event.Code == 403:
			denied[r] = true
		case event.Code != 401:
			granted[r] = true
		}
		return false
	})
	Expect(err).NotTo(HaveOccurred())
	return granted, denied
}

// isOwn says that a request was made for the operator itself, not for a task.
func isOwn(event cluster.AuditEvent) bool {
	return event.Resource == "leases" || event.Resource == "events" && event.APIGroup == ""
}

// shows says whether a right is good for what it is said to be good for.
func (s *stage) shows(r right) error {
	use, found := uses()[r.String()]
	if !found {
		return errors.New("the bundle asks for it, and nobody has said what it is good for")
	}
	if err := s.results[use.scenario]; err != nil {
		return fmt.Errorf("%s: %w", use.seen, err)
	}
	granted, denied := s.answers()
	switch {
	case denied[r]:
		return errors.New("the operator asked for it and was denied")
	case !granted[r]:
		return errors.New("the bundle asks for it, and nothing used it")
	}
	return nil
}

// rightsOf returns the rights that a release asks for.
func rightsOf(release *harness.Release) []right {
	GinkgoHelper()
	var out []right
	strategy := release.CSV.Spec.InstallStrategy.StrategySpec
	for _, entry := range strategy.ClusterPermissions {
		out = append(out, rightsIn(entry, false)...)
	}
	for _, entry := range strategy.Permissions {
		out = append(out, rightsIn(entry, true)...)
	}
	slices.SortFunc(out, func(a, b right) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.subresource, b.subresource), cmp.Compare(a.verb, b.verb))
	})
	return out
}

func rightsIn(entry operatorsv1alpha1.StrategyDeploymentPermissions, own bool) []right {
	GinkgoHelper()
	var out []right
	for _, rule := range entry.Rules {
		Expect(rule.NonResourceURLs).To(BeEmpty())
		for _, single := range singles(rule) {
			out = append(out, rightOf(single, own))
		}
	}
	return out
}

// singles splits a rule into one for each verb and resource.
func singles(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				out = append(out, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames})
			}
		}
	}
	return out
}

func rightOf(single rbacv1.PolicyRule, own bool) right {
	resource, subresource, _ := strings.Cut(single.Resources[0], "/")
	return right{verb: single.Verbs[0], resource: resource, subresource: subresource, group: single.APIGroups[0], own: own}
}

// without returns a release that does not ask for a right.
func without(release *harness.Release, lost right) *harness.Release {
	out := *release
	out.CSV = release.CSV.DeepCopy()
	strategy := &out.CSV.Spec.InstallStrategy.StrategySpec
	strip := func(entries []operatorsv1alpha1.StrategyDeploymentPermissions, own bool) {
		for i := range entries {
			var kept []rbacv1.PolicyRule
			for _, rule := range entries[i].Rules {
				kept = append(kept, slices.DeleteFunc(singles(rule), func(single rbacv1.PolicyRule) bool { return rightOf(single, own) == lost })...)
			}
			entries[i].Rules = kept
		}
	}
	strip(strategy.ClusterPermissions, false)
	strip(strategy.Permissions, true)
	return &out
}

// performed is the performance under all rights, which every spec below looks at.
var performed *stage

var _ = Describe("The rights that the bundle asks for", Ordered, ContinueOnFailure, func() {
	var program string

	BeforeAll(func(ctx context.Context) {
		var err error
		program, err = harness.BuildOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(current.Install(ctx, admin)).To(Succeed())
		DeferCleanup(removeAll)
		Expect(admin.Create(ctx, scraper())).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, scraper())).To(Succeed()) })
		if os.Getenv(rightsVariable) == "" {
			performed = perform(ctx, program, current, 100*time.Second, slices.Collect(maps.Keys((&stage{}).scenarios()))...)
		}
	})

	It("are those that something is said to be good for", func() {
		var asked []string
		for _, r := range rightsOf(current) {
			asked = append(asked, r.String())
		}
		Expect(asked).To(ConsistOf(slices.Collect(maps.Keys(uses()))))
	})

	for _, name := range slices.Sorted(maps.Keys(uses())) {
		It(fmt.Sprintf("%s: %s", name, uses()[name].seen), func() {
			if performed == nil {
				Skip("each right is taken away in turn")
			}
			all := rightsOf(current)
			index := slices.IndexFunc(all, func(r right) bool { return r.String() == name })
			Expect(index).NotTo(Equal(-1), "the bundle does not ask for it")
			Expect(performed.shows(all[index])).To(Succeed())
		})
	}

	It("are all that it needs", func() {
		if performed == nil {
			Skip("each right is taken away in turn")
		}
		_, denied := performed.answers()
		Expect(denied).To(BeEmpty(), "requests of the operator that were denied")
	})

	It("cannot be fewer: without any one of them the spec of its name fails", func(ctx context.Context) {
		if os.Getenv(rightsVariable) == "" {
			Skip("it takes some minutes: make rights")
		}
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		defer table.Flush()
		fmt.Fprintln(table, "\nwithout\tis denied\tand fails\twith")
		for _, r := range chosen(rightsOf(current)) {
			use := uses()[r.String()]
			denied, failure := lose(ctx, program, r, use.scenario)
			fmt.Fprintf(table, "%s\t%t\t%s\t%s\n", r, denied, use.seen, firstLine(failure))
			Expect(denied).To(BeTrue(), "the operator never asked for it: %s", r)
		}
	})
})

// lose plays what a right is good for without it, for longer if nothing has asked for it in a first try.
func lose(ctx context.Context, program string, r right, scenario string) (denied bool, failure error) {
	GinkgoHelper()
	for _, patience := range []time.Duration{15 * time.Second, 100 * time.Second} {
		s := perform(ctx, program, without(current, r), patience, scenario)
		failure = s.shows(r)
		Expect(failure).To(HaveOccurred(), "the spec of the right passes without it: %s", r)
		if _, refused := s.answers(); refused[r] {
			return true, failure
		}
	}
	return false, failure
}

// chosen are the rights that are taken away: each, or those whose names contain the text.
func chosen(all []right) []right {
	text := os.Getenv(rightsVariable)
	return slices.DeleteFunc(all, func(r right) bool { return text != eachRight && !strings.Contains(r.String(), text) })
}

func scraper() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "aiops-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: scraperNamespace, Name: "default"}}}
}
