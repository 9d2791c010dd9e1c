// Package target knows what a workload is and what state it is in: replicas, pods, revisions, rollout progress, and who else
// owns which of its fields. It reads and never writes, and it judges nothing: thresholds and steps live elsewhere.
package target

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Reference names a workload, all of it explicit.
type Reference struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
}

// String returns kind and name, such as Deployment/web.
func (r Reference) String() string {
	return r.Kind + "/" + r.Name
}

// State is one workload as it was read at one moment.
type State struct {
	Reference Reference

	UID        types.UID
	Generation int64
	// Settled says that the workload's controller has seen this generation: before that, its status speaks of an older spec.
	Settled  bool
	Deleting bool
	// Paused says that the workload's own rollout is paused (spec.paused of a Deployment).
	Paused bool
	// OnDelete says that the workload puts a new template into force only where somebody deletes a pod.
	OnDelete bool
	// HeldBack says that the workload puts a new template into force for no pod at all: a StatefulSet's partition is as high as its replicas.
	HeldBack bool
	// Ordered says that the workload's controller replaces no pod while another one is not ready (podManagementPolicy OrderedReady).
	Ordered bool

	// Replicas is what spec asks for; for a DaemonSet, the number of nodes that should run a pod.
	Replicas  int32
	Updated   int32
	Ready     int32
	Available int32

	// Revision names the object that holds the pod template in force: a ReplicaSet or a ControllerRevision. Empty while unknown.
	Revision string
	// RevisionRunning says that there are ready pods and that all of them were made from Revision. Only then what they do speaks for it:
	// a template that waits for somebody, or that is held back, can be named by Revision and run nowhere.
	RevisionRunning bool
	// TemplateHash identifies the content of spec.template.
	TemplateHash string

	Rollout    Rollout
	Conditions []Condition
	// Pods are the workload's pods, oldest first, those that are being deleted or have finished left out.
	Pods []Pod

	// Autoscaler owns replicas. Nil when nobody does.
	Autoscaler *Autoscaler
	// ReplicasAppliedBy and TemplateAppliedBy are the field managers of a GitOps tool (Argo CD, Flux) that own spec.replicas or
	// spec.template. Empty when none does.
	ReplicasAppliedBy string
	TemplateAppliedBy string
	// Annotated and TemplateAnnotated say that the workload and its pod template have annotations at all: a JSON patch adds to a map
	// only where there is one.
	Annotated         bool
	TemplateAnnotated bool

	// LastActionTime and LastOrder are the stamps that actions leave on the workload. Zero when there are none. A time that lies in
	// the future counts as none: anyone who may edit the workload could otherwise hold back every action for ever.
	LastActionTime time.Time
	LastOrder      string
}

// Image returns the state as an order records it, before or after an action.
func (s *State) Image() aiopsv1.TargetImage {
	return aiopsv1.TargetImage{
		UID:          string(s.UID),
		Generation:   s.Generation,
		Replicas:     s.Replicas,
		Revision:     s.Revision,
		TemplateHash: s.TemplateHash,
	}
}

// Rollout is how far the newest pod template has come.
type Rollout struct {
	// Progressing says that a rollout is under way and still moving.
	Progressing bool
	// Stalled says that a rollout is under way and has not moved for its progress deadline.
	Stalled bool
	// LastProgressTime is when an unfinished rollout last moved. Zero when it is finished or not known.
	LastProgressTime time.Time
	// DeadlineTime is when a progressing rollout becomes a stalled one. Zero when it is finished.
	DeadlineTime time.Time
}

// Condition is one entry of the workload's status.conditions.
type Condition struct {
	Type   string
	Status string
}

// Autoscaler is what sets the workload's replicas.
type Autoscaler struct {
	// Summary is kind and name, such as HorizontalPodAutoscaler/web.
	Summary       string
	MinReplicas   int32
	MaxReplicas   int32
	LastScaleTime time.Time
}

// Pod is one pod of the workload, reduced to what signals and actions look at. The caches keep it as JSON in place of the pod's
// own spec and status.
type Pod struct {
	Name         string    `json:"-"`
	UID          types.UID `json:"-"`
	CreationTime time.Time `json:"-"`
	Phase        string    `json:",omitzero"`
	Scheduled    bool      `json:",omitzero"`
	Ready        bool      `json:",omitzero"`
	// ReadyTransitionTime is when Ready last changed.
	ReadyTransitionTime time.Time `json:",omitzero"`
	// EverReady says whether the pod is known to have been ready at some time.
	EverReady bool `json:",omitzero"`
	// Revision names the template the pod was made from, comparable with State.Revision.
	Revision   string      `json:",omitzero"`
	Containers []Container `json:",omitzero"`
}

// Container is one container of a pod, init and sidecar containers included.
type Container struct {
	Name string
	Init bool `json:",omitzero"`
	// Running says that the container is running.
	Running      bool  `json:",omitzero"`
	RestartCount int32 `json:",omitzero"`
	// WaitingReason is the reason of the waiting state, such as CrashLoopBackOff.
	WaitingReason string `json:",omitzero"`
	// LastTermination* tell how the container last ended. Zero when it never did.
	LastTerminationReason string    `json:",omitzero"`
	LastTerminationTime   time.Time `json:",omitzero"`
	// Requests and limits in milli-units of CPU and bytes of memory. Zero when not set.
	CPURequestMilli int64 `json:",omitzero"`
	MemoryRequest   int64 `json:",omitzero"`
	MemoryLimit     int64 `json:",omitzero"`
}
