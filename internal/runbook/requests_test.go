package runbook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// ask writes a request of now, shifted, as kubectl annotate does.
func (s *story) ask(annotation string, shift time.Duration) {
	s.annotate(annotation, string(taskUID)+"/"+clock(s.now.Add(shift)))
}

func (s *story) annotate(annotation, value string) {
	if s.task.Annotations == nil {
		s.task.Annotations = map[string]string{}
	}
	s.task.Annotations[annotation] = value
}

func TestARunOnAHealthyWorkloadRunsTheStepOnce(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(2 * time.Hour)
	s.wantWords("+0s Acting/Ordered", "+0s run Restart", "+0s Verifying/Verifying", "+0s event ActionExecuted",
		"+60s Watching/Recovered", "+60s event Recovered", "+3660s Watching/Healthy")
	if got := s.task.Status.History[0]; got.Cause != aiopsv1.CauseRun || got.Result != aiopsv1.ResultRecovered {
		t.Errorf("history %+v", got)
	}
}

func TestARunDoesNotWaitForTheSignalToBeKnown(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.blind()
	s.ask(aiopsv1.RunAnnotation, 0)
	s.settle()
	s.wantWords("+0s Acting/Ordered", "+0s warning SignalUnknown", "+0s run Restart", "+0s Verifying/Verifying", "+0s event ActionExecuted")
}

func TestARequestedStepKeepsTheLimits(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.LastActionTime = start().Add(-time.Minute)
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(241 * time.Second)
	s.wantWords("+0s Blocked/Cooldown", "+0s warning Blocked", "+240s Acting/Ordered", "+240s run Restart", "+240s Verifying/Verifying", "+240s event ActionExecuted")
}

func TestARequestThatCouldNotBeginInTimeExpires(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Limits.CooldownSeconds = pointer(int32(3600))
	s := newStory(t, spec)
	s.target.LastActionTime = start().Add(-time.Minute)
	s.ask(aiopsv1.RunAnnotation, -2*time.Minute)
	s.target.LastActionTime = start().Add(-3 * time.Minute)
	s.wait(479 * time.Second)
	s.wantWords("+0s Blocked/Cooldown", "+0s warning Blocked")
	s.wait(2 * time.Hour)
	s.wantLog("+480s Watching/Healthy",
		"+480s warning RequestRefused: RequestExpired: the run could not begin within 600s of the request; ask again if it is still wanted")
	if s.task.Status.Incident != nil || len(s.runs) != 0 {
		t.Errorf("incident %+v, runs %v, want none", s.task.Status.Incident, s.runs)
	}
}

func TestAnExpiredRequestLeavesTheIncidentThatWasThere(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.LastActionTime = start().Add(-time.Minute)
	s.task.Spec.Limits.CooldownSeconds = pointer(int32(7200))
	s.breach()
	s.wait(2 * time.Minute)
	incident := s.task.Status.Incident.ID
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(time.Minute)
	if got := s.task.Status.Incident; got.ID != incident || got.Cause != aiopsv1.CauseRun {
		t.Errorf("incident %+v, want %s with cause Run", got, incident)
	}
	s.wait(20 * time.Minute)
	if got := s.task.Status.Incident; got == nil || got.ID != incident || got.Cause != aiopsv1.CauseIncident {
		t.Errorf("incident %+v, want %s with cause Incident", got, incident)
	}
	s.heal()
	s.wait(2 * time.Minute)
	if got := s.log[len(s.log)-1]; !strings.Contains(got, "event Recovered") {
		t.Errorf("last word %q, want the recovery", got)
	}
}

func TestARefusedRunLeavesAHealthyTaskAlone(t *testing.T) {
	stop := step("more", aiopsv1.ActionScale)
	stop.OnFailure = aiopsv1.OnFailureStop
	s := newStory(t, specOf(stop, step("restart", aiopsv1.ActionRestart)))
	s.refusals["more"] = refusal(aiopsv1.ReasonOwnedByAutoscaler, false)
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(time.Hour)
	s.wantLog("+0s Watching/Healthy", `+0s warning StepRefused: Step "more" 1/2 (Scale): OwnedByAutoscaler: says OwnedByAutoscaler`)
	if s.task.Status.Incident != nil {
		t.Errorf("incident %+v, want none", s.task.Status.Incident)
	}
}

func TestARunInModeObserveIsRecordedAndLeavesNoIncident(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Mode = aiopsv1.ModeObserve
	s := newStory(t, spec)
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(time.Hour)
	s.wantLog("+0s Watching/Healthy", `+0s event Observed: Step "restart" 1/1: Mode Observe: would run Restart on Deployment/web`)
	if s.task.Status.Incident != nil || len(s.runs) != 0 {
		t.Errorf("incident %+v, runs %v, want none", s.task.Status.Incident, s.runs)
	}
}

