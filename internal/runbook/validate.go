package runbook

import (
	"fmt"
	"slices"
	"strings"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Names are what the operator's configuration offers, for references that would otherwise fail only when they are needed.
type Names struct {
	Endpoints []string
	Receivers []string
}

// Validate returns what is wrong with a spec that the schema admitted, with what to write instead, or nil. It says one thing at
// a time: the first.
func Validate(spec *aiopsv1.AITaskSpec, names Names) *Problem {
	for _, check := range []func(*aiopsv1.AITaskSpec, Names) *Problem{validateTarget, validateJudging, validateSignal, validateSteps} {
		if problem := check(spec, names); problem != nil {
			return problem
		}
	}
	return nil
}

func invalid(format string, args ...any) *Problem {
	return &Problem{aiopsv1.ReasonInvalidSpec, cut(fmt.Sprintf(format, args...), aiopsv1.MaxMessageLength)}
}

func validateTarget(spec *aiopsv1.AITaskSpec, _ Names) *Problem {
	ref := spec.TargetRef
	if ref == nil {
		return validateName("targetDeployment", spec.TargetDeployment)
	}
	if ref.APIVersion != "apps/v1" || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, ref.Kind) {
		return invalid("targetRef %s %s is not supported: write apiVersion apps/v1 and kind Deployment, StatefulSet or DaemonSet", ref.APIVersion, ref.Kind)
	}
	return validateName("targetRef.name", &ref.Name)
}

// validateName refuses what no object is called. The rules of the API server are finer; a workload of any other wrong name is
// simply not found.
func validateName(path string, name *string) *Problem {
	strange := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' }
	if name == nil || !strings.ContainsFunc(*name, strange) {
		return nil
	}
	return invalid("%s %q can't be the name of an object: write the name alone, in lower-case letters, digits, '-' and '.'", path, *name)
}

func validateJudging(spec *aiopsv1.AITaskSpec, _ Names) *Problem {
	if signalOf(spec) != nil || len(stepsOf(spec)) == 0 {
		return nil
	}
	if spec.Action != "" {
		return invalid("action is set, but nothing says when it is due: set threshold (unavailable replicas) or signals")
	}
	return invalid("steps are set, but nothing says when they are due: set threshold (unavailable replicas) or signals")
}

func validateSignal(spec *aiopsv1.AITaskSpec, names Names) *Problem {
	signal := signalOf(spec)
	if signal == nil {
		return nil
	}
	path := "threshold"
	if len(spec.Signals) > 0 {
		path = fmt.Sprintf("signals[%q].threshold", signal.Name)
	}
	if signal.Threshold == nil {
		return invalid("%s is not set: write the value from which on the signal is breached", path)
	}
	if problem := validateThreshold(path, *signal); problem != nil {
		return problem
	}
	if problem := validateRecovery(*signal); problem != nil {
		return problem
	}
	if signal.Prometheus == nil {
		return nil
	}
	path = fmt.Sprintf("signals[%q].prometheus.endpoint", signal.Name)
	return validateOffered(path, signal.Prometheus.Endpoint, aiopsv1.DefaultEndpoint, "prometheusEndpoints", names.Endpoints)
}

// validateThreshold refuses thresholds that are reached always or never: no signal but a query goes below zero.
func validateThreshold(path string, signal aiopsv1.Signal) *Problem {
	threshold := *signal.Threshold
	atMost := signal.Comparison == aiopsv1.ComparisonAtMost
	switch {
	case signal.Type == aiopsv1.SignalPrometheus:
		return nil
	case !atMost && threshold <= 0:
		return &Problem{aiopsv1.ReasonAlwaysBreached, fmt.Sprintf("%s: AtLeast %d is always reached, since %s is never below 0: write 1 or more", path, threshold, signal.Type)}
	case atMost && threshold < 0:
		return &Problem{aiopsv1.ReasonThresholdUnreachable, fmt.Sprintf("%s: AtMost %d is never reached, since %s is never below 0: write 0 or more", path, threshold, signal.Type)}
	case signal.Type == aiopsv1.SignalCondition:
		return validateConditionThreshold(path, threshold, atMost)
	}
	return nil
}

func validateConditionThreshold(path string, threshold int64, atMost bool) *Problem {
	switch {
	case !atMost && threshold > 1:
		return &Problem{aiopsv1.ReasonThresholdUnreachable, fmt.Sprintf("%s: AtLeast %d is never reached, since Condition is 0 or 1: write 1", path, threshold)}
	case atMost && threshold >= 1:
		return &Problem{aiopsv1.ReasonAlwaysBreached, fmt.Sprintf("%s: AtMost %d is always reached, since Condition is 0 or 1: write 0", path, threshold)}
	}
	return nil
}

