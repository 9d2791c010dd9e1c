package runbook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestFailedStepSaysWhatFollows(t *testing.T) {
	onlyPass := int32(1)
	for name, test := range map[string]struct {
		change func(*aiopsv1.AITaskSpec)
		want   string
	}{
		"the next step": {func(*aiopsv1.AITaskSpec) {}, `Step "restart" 1/2: no recovery within 600s; step "back" (Rollback) follows`},
		"nothing":       {func(spec *aiopsv1.AITaskSpec) { spec.Steps[0].OnFailure = aiopsv1.OnFailureStop }, `Step "restart" 1/2: no recovery within 600s; nothing more is done`},
		"another pass":  {func(spec *aiopsv1.AITaskSpec) { spec.Steps = spec.Steps[:1] }, `Step "restart" 1/1: no recovery within 600s; pass 2 of 3 begins with step "restart"`},
		"no further pass": {func(spec *aiopsv1.AITaskSpec) {
			spec.Steps, spec.Limits = spec.Steps[:1], &aiopsv1.Limits{MaxPasses: &onlyPass}
		}, `Step "restart" 1/1: no recovery within 600s; nothing more is done`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(step("restart", aiopsv1.ActionRestart), step("back", aiopsv1.ActionRollback))
			test.change(&spec)
			s := verifying(t, spec)
			s.now = s.now.Add(600 * time.Second)
			var got []string
			for _, event := range Next(s.input()).Events {
				if event.Reason == EventStepFailed {
					got = append(got, event.Message)
				}
			}
			if difference := cmp.Diff([]string{test.want}, got); difference != "" {
				t.Errorf("events StepFailed (-want +got):\n%s", difference)
			}
		})
	}
}
