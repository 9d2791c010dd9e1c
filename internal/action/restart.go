package action

import (
	"context"
	"fmt"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// restartedAt is the annotation of a pod template that kubectl rollout restart sets too. Each new value is a new template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

const templateMetadata = "/spec/template/metadata"

// Restart replaces all pods of a workload, at the pace of its own rollout.
type Restart struct {
	workloads workloads
	pods      pods
}

// NewRestart returns the action Restart. live reads past the caches.
func NewRestart(writer Writer, live Reader) *Restart {
	return &Restart{workloads: workloads{writer: writer, live: live}, pods: pods{writer: writer, live: live}}
}

// Type is Restart.
func (*Restart) Type() aiopsv1.ActionType { return aiopsv1.ActionRestart }

// Plan refuses where a new pod template would not be rolled out. For a StatefulSet whose controller waits for a broken pod before it replaces
// any, the plan frees the broken ones.
func (*Restart) Plan(_ context.Context, request Request) (Plan, *Refusal, error) {
	state := &request.Target
	if refusal := refuseTemplate(state); refusal != nil {
		return Plan{}, refusal, nil
	}
	plan := Plan{Message: fmt.Sprintf("restart %s", state.Reference)}
	if state.Ordered {
		plan.PodUIDs = uidsOf(choose(request, unhealthyPods(request), aiopsv1.MaxPodUIDs))
	}
	return plan, nil, nil
}

// Run sets the pod template's restart annotation.
func (r *Restart) Run(ctx context.Context, request Request) (Outcome, error) {
	outcome, err := r.workloads.apply(ctx, request, change{
		doing:   "patch " + resourceOf(request.Target.Reference),
		verb:    "restart",
		past:    "restarted",
		refusal: refuseTemplate(&request.Target),
		spec: func(now known) []operation {
			value := request.Now.UTC().Format(stampLayout)
			if now.templateAnnotated {
				return []operation{add(annotationPath(templateMetadata, restartedAt), value)}
			}
			return []operation{
				test(templateMetadata+"/annotations", nil),
				add(templateMetadata+"/annotations", map[string]string{restartedAt: value}),
			}
		},
	})
	if err != nil || !outcome.Executed || len(request.Order.PodUIDs) == 0 {
		return outcome, err
	}
	return r.pods.free(ctx, request, outcome)
}
