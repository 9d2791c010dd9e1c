package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

func TestScalePlan(t *testing.T) {
	autoscaled := func(s *target.State) { s.Autoscaler = &target.Autoscaler{Summary: "HorizontalPodAutoscaler/web"} }
	inGit := func(s *target.State) { s.ReplicasAppliedBy = "argocd-controller" }
	at := func(replicas int32) func(*target.State) { return func(s *target.State) { s.Replicas = replicas } }
	tests := map[string]struct {
		state   target.State
		step    aiopsv1.Step
		order   *aiopsv1.Order
		want    int32
		message string
		reason  string
		refused string
	}{
		"up":        {stateOf("Deployment"), scaleStep(number(2), nil, nil, number(6)), nil, 5, "scale Deployment/web from 3 to 5 replicas", "", ""},
		"up to max": {stateOf("Deployment"), scaleStep(number(9), nil, nil, number(6)), nil, 6, "scale Deployment/web from 3 to 6 replicas", "", ""},
		"down":      {stateOf("StatefulSet"), scaleStep(number(-2), nil, nil, number(6)), nil, 1, "scale StatefulSet/web from 3 to 1 replicas", "", ""},
		"down to the default minimum of one": {
			stateOf("Deployment"), scaleStep(number(-3), nil, nil, number(6)), nil, 1, "scale Deployment/web from 3 to 1 replicas", "", "",
		},
		"down to zero where min says so": {
			stateOf("Deployment"), scaleStep(nil, number(0), number(0), number(6)), nil, 0, "scale Deployment/web from 3 to 0 replicas", "", "",
		},
		"to a number":  {stateOf("Deployment"), scaleStep(nil, number(5), nil, number(6)), nil, 5, "scale Deployment/web from 3 to 5 replicas", "", ""},
		"from nothing": {stateOf("Deployment", at(0)), scaleStep(number(1), nil, nil, number(6)), nil, 1, "scale Deployment/web from 0 to 1 replicas", "", ""},
		"the recorded order counts from what it recorded": {
			stateOf("Deployment", at(4)), scaleStep(number(1), nil, nil, number(6)), order(), 4, "scale Deployment/web from 3 to 4 replicas", "", "",
		},
		"at max": {
			stateOf("Deployment", at(6)), scaleStep(number(1), nil, nil, number(6)), nil, 0, "", aiopsv1.ReasonAtLimit, "Deployment/web is at 6 of max 6",
		},
		"at min": {
			stateOf("Deployment", at(2)), scaleStep(number(-1), nil, number(2), number(6)), nil, 0, "", aiopsv1.ReasonAtLimit, "Deployment/web is at 2 of min 2",
		},
		"already there": {
			stateOf("Deployment"), scaleStep(nil, number(3), nil, number(6)), nil, 0, "", aiopsv1.ReasonAtLimit,
			"Deployment/web is at the 3 replicas that the step sets",
		},
		"a maximum below the replicas never scales down": {
			stateOf("Deployment", at(6)), scaleStep(number(1), nil, nil, number(4)), nil, 0, "", aiopsv1.ReasonAtLimit,
			`Deployment/web is at 6, above max 4 of steps["more"]: raise max`,
		},
		"a minimum above the replicas never scales up": {
			stateOf("Deployment", at(1)), scaleStep(number(-1), nil, number(2), number(6)), nil, 0, "", aiopsv1.ReasonAtLimit,
			`Deployment/web is at 1, below min 2 of steps["more"]: lower min`,
		},
		"autoscaled": {
			stateOf("Deployment", autoscaled), scaleStep(number(1), nil, nil, number(6)), nil, 0, "", aiopsv1.ReasonOwnedByAutoscaler,
			"HorizontalPodAutoscaler/web sets replicas of Deployment/web; a Scale step would be undone. Raise its minReplicas, or use another step",
		},
		"replicas in Git": {
			stateOf("Deployment", inGit), scaleStep(number(1), nil, nil, number(6)), nil, 0, "", aiopsv1.ReasonOwnedByGitOps,
			"spec.replicas of Deployment/web is applied by argocd-controller",
		},
		"DaemonSet": {stateOf("DaemonSet"), scaleStep(number(1), nil, nil, number(6)), nil, 0, "", aiopsv1.ReasonUnsupported, "no replicas to set"},
		"deleting": {
			stateOf("Deployment", func(s *target.State) { s.Deleting = true }), scaleStep(number(1), nil, nil, number(6)), nil, 0, "",
			aiopsv1.ReasonTargetDeleting, "is being deleted",
		},
		"no bound": {stateOf("Deployment"), scaleStep(number(1), nil, nil, nil), nil, 0, "", aiopsv1.ReasonInvalidSpec, "needs max"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan, refusal, err := NewScale(nil, nil).Plan(t.Context(), Request{Step: test.step, Target: test.state, Order: test.order})
			if err != nil {
				t.Fatal(err)
			}
			if test.reason != "" {
				checkRefusal(t, refusal, test.reason, test.refused, false)
				return
			}
			want := Plan{Replicas: &test.want, Message: test.message}
			if diff := cmp.Diff(want, plan); diff != "" || refusal != nil {
				t.Errorf("Plan (-want +got):\n%s\nrefusal: %+v", diff, refusal)
			}
		})
	}
}

