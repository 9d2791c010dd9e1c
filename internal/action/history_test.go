package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/aiops-operator/internal/target"
)

func TestControllerRevisionTemplate(t *testing.T) {
	tests := map[string]struct {
		data    string
		want    string
		failure string
	}{
		"as the controllers write it": {
			`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main"}]}}}}`,
			`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main"}]}}`, "",
		},
		"no template": {`{"spec":{}}`, "", "holds no pod template"},
		"garbage":     {`[`, "", "decode ControllerRevision db-1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := controllerRevisionTemplate(&appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Name: "db-1"}, Data: runtime.RawExtension{Raw: []byte(test.data)},
			})
			if string(got) != test.want || (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
				t.Errorf("controllerRevisionTemplate: %s, %v, want %s, %s", got, err, test.want, test.failure)
			}
		})
	}
}

func TestReplicaSetTemplate(t *testing.T) {
	replicaSet := &appsv1.ReplicaSet{}
	replicaSet.Spec.Template.Labels = map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "abc"}
	want := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	if diff := cmp.Diff(want, replicaSetTemplate(replicaSet)); diff != "" {
		t.Errorf("replicaSetTemplate (-want +got):\n%s", diff)
	}
	if len(replicaSet.Spec.Template.Labels) != 2 {
		t.Error("the ReplicaSet itself was changed")
	}
}

func TestSplit(t *testing.T) {
	named := func(name, image string, number int64) revision {
		out := revision{name: name, number: number}
		out.template.Spec.Containers = []corev1.Container{{Image: image}}
		return out
	}
	restarted := func(of revision) revision {
		of.template.Annotations = map[string]string{restartedAt: of.name}
		return of
	}
	workload := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "web-uid", Generation: 4}}
	workload.Spec.Template.Spec.Containers = []corev1.Container{{Image: "web:2"}}
	tests := map[string]struct {
		revisions []revision
		state     target.State
		current   string
		others    []string
	}{
		"by content": {
			[]revision{named("a", "web:1", 1), named("b", "web:2", 2)}, target.State{}, "b", []string{"a"},
		},
		"the newest of two with the same content": {
			[]revision{named("a", "web:2", 3), named("b", "web:2", 2)}, target.State{}, "a", nil,
		},
		"by name, when an older API server wrote its defaults": {
			[]revision{named("a", "web:1", 1), named("b", "web:2-without-defaults", 2)},
			target.State{UID: "web-uid", Generation: 4, Revision: "b"}, "b", []string{"a"},
		},
		"a restart is no other revision": {
			[]revision{named("a", "web:1", 1), named("b", "web:2", 2), restarted(named("c", "web:2", 3))},
			target.State{UID: "web-uid", Generation: 4, Revision: "c"}, "c", []string{"a"},
		},
		"a restart that the controller has not seen yet": {
			[]revision{named("a", "web:1", 1), restarted(named("b", "web:2", 2))}, target.State{}, "b", []string{"a"},
		},
		"back to a revision from before a restart": {
			[]revision{named("a", "web:2", 1), restarted(named("b", "web:2", 2))},
			target.State{UID: "web-uid", Generation: 4, Revision: "a"}, "a", nil,
		},
		"a restart of what an older API server defaulted": {
			[]revision{named("a", "web:1", 1), named("b", "web:2-without-defaults", 2), restarted(named("c", "web:2-without-defaults", 3))},
			target.State{UID: "web-uid", Generation: 4, Revision: "c"}, "c", []string{"a"},
		},
		"two restarts of something else are others": {
			[]revision{restarted(named("a", "web:1", 1)), named("b", "web:1", 2)}, target.State{}, "", []string{"a", "b"},
		},
		"a name that speaks of an older generation does not count": {
			[]revision{named("a", "web:1", 1)}, target.State{UID: "web-uid", Generation: 3, Revision: "a"}, "", []string{"a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			current, others := split(workload, test.revisions, inForce(&test.state, workload))
			got := ""
			if current != nil {
				got = current.name
			}
			var names []string
			for _, other := range others {
				names = append(names, other.name)
			}
			if diff := cmp.Diff(test.others, names); diff != "" || got != test.current {
				t.Errorf("split: current %q, want %q; others (-want +got):\n%s", got, test.current, diff)
			}
		})
	}
}

func TestRollbackGoesBackBeyondRestarts(t *testing.T) {
	template := func(image, restarted string) corev1.PodTemplateSpec {
		var out corev1.PodTemplateSpec
		out.Spec.Containers = []corev1.Container{{Image: image}}
		if restarted != "" {
			out.Annotations = map[string]string{restartedAt: restarted, "kept": "in both"}
		} else {
			out.Annotations = map[string]string{"kept": "in both"}
		}
		return out
	}
	tests := map[string]struct {
		inForce   corev1.PodTemplateSpec
		revisions []revision
		named     string
		healthy   string
		left      string
		want      string
	}{
		"from a bad image that was restarted": {
			inForce:   template("web:bad", "1"),
			revisions: []revision{{"web-7", 7, template("web:good", "")}, {"web-8", 8, template("web:bad", "")}, {"web-9", 9, template("web:bad", "1")}},
			named:     "web-9", want: "web-7",
		},
		"not from a restart to the same proven image": {
			inForce:   template("web:good", "1"),
			revisions: []revision{{"web-8", 8, template("web:good", "")}, {"web-9", 9, template("web:good", "1")}},
			named:     "web-9", healthy: "web-8",
		},
		"to the proven image, restarted": {
			inForce:   template("web:bad", "2"),
			revisions: []revision{{"web-7", 7, template("web:good", "1")}, {"web-8", 8, template("web:bad", "1")}, {"web-9", 9, template("web:bad", "2")}},
			named:     "web-9", healthy: "web-7", want: "web-7",
		},
		"not to the unrestarted form of what a rollback left": {
			inForce:   template("web:good", ""),
			revisions: []revision{{"web-10", 10, template("web:good", "")}, {"web-8", 8, template("web:bad", "")}, {"web-9", 9, template("web:bad", "1")}},
			named:     "web-10", left: "web-9",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			workload := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: test.inForce}}
			current, others := split(workload, test.revisions, test.named)
			got := ""
			if goal := pick(current, others, test.healthy, test.left); goal != nil {
				got = goal.name
			}
			if got != test.want {
				t.Errorf("goes back to %q, want %q", got, test.want)
			}
		})
	}
}

func TestUnreadyOfRestartedContent(t *testing.T) {
	state := target.State{Pods: []target.Pod{
		{Name: "ready", Ready: true, Revision: "bad"}, {Name: "bad", Revision: "bad"}, {Name: "restarted", Revision: "bad-restarted"},
		{Name: "older", Revision: "good"}, {Name: "unknown"},
	}}
	got := namesOf(unreadyOf(&state, []revision{{name: "good"}}))
	if diff := cmp.Diff([]string{"bad", "restarted"}, got); diff != "" {
		t.Errorf("unreadyOf (-want +got):\n%s", diff)
	}
}
