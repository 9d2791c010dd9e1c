package action

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

func at(seconds int) time.Time {
	return time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func stateOf(kind string, options ...func(*target.State)) target.State {
	state := target.State{
		Reference: target.Reference{APIVersion: "apps/v1", Kind: kind, Namespace: "shop", Name: "web"},
		UID:       "web-uid", Generation: 4, Settled: true, Replicas: 3,
	}
	for _, option := range options {
		option(&state)
	}
	return state
}

func order(options ...func(*aiopsv1.Order)) *aiopsv1.Order {
	out := &aiopsv1.Order{ID: "order-1", Before: &aiopsv1.TargetImage{UID: "web-uid", Generation: 4, Replicas: 3}}
	for _, option := range options {
		option(out)
	}
	return out
}

func scaleStep(by, to, lowest, highest *int32) aiopsv1.Step {
	return aiopsv1.Step{Name: "more", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{By: by, To: to, Min: lowest, Max: highest}}
}

func number(n int32) *int32 { return ptr.To(n) }

func broken(name string, since int) target.Pod {
	return target.Pod{
		Name: name, UID: types.UID(name + "-uid"), Scheduled: true, EverReady: true, ReadyTransitionTime: at(since), CreationTime: at(-3600),
	}
}

func names(prefix string, count int) []string {
	var out []string
	for i := range count {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}
