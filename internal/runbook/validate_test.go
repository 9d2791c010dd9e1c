package runbook

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func reference(kind, name string) *aiopsv1.TargetReference {
	return &aiopsv1.TargetReference{APIVersion: "apps/v1", Kind: kind, Name: name}
}

func signalSpec(kind aiopsv1.SignalType, comparison aiopsv1.Comparison, threshold int64, recovery *int64) aiopsv1.AITaskSpec {
	return aiopsv1.AITaskSpec{TargetDeployment: pointer("web"), Signals: []aiopsv1.Signal{{
		Name: "value", Type: kind, Comparison: comparison, Threshold: &threshold, RecoveryThreshold: recovery,
	}}}
}

func scaleSpec(scale aiopsv1.ScaleStep) aiopsv1.AITaskSpec {
	return specOf(aiopsv1.Step{Name: "more", Action: aiopsv1.ActionScale, Scale: &scale})
}

func TestValidateSaysWhatToWriteInstead(t *testing.T) {
	number := func(value int32) *int32 { return &value }
	prometheus := signalSpec(aiopsv1.SignalPrometheus, "", -5, nil)
	prometheus.Signals[0].Prometheus = &aiopsv1.PrometheusSignal{Query: "up", Endpoint: pointer("gpu")}
	unnamed := signalSpec(aiopsv1.SignalPrometheus, "", 0, pointer(int64(-1)))
	unnamed.Signals[0].Prometheus = &aiopsv1.PrometheusSignal{Query: "up"}
	missing := signalSpec(aiopsv1.SignalOOMKills, "", 1, nil)
	missing.Signals[0].Threshold = nil
	on := func(ref *aiopsv1.TargetReference, spec aiopsv1.AITaskSpec) aiopsv1.AITaskSpec {
		spec.TargetDeployment, spec.TargetRef = nil, ref
		return spec
	}
	named := func(name string) aiopsv1.AITaskSpec { return aiopsv1.AITaskSpec{TargetDeployment: &name} }
	page := func(notify *aiopsv1.NotifyStep) aiopsv1.AITaskSpec {
		return specOf(aiopsv1.Step{Name: "page", Action: aiopsv1.ActionNotify, Notify: notify})
	}
	names := Names{Endpoints: []string{"gpu", "other"}, Receivers: []string{"default", "night"}}
	invalid, always, never := aiopsv1.ReasonInvalidSpec, aiopsv1.ReasonAlwaysBreached, aiopsv1.ReasonThresholdUnreachable
	tests := map[string]struct {
		spec  aiopsv1.AITaskSpec
		names Names
		want  *Problem
	}{
		"short form":             {spec: aiopsv1.AITaskSpec{TargetDeployment: pointer("web"), Threshold: pointer(int64(1)), Action: "Restart"}},
		"only a target":          {spec: named("web-1.shop")},
		"name with a slash":      {spec: named("shop/web"), want: &Problem{invalid, `targetDeployment "shop/web" can't be the name of an object: write the name alone, in lower-case letters, digits, '-' and '.'`}},
		"name in capitals":       {spec: on(reference("Deployment", "Web"), named("")), want: &Problem{invalid, `targetRef.name "Web" can't be the name of an object: write the name alone, in lower-case letters, digits, '-' and '.'`}},
		"letters at the borders": {spec: named("az09-.")},
		"before a":               {spec: named("`"), want: &Problem{invalid, "targetDeployment \"`\" can't be the name of an object: write the name alone, in lower-case letters, digits, '-' and '.'"}},
		"after z":                {spec: named("{"), want: &Problem{invalid, `targetDeployment "{" can't be the name of an object: write the name alone, in lower-case letters, digits, '-' and '.'`}},
		"after 9":                {spec: named(":"), want: &Problem{invalid, `targetDeployment ":" can't be the name of an object: write the name alone, in lower-case letters, digits, '-' and '.'`}},
		"StatefulSet":            {spec: on(reference("StatefulSet", "db"), specOf())},
		"DaemonSet":              {spec: on(reference("DaemonSet", "db"), specOf())},
		"another kind":           {spec: on(reference("CronJob", "db"), specOf()), want: &Problem{invalid, "targetRef apps/v1 CronJob is not supported: write apiVersion apps/v1 and kind Deployment, StatefulSet or DaemonSet"}},
		"another version":        {spec: on(&aiopsv1.TargetReference{APIVersion: "apps/v2", Kind: "Deployment", Name: "web"}, specOf()), want: &Problem{invalid, "targetRef apps/v2 Deployment is not supported: write apiVersion apps/v1 and kind Deployment, StatefulSet or DaemonSet"}},
		"an action without a signal": {spec: aiopsv1.AITaskSpec{TargetDeployment: pointer("web"), Action: "Restart"},
			want: &Problem{invalid, "action is set, but nothing says when it is due: set threshold (unavailable replicas) or signals"}},
		"steps without a signal": {spec: aiopsv1.AITaskSpec{TargetDeployment: pointer("web"), Steps: []aiopsv1.Step{step("restart", aiopsv1.ActionRestart)}},
			want: &Problem{invalid, "steps are set, but nothing says when they are due: set threshold (unavailable replicas) or signals"}},
		"a signal without a threshold": {spec: missing, want: &Problem{invalid, `signals["value"].threshold is not set: write the value from which on the signal is breached`}},

		"threshold 0": {spec: aiopsv1.AITaskSpec{TargetDeployment: pointer("web"), Threshold: pointer(int64(0))},
			want: &Problem{always, "threshold: AtLeast 0 is always reached, since UnavailableReplicas is never below 0: write 1 or more"}},
		"at least 0":       {spec: signalSpec(aiopsv1.SignalOOMKills, aiopsv1.ComparisonAtLeast, 0, nil), want: &Problem{always, `signals["value"].threshold: AtLeast 0 is always reached, since OOMKills is never below 0: write 1 or more`}},
		"at least 1":       {spec: signalSpec(aiopsv1.SignalOOMKills, "", 1, nil)},
		"at most 0":        {spec: signalSpec(aiopsv1.SignalOOMKills, aiopsv1.ComparisonAtMost, 0, nil)},
		"at most -1":       {spec: signalSpec(aiopsv1.SignalOOMKills, aiopsv1.ComparisonAtMost, -1, nil), want: &Problem{never, `signals["value"].threshold: AtMost -1 is never reached, since OOMKills is never below 0: write 0 or more`}},
		"condition 1":      {spec: signalSpec(aiopsv1.SignalCondition, "", 1, nil)},
		"condition 2":      {spec: signalSpec(aiopsv1.SignalCondition, "", 2, nil), want: &Problem{never, `signals["value"].threshold: AtLeast 2 is never reached, since Condition is 0 or 1: write 1`}},
		"condition most 0": {spec: signalSpec(aiopsv1.SignalCondition, aiopsv1.ComparisonAtMost, 0, nil)},
		"condition most 1": {spec: signalSpec(aiopsv1.SignalCondition, aiopsv1.ComparisonAtMost, 1, nil), want: &Problem{always, `signals["value"].threshold: AtMost 1 is always reached, since Condition is 0 or 1: write 0`}},

		"recovery at 0":              {spec: signalSpec(aiopsv1.SignalOOMKills, "", 1, pointer(int64(0)))},
		"recovery below 0":           {spec: signalSpec(aiopsv1.SignalOOMKills, "", 1, pointer(int64(-1))), want: &Problem{invalid, `signals["value"].recoveryThreshold -1 is never reached, since OOMKills is never below 0: write 0 or more`}},
		"recovery of at most":        {spec: signalSpec(aiopsv1.SignalOOMKills, aiopsv1.ComparisonAtMost, 1, pointer(int64(2)))},
		"recovery of a condition":    {spec: signalSpec(aiopsv1.SignalCondition, aiopsv1.ComparisonAtMost, 0, pointer(int64(1)))},
		"recovery out of reach":      {spec: signalSpec(aiopsv1.SignalCondition, aiopsv1.ComparisonAtMost, 0, pointer(int64(2))), want: &Problem{invalid, `signals["value"].recoveryThreshold 2 is never reached, since Condition is 0 or 1: write 1`}},
		"condition, recovery at 0":   {spec: signalSpec(aiopsv1.SignalCondition, "", 1, pointer(int64(0)))},
		"a query may be negative":    {spec: prometheus, names: names},
		"a query may recover below":  {spec: unnamed, names: Names{Endpoints: []string{"default"}}},
		"endpoint not configured":    {spec: unnamed, names: names, want: &Problem{invalid, `signals["value"].prometheus.endpoint "default" (its value when absent) is not in the operator's configuration (prometheusEndpoints): use one of gpu, other`}},
		"no endpoint configured":     {spec: prometheus, want: &Problem{invalid, `signals["value"].prometheus.endpoint "gpu" is not in the operator's configuration (prometheusEndpoints), which has none: have it added there`}},
		"notify":                     {spec: page(nil), names: names},
		"notify with a message":      {spec: page(&aiopsv1.NotifyStep{Message: pointer("hi")}), names: names},
		"notify somebody":            {spec: page(&aiopsv1.NotifyStep{Receiver: pointer("night")}), names: names},
		"notify nobody":              {spec: page(&aiopsv1.NotifyStep{Receiver: pointer("day")}), names: names, want: &Problem{invalid, `steps["page"].notify.receiver "day" is not in the operator's configuration (receivers): use one of default, night`}},
		"a restart needs nobody":     {spec: specOf(step("restart", aiopsv1.ActionRestart))},
		"scale":                      {spec: scaleSpec(aiopsv1.ScaleStep{By: number(1), Max: number(1)})},
		"scale down":                 {spec: scaleSpec(aiopsv1.ScaleStep{By: number(-1), Min: number(2), Max: number(2)})},
		"scale of a DaemonSet":       {spec: on(reference("DaemonSet", "db"), scaleSpec(aiopsv1.ScaleStep{By: number(1), Max: number(2)})), want: &Problem{invalid, `steps["more"]: a DaemonSet has no replicas to set; use Restart, Evict or Rollback`}},
		"scale of a StatefulSet":     {spec: on(reference("StatefulSet", "db"), scaleSpec(aiopsv1.ScaleStep{By: number(1), Max: number(2)}))},
		"scale to nothing by absent": {spec: scaleSpec(aiopsv1.ScaleStep{To: number(0), Max: number(0)}), want: &Problem{invalid, `steps["more"].scale.min 1 (its value when absent) is above max 0: set min to 0, or raise max`}},
		"scale, min above max":       {spec: scaleSpec(aiopsv1.ScaleStep{By: number(1), Min: number(3), Max: number(2)}), want: &Problem{invalid, `steps["more"].scale.min 3 is above max 2: set min to 2, or raise max`}},
		"scale by 0":                 {spec: scaleSpec(aiopsv1.ScaleStep{By: number(0), Max: number(2)}), want: &Problem{invalid, `steps["more"].scale.by is 0, which changes nothing: write how many replicas to add, or to take away with a minus`}},
		"scale to the bounds":        {spec: scaleSpec(aiopsv1.ScaleStep{To: number(2), Min: number(2), Max: number(2)})},
		"scale above max":            {spec: scaleSpec(aiopsv1.ScaleStep{To: number(3), Max: number(2)}), want: &Problem{invalid, `steps["more"].scale.to 3 is above max 2: write 2 or less, or raise max`}},
		"scale below min":            {spec: scaleSpec(aiopsv1.ScaleStep{To: number(0), Max: number(2)}), want: &Problem{invalid, `steps["more"].scale.to 0 is below min 1 (its value when absent): write 1 or more, or set min to 0`}},
		"the second step":            {spec: specOf(step("restart", aiopsv1.ActionRestart), aiopsv1.Step{Name: "less", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{To: number(0), Min: number(1), Max: number(2)}}), want: &Problem{invalid, `steps["less"].scale.to 0 is below min 1: write 1 or more, or set min to 0`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if difference := cmp.Diff(test.want, Validate(&test.spec, test.names)); difference != "" {
				t.Errorf("problem (-want +got):\n%s", difference)
			}
		})
	}
}