// validateRecovery refuses a recoveryThreshold that no value reaches: once breached, the signal could never be healthy again.
func validateRecovery(signal aiopsv1.Signal) *Problem {
	if signal.RecoveryThreshold == nil || signal.Type == aiopsv1.SignalPrometheus {
		return nil
	}
	recovery := *signal.RecoveryThreshold
	atMost := signal.Comparison == aiopsv1.ComparisonAtMost
	switch {
	case !atMost && recovery < 0:
		return invalid("signals[%q].recoveryThreshold %d is never reached, since %s is never below 0: write 0 or more", signal.Name, recovery, signal.Type)
	case atMost && signal.Type == aiopsv1.SignalCondition && recovery > 1:
		return invalid("signals[%q].recoveryThreshold %d is never reached, since Condition is 0 or 1: write 1", signal.Name, recovery)
	}
	return nil
}

func validateSteps(spec *aiopsv1.AITaskSpec, names Names) *Problem {
	for i := range spec.Steps {
		step := &spec.Steps[i]
		if step.Scale != nil {
			if problem := validateScale(spec, step); problem != nil {
				return problem
			}
		}
		if problem := validateReceiver(step, names); problem != nil {
			return problem
		}
	}
	return nil
}

func validateReceiver(step *aiopsv1.Step, names Names) *Problem {
	if step.Action != aiopsv1.ActionNotify {
		return nil
	}
	var receiver *string
	if step.Notify != nil {
		receiver = step.Notify.Receiver
	}
	return validateOffered(fmt.Sprintf("steps[%q].notify.receiver", step.Name), receiver, aiopsv1.DefaultReceiver, "receivers", names.Receivers)
}

// validateOffered refuses a name that the operator's configuration does not list.
func validateOffered(path string, given *string, absent, list string, offered []string) *Problem {
	name, origin := absent, " (its value when absent)"
	if given != nil {
		name, origin = *given, ""
	}
	switch {
	case slices.Contains(offered, name):
		return nil
	case len(offered) == 0:
		return invalid("%s %q%s is not in the operator's configuration (%s), which has none: have it added there", path, name, origin, list)
	}
	return invalid("%s %q%s is not in the operator's configuration (%s): use one of %s", path, name, origin, list, strings.Join(offered, ", "))
}

func validateScale(spec *aiopsv1.AITaskSpec, step *aiopsv1.Step) *Problem {
	scale := step.Scale
	least, most := number(scale.Min, 1), number(scale.Max, 0)
	origin := ""
	if scale.Min == nil {
		origin = " (its value when absent)"
	}
	switch {
	case spec.TargetRef != nil && spec.TargetRef.Kind == "DaemonSet":
		return invalid("steps[%q]: a DaemonSet has no replicas to set; use Restart, Evict or Rollback", step.Name)
	case least > most:
		return invalid("steps[%q].scale.min %d%s is above max %d: set min to %d, or raise max", step.Name, least, origin, most, most)
	case scale.By != nil && *scale.By == 0:
		return invalid("steps[%q].scale.by is 0, which changes nothing: write how many replicas to add, or to take away with a minus", step.Name)
	case scale.To != nil && *scale.To > most:
		return invalid("steps[%q].scale.to %d is above max %d: write %d or less, or raise max", step.Name, *scale.To, most, most)
	case scale.To != nil && *scale.To < least:
		return invalid("steps[%q].scale.to %d is below min %d%s: write %d or more, or set min to %d", step.Name, *scale.To, least, origin, least, *scale.To)
	}
	return nil
}

// ThresholdProblem says that the target as it is can never reach the threshold.
func ThresholdProblem(plan Plan, target Target) *Problem {
	signal := plan.Signal
	if signal == nil || signal.Type != aiopsv1.SignalUnavailableReplicas || signal.Comparison == aiopsv1.ComparisonAtMost || target.Autoscaled {
		return nil
	}
	if target.Replicas == 0 || *signal.Threshold <= int64(target.Replicas) {
		return nil
	}
	return &Problem{aiopsv1.ReasonThresholdUnreachable, fmt.Sprintf("threshold %d can never be reached: %s has %s. Write %d or less",
		*signal.Threshold, target.Summary, count(int(target.Replicas), "replica", "replicas"), target.Replicas)}
}
