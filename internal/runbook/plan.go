package runbook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// shortName is the name of the signal and of the step that the short form stands for.
const shortName = "default"

// Plan is a spec with the short form written out and every default filled in.
type Plan struct {
	// Signal is what is judged. Nil: nothing is.
	Signal *aiopsv1.Signal
	Steps  []aiopsv1.Step
	Mode   aiopsv1.Mode
	// Hash identifies target, signals and steps, without the modes of steps: another hash is another plan.
	Hash string

	For          time.Duration
	Recovery     time.Duration
	Interval     time.Duration
	StartupGrace time.Duration

	Cooldown   time.Duration
	Recurrence time.Duration
	Period     time.Duration
	MaxPasses  int32
	MaxActions int
}

// PlanOf writes spec out. It does not validate.
func PlanOf(spec *aiopsv1.AITaskSpec) Plan {
	limits := spec.Limits
	if limits == nil {
		limits = &aiopsv1.Limits{}
	}
	plan := Plan{
		Signal:       signalOf(spec),
		Steps:        stepsOf(spec),
		Mode:         spec.Mode,
		For:          seconds(spec.ForSeconds, aiopsv1.DefaultForSeconds),
		Recovery:     seconds(spec.RecoverySeconds, aiopsv1.DefaultRecoverySeconds),
		Interval:     seconds(spec.IntervalSeconds, aiopsv1.DefaultIntervalSeconds),
		StartupGrace: seconds(spec.StartupGraceSeconds, 0),
		Cooldown:     seconds(limits.CooldownSeconds, aiopsv1.DefaultCooldownSeconds),
		Recurrence:   seconds(limits.RecurrenceSeconds, aiopsv1.DefaultRecurrenceSeconds),
		Period:       seconds(limits.PeriodSeconds, aiopsv1.DefaultPeriodSeconds),
		MaxPasses:    number(limits.MaxPasses, aiopsv1.DefaultMaxPasses),
		MaxActions:   int(number(limits.MaxActions, aiopsv1.DefaultMaxActions)),
	}
	if plan.Mode == "" {
		plan.Mode = aiopsv1.ModeAuto
	}
	plan.Hash = hashOf(spec, plan)
	return plan
}

func signalOf(spec *aiopsv1.AITaskSpec) *aiopsv1.Signal {
	if len(spec.Signals) > 0 {
		return &spec.Signals[0]
	}
	if spec.Threshold == nil {
		return nil
	}
	return &aiopsv1.Signal{Name: shortName, Type: aiopsv1.SignalUnavailableReplicas, Threshold: spec.Threshold}
}

func stepsOf(spec *aiopsv1.AITaskSpec) []aiopsv1.Step {
	if len(spec.Steps) > 0 || spec.Action == "" {
		return spec.Steps
	}
	return []aiopsv1.Step{{Name: shortName, Action: aiopsv1.ActionType(spec.Action)}}
}

// hashOf leaves modes out: turning Observe into Auto during an incident is how people let the operator go on.
func hashOf(spec *aiopsv1.AITaskSpec, plan Plan) string {
	steps := make([]aiopsv1.Step, len(plan.Steps))
	for i := range plan.Steps {
		steps[i] = plan.Steps[i]
		steps[i].Mode = ""
	}
	return digest(spec.TargetDeployment, spec.TargetRef, plan.Signal, steps)
}

// digest is a short, stable name for parts. Every part is data of our own types, which always encodes.
func digest(parts ...any) string {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, part := range parts {
		if err := encoder.Encode(part); err != nil {
			return "" // unreachable for the API's types; an empty hash never equals a recorded one
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// step finds the step of this name, or the first one where a status names none that exists.
func (p Plan) step(name string) int {
	for i := range p.Steps {
		if p.Steps[i].Name == name {
			return i
		}
	}
	return 0
}

// Step returns the step of this name.
func (p Plan) Step(name string) (step aiopsv1.Step, found bool) {
	for i := range p.Steps {
		if p.Steps[i].Name == name {
			return p.Steps[i], true
		}
	}
	return aiopsv1.Step{}, false
}

func (p Plan) mode(step aiopsv1.Step) aiopsv1.Mode {
	if step.Mode != "" {
		return step.Mode
	}
	return p.Mode
}

// observesOnly says whether no step would ever be run.
func (p Plan) observesOnly() bool {
	for i := range p.Steps {
		if p.mode(p.Steps[i]) != aiopsv1.ModeObserve {
			return false
		}
	}
	return true
}

// SignalWindow is how long old events stay in the signal's value: verification waits that much longer where the source can't be
// told to forget them.
func (p Plan) SignalWindow() time.Duration {
	if p.Signal == nil || p.Signal.Prometheus == nil {
		return 0
	}
	return seconds(p.Signal.Prometheus.WindowSeconds, 0)
}

func timeoutOf(step aiopsv1.Step) time.Duration {
	return seconds(step.TimeoutSeconds, aiopsv1.DefaultTimeoutSeconds)
}

func seconds(value *int32, absent int32) time.Duration {
	return time.Duration(number(value, absent)) * time.Second
}

func number(value *int32, absent int32) int32 {
	if value == nil {
		return absent
	}
	return *value
}
