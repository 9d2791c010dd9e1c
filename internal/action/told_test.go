package action

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// TestAPlanTellsWhatIsToBeDone has the plans that other tests do not look at as a whole.
func TestAPlanTellsWhatIsToBeDone(t *testing.T) {
	pod := func(s *target.State) { s.Pods = []target.Pod{broken("web-0", 0)} }
	tests := map[string]struct {
		action Action
		want   string
	}{
		"Evict":  {NewEvict(failing("", nil), failing("", nil)), "evict 1 unhealthy pod of Deployment/web: web-0"},
		"Notify": {NewNotify(Receiver{Name: "default"}), `notify receiver "default"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan, refusal, err := test.action.Plan(t.Context(), Request{Target: stateOf("Deployment", pod), Now: at(60)})
			if err != nil || refusal != nil {
				t.Fatalf("Plan: %+v, %v", refusal, err)
			}
			if diff := cmp.Diff(test.want, plan.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnOutcomeTellsWhatWasDone runs orders that have left their stamp: the target may look different since, and they are told as recorded.
func TestAnOutcomeTellsWhatWasDone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	tests := map[string]struct {
		action   Action
		recorded string
		want     string
	}{
		"Restart": {NewRestart(nil, nil), "restart Deployment/web", "restarted Deployment/web"},
		"Scale":   {NewScale(nil, nil), "scale Deployment/web from 1 to 2 replicas", "scaled Deployment/web from 1 to 2 replicas"},
		"Rollback": {
			NewRollback(nil, nil), "roll back Deployment/web from revision 8 (web:8) to 7 (web:7)", "rolled back Deployment/web from revision 8 (web:8) to 7 (web:7)",
		},
		"Notify": {NewNotify(Receiver{Name: "default", URL: server.URL}), `notify receiver "default"`, `notified receiver "default"`},
		"recorded by an operator that told it as done": {NewRestart(nil, nil), "restarted Deployment/web", "restarted Deployment/web"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			outcome, err := test.action.Run(t.Context(), Request{
				Task: &aiopsv1.AITask{}, Target: stateOf("Deployment", func(s *target.State) { s.LastOrder = "order-1" }), Now: at(60),
				Order: order(func(o *aiopsv1.Order) { o.Message, o.Replicas = test.recorded, ptr.To[int32](2) }),
			})
			if err != nil || !outcome.Executed {
				t.Fatalf("Run: %+v, %v", outcome, err)
			}
			if diff := cmp.Diff(test.want, outcome.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}
