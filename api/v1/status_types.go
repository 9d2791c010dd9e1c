package v1

// AITaskStatus is what the operator saw, decided and did. It does not validate beyond sizes: every set of words in it is open, so
// that operators of different versions can write beside each other. It stays under 32 KiB.
type AITaskStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation",xDescriptors={"urn:alm:descriptor:text"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is a one-word summary: Running, Pending, Watching, Breached, Blocked, Acting, Verifying, Exhausted, Suspended or
	// Failed. Programs read conditions instead.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase string `json:"phase,omitempty"`

	// lastExecutionTime is when a step of this task was last executed. Nothing else changes it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last execution",xDescriptors={"urn:alm:descriptor:text"}
	LastExecutionTime *Time `json:"lastExecutionTime,omitempty"`

	// conditions are Ready, TargetFound, SignalAvailable, Breached, Remediating and Exhausted. One that does not apply is absent.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []Condition `json:"conditions,omitempty"`

	// target is the workload as it was found.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Target",xDescriptors={"urn:alm:descriptor:text"}
	Target *TargetStatus `json:"target,omitempty"`

	// signals are the latest verdicts, by name. Written when verdict or reason change, and once per interval while an incident
	// is open.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Signals",xDescriptors={"urn:alm:descriptor:text"}
	Signals []SignalStatus `json:"signals,omitempty"`

	// decision is the latest decision and its reason.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Decision",xDescriptors={"urn:alm:descriptor:text"}
	Decision *Decision `json:"decision,omitempty"`

	// incident is the breach that is being dealt with, or that ended less than limits.recurrenceSeconds ago.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Incident",xDescriptors={"urn:alm:descriptor:text"}
	Incident *Incident `json:"incident,omitempty"`

	// order is the unfinished action, written before it is run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order",xDescriptors={"urn:alm:descriptor:text"}
	Order *Order `json:"order,omitempty"`

	// executions are the times of the actions on the target within limits.periodSeconds, oldest first; at most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Executions",xDescriptors={"urn:alm:descriptor:text"}
	Executions []Time `json:"executions,omitempty"`

	// history holds the latest finished orders, newest first; at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="History",xDescriptors={"urn:alm:descriptor:text"}
	History []HistoryEntry `json:"history,omitempty"`

	// requests are the run and reset annotations that were answered.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Requests",xDescriptors={"urn:alm:descriptor:text"}
	Requests *RequestStatus `json:"requests,omitempty"`
}

// Condition has the fields of metav1.Condition. It is a type of its own so that its time decodes whatever the API server admits.
type Condition struct {
	// type is the name of the condition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type,omitempty"`

	// status is True, False or Unknown.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Status string `json:"status,omitempty"`

	// observedGeneration is the generation of the spec that the condition speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastTransitionTime is when status last changed.
	// +optional
	LastTransitionTime *Time `json:"lastTransitionTime,omitempty"`

	// reason is the cause of the status, in one CamelCase word.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message is the same for people.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// Unknown holds the fields that this version does not know.
	// +optional
	Unknown UnknownFields `json:"-"`
}

// TargetStatus is the workload as it was found.
type TargetStatus struct {
	// summary is kind and name, such as Deployment/web.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Target",xDescriptors={"urn:alm:descriptor:text"}
	Summary string `json:"summary,omitempty"`

	// uid is the workload's UID.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Target UID",xDescriptors={"urn:alm:descriptor:text"}
	UID string `json:"uid,omitempty"`

	// revision names the pod template in force: the ReplicaSet or ControllerRevision that holds it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Revision",xDescriptors={"urn:alm:descriptor:text"}
	Revision string `json:"revision,omitempty"`

	// healthyRevision names the newest revision that was seen healthy and fully rolled out for recoverySeconds.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Healthy revision",xDescriptors={"urn:alm:descriptor:text"}
	HealthyRevision string `json:"healthyRevision,omitempty"`

	// healthyTime is when healthyRevision was proven.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Revision proven healthy",xDescriptors={"urn:alm:descriptor:text"}
	HealthyTime *Time `json:"healthyTime,omitempty"`
}

