package v1

// ActionType names what a step does.
// +kubebuilder:validation:Enum=Restart;Evict;Scale;Rollback;Notify
type ActionType string

// The actions.
const (
	ActionRestart  ActionType = "Restart"
	ActionEvict    ActionType = "Evict"
	ActionScale    ActionType = "Scale"
	ActionRollback ActionType = "Rollback"
	ActionNotify   ActionType = "Notify"
)

// Accompanies says that an action leaves the target alone: it is done when it is done, and needs no verification, no cooldown and
// no budget.
func (a ActionType) Accompanies() bool {
	return a == ActionNotify
}

// FailurePolicy says what follows a step that did not help.
// +kubebuilder:validation:Enum=Next;Stop
type FailurePolicy string

// The failure policies.
const (
	OnFailureNext FailurePolicy = "Next"
	OnFailureStop FailurePolicy = "Stop"
)

// BudgetPolicy says how a PodDisruptionBudget is honoured for pods that are broken anyway.
// +kubebuilder:validation:Enum=RespectBudget;IgnoreBudget
type BudgetPolicy string

// The budget policies.
const (
	RespectBudget BudgetPolicy = "RespectBudget"
	IgnoreBudget  BudgetPolicy = "IgnoreBudget"
)

// Step is one thing to do. action says which member holds its parameters.
//
// +kubebuilder:validation:XValidation:rule="has(self.scale) == (self.action == 'Scale')",message="scale: {by: ..., max: ...} is required when action is Scale, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.evict) || self.action == 'Evict'",message="evict is allowed only when action is Evict"
// +kubebuilder:validation:XValidation:rule="!has(self.notify) || self.action == 'Notify'",message="notify is allowed only when action is Notify"
type Step struct {
	// name tells this step from the others. A DNS label of 1 to 63 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS label: lower-case letters, digits and hyphens, not at either end, such as more-replicas"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name,omitempty"`

	// action is what the step does: Restart (rolling restart), Evict (removes unhealthy pods through the eviction API), Scale (sets
	// replicas), Rollback (back to the newest revision that was proven healthy, else the one before), Notify (tells a
	// receiver; done when delivered, without verification).
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Action",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Restart","urn:alm:descriptor:com.tectonic.ui:select:Evict","urn:alm:descriptor:com.tectonic.ui:select:Scale","urn:alm:descriptor:com.tectonic.ui:select:Rollback","urn:alm:descriptor:com.tectonic.ui:select:Notify"}
	Action ActionType `json:"action,omitempty"`

	// scale are the parameters of a Scale step.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Scale",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:scale"}
	Scale *ScaleStep `json:"scale,omitempty"`

	// evict are the parameters of an Evict step.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Evict",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:evict"}
	Evict *EvictStep `json:"evict,omitempty"`

	// notify are the parameters of a Notify step.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Notify",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:notify"}
	Notify *NotifyStep `json:"notify,omitempty"`

	// mode is this step's own mode. Absent: the mode of the task.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Auto","urn:alm:descriptor:com.tectonic.ui:select:Observe","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Mode Mode `json:"mode,omitempty"`

	// timeoutSeconds is how long recovery may take, from the end of the action and beyond the signal's window, in seconds.
	// Absent: 600. 10 to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Timeout, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// onFailure says what follows when the step did not help: Next goes on to the next step, Stop ends the incident as
	// Exhausted. Absent: Next.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On failure",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Next","urn:alm:descriptor:com.tectonic.ui:select:Stop"}
	OnFailure FailurePolicy `json:"onFailure,omitempty"`
}

// ScaleStep says how many replicas the target gets. Every bound is inclusive.
//
// +kubebuilder:validation:XValidation:rule="has(self.by) != has(self.to)",message="set exactly one of by (replicas to add or take away), to (replicas to have)"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || self.min <= self.max",message="min must not be above max: lower min or raise max"
type ScaleStep struct {
	// by is added to the replicas that the target has when the step is due; negative takes away. -10000 to 10000.
	// +optional
	// +kubebuilder:validation:Minimum=-10000
	// +kubebuilder:validation:Maximum=10000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="By",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	By *int32 `json:"by,omitempty"`

	// to is the number of replicas. 0 to 10000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="To",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	To *int32 `json:"to,omitempty"`

	// max is the most replicas that this step ever sets. 0 to 10000.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Maximum",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Max *int32 `json:"max,omitempty"`

	// min is the fewest replicas that this step ever sets. Absent: 1. 0 to 10000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Minimum",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Min *int32 `json:"min,omitempty"`
}

// EvictStep says which pods are removed.
type EvictStep struct {
	// maxPods is how many unhealthy pods one execution removes at most, the longest unhealthy first. Absent: 1. 1 to 16.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pods at most",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxPods *int32 `json:"maxPods,omitempty"`

	// unhealthyPods says whether a PodDisruptionBudget may keep a broken pod: RespectBudget evicts only what the budget allows,
	// IgnoreBudget deletes it where the budget refuses. Absent: RespectBudget.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Disruption budget",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:RespectBudget","urn:alm:descriptor:com.tectonic.ui:select:IgnoreBudget"}
	UnhealthyPods BudgetPolicy `json:"unhealthyPods,omitempty"`
}

// NotifyStep says who is told what. The incident's facts are always part of the message.
type NotifyStep struct {
	// receiver is the name of a receiver in the operator's configuration file. Absent: "default". 1 to 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Receiver",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Receiver *string `json:"receiver,omitempty"`

	// message is added to the facts, for the reader. At most 1024 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Message",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Message *string `json:"message,omitempty"`
}
