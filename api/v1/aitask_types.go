package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AITask is a runbook as one object: it names a workload, a signal with a threshold, and the steps to take when the threshold
// is reached. The operator judges, acts, proves that it helped, goes on to the next step when it did not, and stops and says so
// when nothing helps.
//
// Who may create AITasks in a namespace can restart, scale and roll back its workloads: grant it like the right to
// change Deployments.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=at,categories=aiops
// +kubebuilder:selectablefield:JSONPath=`.status.target.uid`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target.summary`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.status.decision.summary`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastExecutionTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Step",type=string,priority=1,JSONPath=`.status.decision.stepName`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.decision.reason`
// +kubebuilder:printcolumn:name="Next",type=string,priority=1,JSONPath=`.status.decision.nextAllowedTime`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name must be at most 52 characters: names of other objects are made from it"
// +operator-sdk:csv:customresourcedefinitions:displayName="AITask",resources={{Deployment,v1},{StatefulSet,v1},{DaemonSet,v1},{ReplicaSet,v1},{ControllerRevision,v1},{Pod,v1},{HorizontalPodAutoscaler,v2},{Event,v1}}
type AITask struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is at most 52 characters, since names of other objects are made from it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the author wants. The operator never writes it.
	// +required
	Spec AITaskSpec `json:"spec"`

	// status is what the operator saw, decided and did.
	// +optional
	Status AITaskStatus `json:"status,omitempty,omitzero"`
}

// AITaskList is a list of AITasks.
//
// +kubebuilder:object:root=true
type AITaskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AITask `json:"items"`
}

// AITaskSpec says which workload is watched, by what signal, and what is done.
//
// +kubebuilder:validation:XValidation:rule="[has(self.targetDeployment), has(self.targetRef)].exists_one(x, x)",message="set exactly one of targetDeployment, targetRef"
// +kubebuilder:validation:XValidation:rule="!(has(self.threshold) && has(self.signals))",message="threshold is the short form of one UnavailableReplicas signal: set either threshold or signals, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.action) && has(self.steps))",message="action is the short form of one step: set either action or steps, not both"
type AITaskSpec struct {
	// targetDeployment is the name of a Deployment in this namespace: the short form of targetRef.
	// 1 to 253 characters. Exactly one of targetDeployment and targetRef is set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deployment",xDescriptors={"urn:alm:descriptor:io.kubernetes:Deployment"}
	TargetDeployment *string `json:"targetDeployment,omitempty"`

	// targetRef is the workload in this namespace: a Deployment, StatefulSet or DaemonSet.
	// Exactly one of targetDeployment and targetRef is set.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Target",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:targetRef"}
	TargetRef *TargetReference `json:"targetRef,omitempty"`

	// threshold is the short form of one signal of type UnavailableReplicas with this threshold: so many replicas missing is a
	// breach. A whole number, between -(2^53-1) and 2^53-1. Excludes signals.
	// +optional
	// +kubebuilder:validation:Minimum=-9007199254740991
	// +kubebuilder:validation:Maximum=9007199254740991
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Threshold",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	Threshold *int64 `json:"threshold,omitempty"`

	// signals are what is measured: one, for now. Excludes threshold.
	// Absent together with threshold: nothing is judged.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Signals",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:signals"}
	Signals []Signal `json:"signals,omitempty"`

	// forSeconds is how long a breach must hold without a break before a step is due, in seconds. 0 acts at the first reading.
	// Default 60, 0 to 86400.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Breach held for, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	ForSeconds *int32 `json:"forSeconds,omitempty"`

	// recoverySeconds is how long the signal must be healthy, and the workload available, before recovery is believed, in seconds.
	// Default 60, 0 to 86400.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Recovery held for, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	RecoverySeconds *int32 `json:"recoverySeconds,omitempty"`

	// intervalSeconds is how often a polled signal (Prometheus, CPUUtilization, MemoryUtilization) is measured, in seconds.
	// Signals that Kubernetes reports by itself are judged at once. Default 60, 5 to 86400.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Interval, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`

	// startupGraceSeconds leaves pods that are younger than this, in seconds, and were never ready out of the count of
	// unavailable replicas. Default 0, 0 to 86400.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Startup grace, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	StartupGraceSeconds *int32 `json:"startupGraceSeconds,omitempty"`

	// action is the short form of one step. Scale and Notify need parameters, so they need steps. Excludes steps.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Action",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Restart","urn:alm:descriptor:com.tectonic.ui:select:Evict","urn:alm:descriptor:com.tectonic.ui:select:Rollback"}
	Action ShortAction `json:"action,omitempty"`

	// steps are what is done while the breach lasts, in order: the next one when the one before did not help. 1 to 8, with
	// names of their own. Excludes action. Absent together with action: the task watches and reports.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Steps",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:arrayFieldGroup:steps"}
	Steps []Step `json:"steps,omitempty"`

	// mode says whether due steps are run. Auto runs them. Observe decides and records what would have been done, once per
	// incident, and never acts. Default Auto.
	// +optional
	// +kubebuilder:default=Auto
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Auto","urn:alm:descriptor:com.tectonic.ui:select:Observe"}
	Mode Mode `json:"mode,omitempty"`

	// limits bound how often this task acts.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Limits",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:limits"}
	Limits *Limits `json:"limits,omitempty"`

	// suspend stops judging and acting. An unfinished order is cancelled; resuming starts with clean counters.
	// Default false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Suspend",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Suspend *bool `json:"suspend,omitempty"`
}

// TargetReference names a workload in the AITask's namespace.
type TargetReference struct {
	// apiVersion is the group and version of the workload: apps/v1. 1 to 253 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="API version",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the workload: Deployment, StatefulSet or DaemonSet. 1 to 63 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Kind",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Deployment","urn:alm:descriptor:com.tectonic.ui:select:StatefulSet","urn:alm:descriptor:com.tectonic.ui:select:DaemonSet"}
	Kind string `json:"kind,omitempty"`

	// name is the name of the workload. 1 to 253 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name,omitempty"`
}

// ShortAction is an action that needs no parameters.
// +kubebuilder:validation:Enum=Restart;Evict;Rollback
type ShortAction string

// Mode says whether due steps are run (Auto) or only recorded (Observe).
// +kubebuilder:validation:Enum=Auto;Observe
type Mode string

// The modes.
const (
	ModeAuto    Mode = "Auto"
	ModeObserve Mode = "Observe"
)

// Limits bound how often a task acts. Accompanying steps (Notify) count for passes only.
type Limits struct {
	// cooldownSeconds is the shortest time between two actions on the target, whoever of its tasks acted, in seconds.
	// Default 300, 0 to 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cooldown, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// recurrenceSeconds is how long after recovery a new breach still counts as the same incident and goes on at the next
	// step, in seconds. Default 3600, 0 to 604800.
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Recurrence, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	RecurrenceSeconds *int32 `json:"recurrenceSeconds,omitempty"`

	// maxPasses is how often the steps are gone through in one incident before it is Exhausted. Default 3, 1 to 100.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Passes at most",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxPasses *int32 `json:"maxPasses,omitempty"`

	// maxActions is how many actions are run within periodSeconds at most, over all incidents. Default 10, 1 to 100.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Actions at most, per period",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxActions *int32 `json:"maxActions,omitempty"`

	// periodSeconds is the sliding window of maxActions, in seconds. Default 86400, 60 to 604800.
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Period, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`
}