func checkRefusal(t *testing.T, got *Refusal, reason, message string, wait bool) {
	t.Helper()
	if got == nil {
		t.Fatalf("there is no refusal, want %s", reason)
	}
	if got.Reason != reason || !strings.Contains(got.Message, message) || got.Wait != wait {
		t.Errorf("Refusal: %+v, want %s with %q, wait %t", got, reason, message, wait)
	}
}

func TestRestartPlan(t *testing.T) {
	tests := map[string]struct {
		state  target.State
		want   Plan
		reason string
	}{
		"Deployment": {
			stateOf("Deployment", func(s *target.State) { s.Pods = []target.Pod{broken("web-1", 0)} }), Plan{Message: "restart Deployment/web"}, "",
		},
		"ordered StatefulSet frees broken pods": {
			stateOf("StatefulSet", func(s *target.State) { s.Ordered, s.Pods = true, []target.Pod{broken("web-1", 0)} }),
			Plan{Message: "restart StatefulSet/web", PodUIDs: []string{"web-1-uid"}}, "",
		},
		"paused":    {stateOf("Deployment", func(s *target.State) { s.Paused = true }), Plan{}, aiopsv1.ReasonTargetPaused},
		"on delete": {stateOf("DaemonSet", func(s *target.State) { s.OnDelete = true }), Plan{}, aiopsv1.ReasonUnsupported},
		"held back": {stateOf("StatefulSet", func(s *target.State) { s.HeldBack = true }), Plan{}, aiopsv1.ReasonUnsupported},
		"deleting":  {stateOf("DaemonSet", func(s *target.State) { s.Deleting = true }), Plan{}, aiopsv1.ReasonTargetDeleting},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan, refusal, err := NewRestart(nil, nil).Plan(t.Context(), Request{Target: test.state, Now: at(0)})
			if err != nil {
				t.Fatal(err)
			}
			if test.reason != "" {
				checkRefusal(t, refusal, test.reason, "", false)
				return
			}
			if diff := cmp.Diff(test.want, plan); diff != "" || refusal != nil {
				t.Errorf("Plan (-want +got):\n%s\nrefusal: %+v", diff, refusal)
			}
		})
	}
}