// SignalStatus is the latest verdict on a signal.
type SignalStatus struct {
	// name is the name of the signal.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Signal",xDescriptors={"urn:alm:descriptor:text"}
	Name string `json:"name,omitempty"`

	// verdict is Breached, Healthy or Unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Verdict",xDescriptors={"urn:alm:descriptor:text"}
	Verdict string `json:"verdict,omitempty"`

	// value is the measured value; absent while unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Value",xDescriptors={"urn:alm:descriptor:text"}
	Value string `json:"value,omitempty"`

	// measuredTime is when value was measured. It is written together with value.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Measured",xDescriptors={"urn:alm:descriptor:text"}
	MeasuredTime *Time `json:"measuredTime,omitempty"`

	// threshold is what the value was compared with, such as ">= 100".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Threshold",xDescriptors={"urn:alm:descriptor:text"}
	Threshold string `json:"threshold,omitempty"`

	// reason is the cause of the verdict, in one CamelCase word.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Verdict reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`

	// message is the same for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Verdict message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message,omitempty"`

	// lastTransitionTime is when the verdict last changed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Verdict since",xDescriptors={"urn:alm:descriptor:text"}
	LastTransitionTime *Time `json:"lastTransitionTime,omitempty"`

	// Unknown holds the fields that this version does not know.
	// +optional
	Unknown UnknownFields `json:"-"`
}

// Decision is the latest decision and its reason.
type Decision struct {
	// summary is the value and how it stands to the number that decided about it: "103.5 >= 100" is a breach, "99 < 100" is
	// none, "50 > 20" is a breach that has not come down to recoveryThreshold.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Value against threshold",xDescriptors={"urn:alm:descriptor:text"}
	Summary string `json:"summary,omitempty"`

	// reason is the cause of the decision, in one CamelCase word.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Decision reason",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase:reason"}
	Reason string `json:"reason,omitempty"`

	// stepName is the step that is under way or held back, or the last one of an exhausted incident.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Step",xDescriptors={"urn:alm:descriptor:text"}
	StepName string `json:"stepName,omitempty"`

	// message says what happened, what was done, whether it helped and what happens next.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Decision message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message,omitempty"`

	// decisionTime is when this was decided.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Decided",xDescriptors={"urn:alm:descriptor:text"}
	DecisionTime *Time `json:"decisionTime,omitempty"`

	// nextAllowedTime is until when the decision stands at the latest: when the next step may run, a wait is given up, or recovery is
	// believed. What can end it sooner is looked at in between.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Stands until",xDescriptors={"urn:alm:descriptor:text"}
	NextAllowedTime *Time `json:"nextAllowedTime,omitempty"`
}

// Incident is one breach, from the moment a step was due until recovery has lasted for limits.recurrenceSeconds.
type Incident struct {
	// id is random, so that the orders of two incidents never share an ID.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`

	// startTime is when the breach had held for forSeconds.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Incident began",xDescriptors={"urn:alm:descriptor:text"}
	StartTime *Time `json:"startTime,omitempty"`

	// recoveredTime is when recovery was proven; absent while the incident lasts.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Incident recovered",xDescriptors={"urn:alm:descriptor:text"}
	RecoveredTime *Time `json:"recoveredTime,omitempty"`

	// pass counts the rounds over the steps, from 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Pass",xDescriptors={"urn:alm:descriptor:text"}
	Pass int32 `json:"pass,omitempty"`

	// stepName is the step that is under way or comes next.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Next step",xDescriptors={"urn:alm:descriptor:text"}
	StepName string `json:"stepName,omitempty"`

	// cause is Run when the next step was asked for and runs whatever the signal says; else Incident.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`

	// attempts counts the executed actions of this incident.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Attempts",xDescriptors={"urn:alm:descriptor:text"}
	Attempts int32 `json:"attempts,omitempty"`

	// executedInPass counts the executed steps of this pass, accompanying ones included.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	ExecutedInPass int32 `json:"executedInPass,omitempty"`

	// planHash identifies target, signals and steps when the incident began. Another plan is another incident.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PlanHash string `json:"planHash,omitempty"`

	// targetUID is the workload that the incident is about. Another UID ends it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	TargetUID string `json:"targetUID,omitempty"`

	// exhausted says that nothing helped and nothing more will be done.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Exhausted",xDescriptors={"urn:alm:descriptor:text"}
	Exhausted bool `json:"exhausted,omitempty"`

	// notBeforeTime holds the next order back after one was withdrawn.
	// +optional
	NotBeforeTime *Time `json:"notBeforeTime,omitempty"`
}

// TargetImage is the workload at one moment: the precondition of an order, or its result.
type TargetImage struct {
	// uid is the workload's UID.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`

	// generation is the workload's metadata.generation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Generation int64 `json:"generation,omitempty"`

	// replicas is the desired number of replicas.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	Replicas int32 `json:"replicas,omitempty"`

	// revision names the pod template: the ReplicaSet or ControllerRevision that holds it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Revision string `json:"revision,omitempty"`

	// templateHash identifies the pod template's content.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TemplateHash string `json:"templateHash,omitempty"`
}