func TestARequestedNotificationLeavesNoIncident(t *testing.T) {
	s := newStory(t, specOf(step("page", aiopsv1.ActionNotify), step("restart", aiopsv1.ActionRestart)))
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(time.Hour)
	s.wantWords("+0s Acting/Ordered", "+0s run Notify", "+0s Watching/Healthy", "+0s event Notified")
	if s.task.Status.Incident != nil || s.task.Status.LastExecutionTime == nil {
		t.Errorf("incident %+v, last execution %v", s.task.Status.Incident, s.task.Status.LastExecutionTime)
	}
}

func TestARunDuringABreachGoesOnWithItsIncident(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart), step("page", aiopsv1.ActionNotify)))
	s.breach()
	s.wait(30 * time.Second)
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(11 * time.Minute)
	s.wantWords("+0s Breached/Holding", "+30s Acting/Ordered", "+30s run Restart", "+30s Verifying/Verifying", "+30s event ActionExecuted",
		"+630s Acting/Ordered", "+630s warning StepFailed", "+630s run Notify", "+630s Breached/ThresholdReached", "+630s event Notified",
		"+630s Blocked/Cooldown", "+630s warning Blocked")
}

func TestARunWaitsForATargetThatIsNotThere(t *testing.T) {
	for name, gone := range map[string]func(*story){
		"absent":   func(s *story) { s.target = nil },
		"deleting": func(s *story) { s.target.Deleting = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
			gone(s)
			s.ask(aiopsv1.RunAnnotation, 0)
			s.wait(time.Minute)
			if s.task.Status.Requests != nil || s.task.Status.Incident != nil {
				t.Errorf("answered without a target: %s", encode(s.task.Status))
			}
			s.target = healthyTarget()
			s.wait(time.Minute)
			if len(s.runs) != 1 {
				t.Errorf("runs %v, want one", s.runs)
			}
		})
	}
}

func TestARunIsNotLostWithAReplacedTarget(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false)
	s.breach()
	s.wait(2 * time.Minute)
	delete(s.refusals, "restart")
	s.target.UID = "another"
	s.heal()
	s.ask(aiopsv1.RunAnnotation, 0)
	s.settle()
	if len(s.runs) != 1 || s.task.Status.Incident.TargetUID != "another" {
		t.Errorf("runs %v, incident %+v, want one run on the new target", s.runs, s.task.Status.Incident)
	}
}

func TestRequestsThatAreNotAnswered(t *testing.T) {
	restart := step("restart", aiopsv1.ActionRestart)
	tests := map[string]struct {
		steps      []aiopsv1.Step
		annotation string
		value      string
		prepare    func(*story)
		want       string
	}{
		"no time":       {annotation: aiopsv1.RunAnnotation, value: string(taskUID), want: "the value of aiops.example.com/run is not understood: write " + string(taskUID) + "/<RFC 3339 time>"},
		"garbage":       {annotation: aiopsv1.ResetAnnotation, value: "yes", want: "the value of aiops.example.com/reset is not understood: write " + string(taskUID) + "/<RFC 3339 time>"},
		"another UID":   {annotation: aiopsv1.RunAnnotation, value: "copied/2026-01-01T03:00:00Z", want: "the value of aiops.example.com/run names another object: this task's UID is " + string(taskUID)},
		"too old":       {annotation: aiopsv1.ResetAnnotation, value: string(taskUID) + "/2026-01-01T02:50:00Z", want: "the request of 2026-01-01T02:50:00Z is older than 600s: write it again with the present time"},
		"from tomorrow": {annotation: aiopsv1.RunAnnotation, value: string(taskUID) + "/2026-01-01T03:00:31Z", want: "the request of 2026-01-01T03:00:31Z is from the future: write it again with the present time"},
		"no steps": {steps: []aiopsv1.Step{}, annotation: aiopsv1.RunAnnotation, value: string(taskUID) + "/2026-01-01T03:00:00Z",
			want: "there is no step to run: set action or steps"},
		"acted since": {annotation: aiopsv1.RunAnnotation, value: string(taskUID) + "/2026-01-01T02:59:00Z",
			prepare: func(s *story) { s.target.LastActionTime = start().Add(-time.Second) },
			want:    "an action ran on the target after this request was made; ask again if it is still wanted"},
		"exhausted": {annotation: aiopsv1.RunAnnotation, value: string(taskUID) + "/2026-01-01T03:00:00Z",
			prepare: func(s *story) {
				s.breach()
				s.task.Status.Incident = &aiopsv1.Incident{ID: "i", TargetUID: targetUID, PlanHash: PlanOf(&s.task.Spec).Hash, Exhausted: true, StartTime: at(0)}
			},
			want: "the task is Exhausted: reset it first with the annotation aiops.example.com/reset"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.steps == nil {
				test.steps = []aiopsv1.Step{restart}
			}
			s := newStory(t, specOf(test.steps...))
			if test.prepare != nil {
				test.prepare(s)
			}
			s.annotate(test.annotation, test.value)
			decision := Next(s.input())
			event := Event{Warning: true, Reason: EventRequestRefused, Action: "Run", Message: test.want}
			if test.annotation == aiopsv1.ResetAnnotation {
				event.Action = "Reset"
			}
			if difference := cmp.Diff(event, decision.Events[0]); difference != "" {
				t.Errorf("event (-want +got):\n%s", difference)
			}
			s.settle()
			if len(s.runs) != 0 {
				t.Errorf("runs %v, want none", s.runs)
			}
		})
	}
}