func TestUnhealthyPods(t *testing.T) {
	ready := target.Pod{Name: "ready", Scheduled: true, Ready: true, EverReady: true}
	starting := target.Pod{Name: "starting", Scheduled: true, CreationTime: at(-30)}
	slow := target.Pod{Name: "slow", Scheduled: true, CreationTime: at(-90)}
	waiting := target.Pod{Name: "waiting", CreationTime: at(-3600)}
	crashing := target.Pod{Name: "crashing", Scheduled: true, CreationTime: at(-10), Containers: []target.Container{{WaitingReason: "CrashLoopBackOff"}}}
	pulling := target.Pod{Name: "pulling", Scheduled: true, CreationTime: at(-10), Containers: []target.Container{{WaitingReason: "ContainerCreating"}}}
	tests := map[string]struct {
		pods  []target.Pod
		grace *int32
		want  []string
	}{
		"none":                                         {[]target.Pod{ready, starting, pulling, waiting}, nil, nil},
		"a pod that has been starting for long":        {[]target.Pod{slow}, nil, []string{"slow"}},
		"the task's own grace is longer":               {[]target.Pod{slow}, number(120), nil},
		"a shorter grace is not shorter than a minute": {[]target.Pod{starting}, number(0), nil},
		"crash-looping at any age":                     {[]target.Pod{crashing}, number(120), []string{"crashing"}},
		"the longest unhealthy first":                  {[]target.Pod{broken("b", -10), broken("a", -10), crashing, broken("old", -500), slow}, nil, []string{"old", "slow", "a", "b", "crashing"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			task := &aiopsv1.AITask{Spec: aiopsv1.AITaskSpec{StartupGraceSeconds: test.grace}}
			got := unhealthyPods(Request{Task: task, Target: target.State{Pods: test.pods}, Now: at(0)})
			if diff := cmp.Diff(test.want, namesOf(got), cmp.Transformer("empty", func(in []string) []string { return append([]string{}, in...) })); diff != "" {
				t.Errorf("unhealthyPods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingToEvictIsWaitedForWhereItEndsByItself(t *testing.T) {
	ready := target.Pod{Name: "ready", Scheduled: true, Ready: true, EverReady: true}
	starting := target.Pod{Name: "starting", Scheduled: true, CreationTime: at(-30)}
	waiting := target.Pod{Name: "waiting", CreationTime: at(-3600)}
	tests := map[string]struct {
		available int32
		pods      []target.Pod
		want      bool
	}{
		"all is well":                      {3, []target.Pod{ready, ready, ready}, false},
		"a pod is missing":                 {2, []target.Pod{ready, ready}, false},
		"a pod waits for a node":           {2, []target.Pod{ready, ready, waiting}, false},
		"a pod is starting":                {2, []target.Pod{ready, ready, starting}, true},
		"the pods are seen as they were":   {2, []target.Pod{ready, ready, ready}, true},
		"the workload is seen as it was":   {3, []target.Pod{ready, ready, waiting}, false},
		"nothing is ready, nothing counts": {0, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := stateOf("Deployment", func(s *target.State) { s.Available, s.Pods = test.available, test.pods })
			_, refusal, err := NewEvict(nil, nil).Plan(t.Context(), Request{Target: state, Now: at(0)})
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, refusal, aiopsv1.ReasonNothingToEvict, "no pod of Deployment/web is unhealthy", test.want)
		})
	}
}

func TestChoose(t *testing.T) {
	a, b, c := broken("a", -30), broken("b", -20), broken("c", -10)
	tests := map[string]struct {
		recorded  []string
		present   []target.Pod
		qualified []target.Pod
		want      []string
	}{
		"no order":                       {nil, []target.Pod{a, b, c}, []target.Pod{a, b, c}, []string{"a-uid", "b-uid"}},
		"the recorded choice stands":     {[]string{"b-uid", "c-uid"}, []target.Pod{a, b, c}, []target.Pod{a, b, c}, []string{"b-uid", "c-uid"}},
		"what is gone is still recorded": {[]string{"b-uid", "gone"}, []target.Pod{a, b}, []target.Pod{a, b}, []string{"b-uid", "gone"}},
		"a healthy one ends it":          {[]string{"b-uid", "c-uid"}, []target.Pod{a, b, c}, []target.Pod{a, b}, []string{"a-uid", "b-uid"}},
		"no more than the step allows":   {[]string{"a-uid", "b-uid", "c-uid"}, []target.Pod{a, b, c}, []target.Pod{a, b, c}, []string{"a-uid", "b-uid"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := Request{Target: target.State{Pods: test.present}}
			if test.recorded != nil {
				request.Order = &aiopsv1.Order{PodUIDs: test.recorded}
			}
			if diff := cmp.Diff(test.want, uidsOf(choose(request, test.qualified, 2))); diff != "" {
				t.Errorf("choose (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPick(t *testing.T) {
	revisions := func(numbers ...int64) []revision {
		var out []revision
		for _, number := range numbers {
			made := revision{name: names("r", 20)[number], number: number}
			made.template.Spec.Containers = []corev1.Container{{Image: made.name}}
			out = append(out, made)
		}
		return out
	}
	eight := &revision{name: "r8", number: 8}
	tests := map[string]struct {
		current *revision
		others  []revision
		healthy string
		left    string
		want    string
	}{
		"the one before":                       {eight, revisions(5, 7, 6), "", "", "r7"},
		"the proven one":                       {eight, revisions(5, 7, 6), "r5", "", "r5"},
		"the proven one even if it is newer":   {eight, revisions(7, 9), "r9", "", "r9"},
		"the proven one is gone":               {eight, revisions(5, 7), "r2", "", "r7"},
		"the proven one is in force":           {eight, revisions(5, 7), "r8", "", "r7"},
		"never back to what a rollback left":   {eight, revisions(5, 7), "", "r7", "r5"},
		"but if it was proven since":           {eight, revisions(5, 7), "r7", "r7", "r7"},
		"newer ones are not earlier":           {eight, revisions(9), "", "", ""},
		"none":                                 {eight, nil, "r8", "", ""},
		"nobody has recorded the one in force": {nil, revisions(5, 7), "", "", "r7"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if goal := pick(test.current, test.others, test.healthy, test.left); goal != nil {
				got = goal.name
			}
			if got != test.want {
				t.Errorf("pick: %q, want %q", got, test.want)
			}
		})
	}
}

func TestRollbackRefusals(t *testing.T) {
	tests := map[string]struct {
		option  func(*target.State)
		reason  string
		message string
	}{
		"in Git": {
			func(s *target.State) { s.TemplateAppliedBy = "argocd-controller" }, aiopsv1.ReasonOwnedByGitOps,
			"spec.template of Deployment/web is applied by argocd-controller; a rollback would be reverted. Roll back in Git, or use Notify",
		},
		"paused":    {func(s *target.State) { s.Paused = true }, aiopsv1.ReasonTargetPaused, "Set spec.paused to false"},
		"on delete": {func(s *target.State) { s.OnDelete = true }, aiopsv1.ReasonUnsupported, "Use an Evict step"},
		"held back": {func(s *target.State) { s.HeldBack = true }, aiopsv1.ReasonUnsupported, "partition below its 3 replicas, or use an Evict step"},
		"deleting":  {func(s *target.State) { s.Deleting = true }, aiopsv1.ReasonTargetDeleting, "is being deleted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := Request{Target: stateOf("Deployment", test.option), Order: order()}
			_, refusal, err := NewRollback(nil, nil).Plan(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, refusal, test.reason, test.message, false)
			outcome, err := NewRollback(nil, nil).Run(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, outcome.Refusal, test.reason, test.message, false)
		})
	}
}

func TestDescriptions(t *testing.T) {
	template := func(images ...string) corev1.PodTemplateSpec {
		var out corev1.PodTemplateSpec
		for _, image := range images {
			out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Image: image})
		}
		return out
	}
	tests := map[string]struct{ got, want string }{
		"one image":      {(&revision{number: 8, template: template("shop/web:2")}).String(), "8 (shop/web:2)"},
		"several images": {(&revision{number: 8, template: template("shop/web:2", "proxy:1", "log:3")}).String(), "8 (shop/web:2 and 2 more)"},
		"few names":      {list(names("p", 3)), "p0, p1, p2"},
		"many names":     {list(names("p", 16)), "p0, p1, p2, p3 and 12 more"},
		"bounded":        {quote(strings.Repeat("x", 5000)), strings.Repeat("x", maxQuoted) + "..."},
		"one pointer":    {annotationPath("/metadata", "a.b/c~d"), "/metadata/annotations/a.b~1c~0d"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("got %q, want %q", test.got, test.want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	set := NewSet(NewRestart(nil, nil), NewScale(nil, nil))
	if found, ok := set.Lookup(aiopsv1.ActionScale); !ok || found.Type() != aiopsv1.ActionScale {
		t.Errorf("Lookup(Scale): %v, %t", found, ok)
	}
	if _, ok := set.Lookup(aiopsv1.ActionEvict); ok {
		t.Error("Lookup(Evict) found an action that is not in the set")
	}
}

func TestRunNeedsAnOrder(t *testing.T) {
	notify := NewNotify(Receiver{Name: "default"})
	for _, action := range []Action{NewRestart(nil, nil), NewEvict(nil, nil), NewScale(nil, nil), NewRollback(nil, nil), notify} {
		for name, order := range map[string]*aiopsv1.Order{"none": nil, "without a precondition": ptr.To(aiopsv1.Order{})} {
			t.Run(string(action.Type())+" "+name, func(t *testing.T) {
				if outcome, err := action.Run(t.Context(), Request{Target: stateOf("Deployment"), Order: order}); err == nil {
					t.Errorf("Run: %+v, want an error", outcome)
				}
			})
		}
	}
}