// Order is one action, written before it is run, with everything it will do as absolute values.
type Order struct {
	// id is made from the task's UID, the incident with its attempts so far, the pass, the step and the plan.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order ID",xDescriptors={"urn:alm:descriptor:text"}
	ID string `json:"id,omitempty"`

	// cause is Incident or Run.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order cause",xDescriptors={"urn:alm:descriptor:text"}
	Cause string `json:"cause,omitempty"`

	// stepName is the step being executed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ordered step",xDescriptors={"urn:alm:descriptor:text"}
	StepName string `json:"stepName,omitempty"`

	// action is the action of the step.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ordered action",xDescriptors={"urn:alm:descriptor:text"}
	Action string `json:"action,omitempty"`

	// state is Recorded (may or may not have run) or Verifying (ran).
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order state",xDescriptors={"urn:alm:descriptor:text"}
	State string `json:"state,omitempty"`

	// reason is Interrupted when it can't be known whether the action ran.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`

	// message says what is to be done, or once it ran what was done, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message,omitempty"`

	// planHash identifies target, signals and steps.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PlanHash string `json:"planHash,omitempty"`

	// value is the measured value that the order answers.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order answers the value",xDescriptors={"urn:alm:descriptor:text"}
	Value string `json:"value,omitempty"`

	// recordedTime is when the order was written.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order recorded",xDescriptors={"urn:alm:descriptor:text"}
	RecordedTime *Time `json:"recordedTime,omitempty"`

	// executedTime is when the action had run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order executed",xDescriptors={"urn:alm:descriptor:text"}
	ExecutedTime *Time `json:"executedTime,omitempty"`

	// deadlineTime is when a recorded order is given up, and later when recovery must have begun.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order deadline",xDescriptors={"urn:alm:descriptor:text"}
	DeadlineTime *Time `json:"deadlineTime,omitempty"`

	// before is the target when the order was written. The action is not run on anything else.
	// +optional
	Before *TargetImage `json:"before,omitempty"`

	// after is the target when the action had run.
	// +optional
	After *TargetImage `json:"after,omitempty"`

	// replicas is what a Scale sets.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ordered replicas",xDescriptors={"urn:alm:descriptor:text"}
	Replicas *int32 `json:"replicas,omitempty"`

	// revision is where a Rollback goes to.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ordered revision",xDescriptors={"urn:alm:descriptor:text"}
	Revision string `json:"revision,omitempty"`

	// podUIDs are the pods that an Evict removes, or that a Rollback frees; at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	PodUIDs []string `json:"podUIDs,omitempty"`
}

// HistoryEntry is a finished order.
type HistoryEntry struct {
	// id is the order's ID.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Order ID",xDescriptors={"urn:alm:descriptor:text"}
	ID string `json:"id,omitempty"`

	// cause is Incident or Run.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Cause",xDescriptors={"urn:alm:descriptor:text"}
	Cause string `json:"cause,omitempty"`

	// stepName is the step.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Step",xDescriptors={"urn:alm:descriptor:text"}
	StepName string `json:"stepName,omitempty"`

	// action is the action of the step.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Action",xDescriptors={"urn:alm:descriptor:text"}
	Action string `json:"action,omitempty"`

	// result is Recovered, Failed, Done, Observed, Refused, Withdrawn, Cancelled or Superseded.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Result",xDescriptors={"urn:alm:descriptor:text"}
	Result string `json:"result,omitempty"`

	// reason is the cause of the result, in one CamelCase word.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`

	// message is the same for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message,omitempty"`

	// value is the measured value that the order answered.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Value",xDescriptors={"urn:alm:descriptor:text"}
	Value string `json:"value,omitempty"`

	// startTime is when the order was written.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Recorded",xDescriptors={"urn:alm:descriptor:text"}
	StartTime *Time `json:"startTime,omitempty"`

	// endTime is when it was finished.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Finished",xDescriptors={"urn:alm:descriptor:text"}
	EndTime *Time `json:"endTime,omitempty"`

	// Unknown holds the fields that this version does not know.
	// +optional
	Unknown UnknownFields `json:"-"`
}

// RequestStatus holds the annotation values that were answered, so that each is answered once.
type RequestStatus struct {
	// run is the value of aiops.example.com/run that was answered last.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Run request answered",xDescriptors={"urn:alm:descriptor:text"}
	Run string `json:"run,omitempty"`

	// reset is the value of aiops.example.com/reset that was answered last.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reset request answered",xDescriptors={"urn:alm:descriptor:text"}
	Reset string `json:"reset,omitempty"`
}