func TestARunIsRefusedWhileAnOrderIsUnderWay(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.wait(61 * time.Second)
	s.target.LastActionTime = time.Time{}
	s.log = nil
	s.ask(aiopsv1.RunAnnotation, 0)
	s.settle()
	s.wantLog("+61s warning RequestRefused: an order is under way; ask again when it is finished")
}

func TestRequestsWithinTheClocksToleranceAreAnswered(t *testing.T) {
	for name, shift := range map[string]time.Duration{"just ahead": MaxClockSkew, "almost old": -requestLifetime + time.Second} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
			s.ask(aiopsv1.RunAnnotation, shift)
			s.settle()
			if len(s.runs) != 1 {
				t.Errorf("runs %v, want one", s.runs)
			}
		})
	}
}

func TestEachRequestIsAnsweredOnce(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.ask(aiopsv1.RunAnnotation, 0)
	s.ask(aiopsv1.ResetAnnotation, 0)
	s.wait(9 * time.Minute)
	s.task.Status.Requests.Reset = ""
	s.wait(time.Second)
	runs, resets := len(s.runs), strings.Count(strings.Join(s.log, "\n"), "event Reset")
	if runs != 1 || resets != 2 {
		t.Errorf("%d runs and %d resets, want 1 and, with its answer wiped, 2", runs, resets)
	}
}

func TestALongRequestIsAnsweredOnce(t *testing.T) {
	for _, annotation := range []string{aiopsv1.RunAnnotation, aiopsv1.ResetAnnotation} {
		s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
		s.annotate(annotation, strings.Repeat("x", 1000))
		s.wait(time.Minute)
		if got := strings.Count(strings.Join(s.log, "\n"), "RequestRefused"); got != 1 {
			t.Errorf("%s: told %d times, want once", annotation, got)
		}
	}
}

func TestAResetLeavesExhaustedAndBeginsAnew(t *testing.T) {
	stop := step("restart", aiopsv1.ActionRestart)
	stop.OnFailure = aiopsv1.OnFailureStop
	s := newStory(t, specOf(stop))
	s.breach()
	s.wait(20 * time.Minute)
	if s.task.Status.Phase != aiopsv1.PhaseExhausted {
		t.Fatalf("phase %s, want Exhausted", s.task.Status.Phase)
	}
	s.log = nil
	s.ask(aiopsv1.ResetAnnotation, 0)
	s.settle()
	s.wantWords("+1200s Acting/Ordered", "+1200s event Reset", "+1200s warning Breached", "+1200s run Restart", "+1200s Verifying/Verifying", "+1200s event ActionExecuted")
}

func TestAResetDropsTheOrderUnderWay(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.wait(61 * time.Second)
	s.ask(aiopsv1.ResetAnnotation, 0)
	s.settle()
	if got := s.task.Status.History[0]; got.Result != aiopsv1.ResultCancelled || got.Message != "the task was reset" {
		t.Errorf("history %+v, want a cancelled order", got)
	}
	if got := s.task.Status; got.Phase != aiopsv1.PhaseBlocked || reasonOf(&got) != aiopsv1.ReasonCooldown {
		t.Errorf("after a reset %s/%s, want Blocked/Cooldown: the limits' memory stays", got.Phase, reasonOf(&got))
	}
}