func TestAThresholdThatTheTargetCannotReach(t *testing.T) {
	one, four := pointer(int64(1)), pointer(int64(4))
	atMost := &aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas, Comparison: aiopsv1.ComparisonAtMost, Threshold: four}
	tests := map[string]struct {
		signal *aiopsv1.Signal
		target Target
		want   string
	}{
		"no signal":      {nil, Target{Replicas: 3}, ""},
		"within":         {&aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas, Threshold: one}, Target{Replicas: 1}, ""},
		"above":          {&aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas, Threshold: four}, Target{Summary: "Deployment/web", Replicas: 3}, "threshold 4 can never be reached: Deployment/web has 3 replicas. Write 3 or less"},
		"above one":      {&aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas, Threshold: four}, Target{Summary: "Deployment/web", Replicas: 1}, "threshold 4 can never be reached: Deployment/web has 1 replica. Write 1 or less"},
		"exactly":        {&aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas, Threshold: four}, Target{Replicas: 4}, ""},
		"scaled to zero": {&aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas, Threshold: four}, Target{Replicas: 0}, ""},
		"autoscaled":     {&aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas, Threshold: four}, Target{Replicas: 1, Autoscaled: true}, ""},
		"at most":        {atMost, Target{Replicas: 1}, ""},
		"another signal": {&aiopsv1.Signal{Type: aiopsv1.SignalOOMKills, Threshold: four}, Target{Replicas: 1}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			problem := ThresholdProblem(Plan{Signal: test.signal}, test.target)
			got := ""
			if problem != nil {
				got = problem.Message
			}
			if got != test.want || (problem != nil && problem.Reason != aiopsv1.ReasonThresholdUnreachable) {
				t.Errorf("problem %+v, want %q", problem, test.want)
			}
		})
	}
}