func TestARefusedRunLeavesTheIncidentThatWasThere(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false)
	s.breach()
	s.wait(655 * time.Second) // it is looked at again 660 s after the start
	incident := s.task.Status.Incident.ID
	s.heal()
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(10 * time.Second)
	if got := s.task.Status.Incident; got == nil || got.ID != incident || got.Cause != aiopsv1.CauseIncident {
		t.Errorf("incident %+v, want %s to recover in its own time", got, incident)
	}
	s.wait(time.Minute)
	if got := s.log[len(s.log)-1]; !strings.Contains(got, "event Recovered") {
		t.Errorf("last word %q, want the recovery", got)
	}
}

func TestAnExpiredRunOnWhatHasBrokenMeanwhileGoesOnWithItsIncident(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Spec.Limits.CooldownSeconds = pointer(int32(7200))
	s.target.LastActionTime = start().Add(-time.Minute)
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(2 * time.Minute)
	incident := s.task.Status.Incident.ID
	s.breach()
	s.wait(20 * time.Minute)
	if got := s.task.Status.Incident; got == nil || got.ID != incident || got.Cause != aiopsv1.CauseIncident {
		t.Errorf("incident %+v, want %s with cause Incident", got, incident)
	}
}

func TestARequestThatComesBackIsNotAnsweredAgain(t *testing.T) {
	early, late := string(taskUID)+"/2026-01-01T03:00:00Z", string(taskUID)+"/2026-01-01T03:02:00Z"
	tests := map[string]struct {
		values []string
		want   int
	}{
		"an early one after a late one":     {[]string{early, late, early}, 2},
		"both in turn":                      {[]string{early, late, early, late}, 2},
		"the same instant, written anew":    {[]string{late, string(taskUID) + "/2026-01-01T04:02:00+01:00"}, 1},
		"a later instant in an earlier day": {[]string{early, string(taskUID) + "/2025-12-31T22:01:00-05:00"}, 2},
		"after one from the future":         {[]string{string(taskUID) + "/2027-01-01T00:00:00Z", early}, 1},
		"after one of another object":       {[]string{"copied/2026-01-01T03:02:00Z", early}, 1},
		"after one that says nothing":       {[]string{"now", early}, 1},
		"garbage":                           {[]string{early, "now"}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
			s.now = start().Add(3 * time.Minute)
			for _, value := range test.values {
				s.annotate(aiopsv1.ResetAnnotation, value)
				s.settle()
			}
			if got := strings.Count(strings.Join(s.log, "\n"), "event Reset"); got != test.want {
				t.Errorf("%d resets, want %d: %v", got, test.want, s.log)
			}
		})
	}
	t.Run("an early one after one that is as far ahead as clocks differ", func(t *testing.T) {
		s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
		s.now = start().Add(2*time.Minute - MaxClockSkew)
		for _, value := range []string{late, early} {
			s.annotate(aiopsv1.ResetAnnotation, value)
			s.settle()
		}
		s.wantWords("+90s Watching/Healthy", "+90s event Reset")
	})
	t.Run("one that says nothing is told so", func(t *testing.T) {
		s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
		for _, value := range []string{early, "now"} {
			s.annotate(aiopsv1.ResetAnnotation, value)
			s.settle()
		}
		s.wantWords("+0s Watching/Healthy", "+0s event Reset", "+0s warning RequestRefused")
	})
	t.Run("an early one, long after a late one", func(t *testing.T) {
		s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
		s.now = start().Add(3 * time.Minute)
		for _, value := range []string{late, early} {
			s.annotate(aiopsv1.ResetAnnotation, value)
			s.wait(time.Hour)
		}
		s.wantWords("+180s Watching/Healthy", "+180s event Reset")
	})
	t.Run("run", func(t *testing.T) {
		s := newStory(t, specOf(step("page", aiopsv1.ActionNotify)))
		s.now = start().Add(3 * time.Minute)
		for _, value := range []string{early, late, early, late} {
			s.annotate(aiopsv1.RunAnnotation, value)
			s.settle()
		}
		if len(s.runs) != 2 {
			t.Errorf("runs %v, want two", s.runs)
		}
	})
}

func TestARunThatIsAskedForWhileSuspendedIsRefusedAtOnce(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Spec.Suspend = pointer(true)
	s.settle()
	s.task.Annotations = map[string]string{aiopsv1.RunAnnotation: string(taskUID) + "/" + s.now.Format(time.RFC3339)}
	s.settle()
	s.task.Spec.Suspend = pointer(false)
	s.wait(time.Hour)
	s.wantWords("+0s Suspended/Suspended", "+0s warning RequestRefused", "+0s Watching/Healthy")
}
