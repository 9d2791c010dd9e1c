package v1

// SignalType names what is measured.
// +kubebuilder:validation:Enum=UnavailableReplicas;ContainerRestarts;CrashLoopingPods;OOMKills;PendingPods;RolloutStalled;CPUUtilization;MemoryUtilization;Prometheus;Condition
type SignalType string

// The signal types.
const (
	SignalUnavailableReplicas SignalType = "UnavailableReplicas"
	SignalContainerRestarts   SignalType = "ContainerRestarts"
	SignalCrashLoopingPods    SignalType = "CrashLoopingPods"
	SignalOOMKills            SignalType = "OOMKills"
	SignalPendingPods         SignalType = "PendingPods"
	SignalRolloutStalled      SignalType = "RolloutStalled"
	SignalCPUUtilization      SignalType = "CPUUtilization"
	SignalMemoryUtilization   SignalType = "MemoryUtilization"
	SignalPrometheus          SignalType = "Prometheus"
	SignalCondition           SignalType = "Condition"
)

// Comparison says on which side of the threshold a value is a breach.
// +kubebuilder:validation:Enum=AtLeast;AtMost
type Comparison string

// The comparisons. Both include the threshold itself.
const (
	ComparisonAtLeast Comparison = "AtLeast"
	ComparisonAtMost  Comparison = "AtMost"
)

// NoDataVerdict is what an answered, empty result means.
// +kubebuilder:validation:Enum=Unknown;Breached;Healthy
type NoDataVerdict string

// The verdicts for an answered, empty result.
const (
	NoDataUnknown  NoDataVerdict = "Unknown"
	NoDataBreached NoDataVerdict = "Breached"
	NoDataHealthy  NoDataVerdict = "Healthy"
)

// Signal is one measured value and the threshold it is judged against. type says which member holds its parameters.
//
// +kubebuilder:validation:XValidation:rule="has(self.prometheus) == (self.type == 'Prometheus')",message="prometheus: {query: ...} is required when type is Prometheus, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="has(self.condition) == (self.type == 'Condition')",message="condition: {type: ..., status: ...} is required when type is Condition, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.containerRestarts) || self.type == 'ContainerRestarts'",message="containerRestarts is allowed only when type is ContainerRestarts"
// +kubebuilder:validation:XValidation:rule="!has(self.crashLoopingPods) || self.type == 'CrashLoopingPods'",message="crashLoopingPods is allowed only when type is CrashLoopingPods"
// +kubebuilder:validation:XValidation:rule="!has(self.oomKills) || self.type == 'OOMKills'",message="oomKills is allowed only when type is OOMKills"
// +kubebuilder:validation:XValidation:rule="!has(self.pendingPods) || self.type == 'PendingPods'",message="pendingPods is allowed only when type is PendingPods"
// +kubebuilder:validation:XValidation:rule="!has(self.cpuUtilization) || self.type == 'CPUUtilization'",message="cpuUtilization is allowed only when type is CPUUtilization"
// +kubebuilder:validation:XValidation:rule="!has(self.memoryUtilization) || self.type == 'MemoryUtilization'",message="memoryUtilization is allowed only when type is MemoryUtilization"
// +kubebuilder:validation:XValidation:rule="!has(self.recoveryThreshold) || ((!has(self.comparison) || self.comparison == 'AtLeast') ? self.recoveryThreshold < self.threshold : self.recoveryThreshold > self.threshold)",message="recoveryThreshold must be on the healthy side of threshold: below it for AtLeast, above it for AtMost"
// +kubebuilder:validation:XValidation:rule="!has(self.noData) || self.noData != 'Healthy' || (has(self.prometheus) && has(self.prometheus.aliveQuery))",message="noData: Healthy needs prometheus.aliveQuery, to tell a healthy system from one that reports nothing: set both, or noData: Unknown"
type Signal struct {
	// name tells this signal from others of the task. A DNS label of 1 to 63 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS label: lower-case letters, digits and hyphens, not at either end, such as queue-length"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name,omitempty"`

	// type is what is measured:
	// UnavailableReplicas (desired minus available pods), ContainerRestarts (restarts within a window, over all pods),
	// CrashLoopingPods (pods with a container that is in a back-off, cannot be pulled or cannot be created),
	// OOMKills (out-of-memory kills within a window), PendingPods (pods pending for longer than a window),
	// RolloutStalled (seconds since an unfinished rollout last progressed, else 0),
	// CPUUtilization (percent of the requested CPU, mean over ready pods), MemoryUtilization (percent of the memory limit, else of the
	// request, highest pod), Prometheus (a query's one value), Condition (1 if a condition of the target has a status, else 0).
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:UnavailableReplicas","urn:alm:descriptor:com.tectonic.ui:select:ContainerRestarts","urn:alm:descriptor:com.tectonic.ui:select:CrashLoopingPods","urn:alm:descriptor:com.tectonic.ui:select:OOMKills","urn:alm:descriptor:com.tectonic.ui:select:PendingPods","urn:alm:descriptor:com.tectonic.ui:select:RolloutStalled","urn:alm:descriptor:com.tectonic.ui:select:CPUUtilization","urn:alm:descriptor:com.tectonic.ui:select:MemoryUtilization","urn:alm:descriptor:com.tectonic.ui:select:Prometheus","urn:alm:descriptor:com.tectonic.ui:select:Condition"}
	Type SignalType `json:"type,omitempty"`

	// containerRestarts are the parameters of a ContainerRestarts signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Container restarts",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:containerRestarts","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ContainerRestarts *ContainerRestartsSignal `json:"containerRestarts,omitempty"`

	// crashLoopingPods are the parameters of a CrashLoopingPods signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Crash-looping pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:crashLoopingPods","urn:alm:descriptor:com.tectonic.ui:advanced"}
	CrashLoopingPods *CrashLoopingPodsSignal `json:"crashLoopingPods,omitempty"`

	// oomKills are the parameters of an OOMKills signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Out-of-memory kills",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:oomKills","urn:alm:descriptor:com.tectonic.ui:advanced"}
	OOMKills *OOMKillsSignal `json:"oomKills,omitempty"`

	// pendingPods are the parameters of a PendingPods signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pending pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pendingPods","urn:alm:descriptor:com.tectonic.ui:advanced"}
	PendingPods *PendingPodsSignal `json:"pendingPods,omitempty"`

	// cpuUtilization are the parameters of a CPUUtilization signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="CPU utilization",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:cpuUtilization","urn:alm:descriptor:com.tectonic.ui:advanced"}
	CPUUtilization *CPUUtilizationSignal `json:"cpuUtilization,omitempty"`

	// memoryUtilization are the parameters of a MemoryUtilization signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory utilization",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:memoryUtilization","urn:alm:descriptor:com.tectonic.ui:advanced"}
	MemoryUtilization *MemoryUtilizationSignal `json:"memoryUtilization,omitempty"`

	// prometheus are the parameters of a Prometheus signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Prometheus",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:prometheus"}
	Prometheus *PrometheusSignal `json:"prometheus,omitempty"`

	// condition are the parameters of a Condition signal.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Condition",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:condition"}
	Condition *ConditionSignal `json:"condition,omitempty"`

	// comparison says which side is a breach: AtLeast (value >= threshold) or AtMost (value <= threshold). Absent: AtLeast.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Comparison",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:AtLeast","urn:alm:descriptor:com.tectonic.ui:select:AtMost"}
	Comparison Comparison `json:"comparison,omitempty"`

	// threshold is the value from which on, itself included, the signal is breached. The measured value is compared as it is, never
	// rounded. A whole number, between -(2^53-1) and 2^53-1; scale the query for fractions.
	// +required
	// +kubebuilder:validation:Minimum=-9007199254740991
	// +kubebuilder:validation:Maximum=9007199254740991
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Threshold",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	Threshold *int64 `json:"threshold,omitempty"`

	// recoveryThreshold is the value from which on, itself included and on the healthy side, a breached signal is healthy again
	// (hysteresis). Between -(2^53-1) and 2^53-1. Absent: healthy as soon as it is not breached.
	// +optional
	// +kubebuilder:validation:Minimum=-9007199254740991
	// +kubebuilder:validation:Maximum=9007199254740991
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Recovery threshold",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	RecoveryThreshold *int64 `json:"recoveryThreshold,omitempty"`

	// noData is the verdict when the source answered and had no data: Unknown, Breached, or Healthy (Prometheus only, with an
	// aliveQuery). Absent: Unknown. Errors, timeouts, NaN, infinities and stale values are always Unknown.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="No data means",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Unknown","urn:alm:descriptor:com.tectonic.ui:select:Breached","urn:alm:descriptor:com.tectonic.ui:select:Healthy","urn:alm:descriptor:com.tectonic.ui:advanced"}
	NoData NoDataVerdict `json:"noData,omitempty"`
}

// ContainerRestartsSignal counts container restarts.
type ContainerRestartsSignal struct {
	// windowSeconds is how far back restarts count, in seconds. Absent: 600. 10 to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Window, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`

	// container counts only the container of this name. Absent: every container. At most 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Container *string `json:"container,omitempty"`
}

// CrashLoopingPodsSignal counts pods with a container that does not come up.
type CrashLoopingPodsSignal struct {
	// container looks only at the container of this name. Absent: every container. At most 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Container *string `json:"container,omitempty"`
}

// OOMKillsSignal counts out-of-memory kills.
type OOMKillsSignal struct {
	// windowSeconds is how far back kills count, in seconds. Absent: 600. 10 to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Window, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`

	// container counts only the container of this name. Absent: every container. At most 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Container *string `json:"container,omitempty"`
}

// PendingPodsSignal counts pods that do not start.
type PendingPodsSignal struct {
	// windowSeconds is how long a pod may be pending before it counts, in seconds. Absent: 120. 0 to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Window, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
}

// CPUUtilizationSignal measures CPU use against the request, through metrics.k8s.io.
type CPUUtilizationSignal struct {
	// container measures only the container of this name. Absent: the whole pod. At most 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Container *string `json:"container,omitempty"`
}

// MemoryUtilizationSignal measures memory use against the limit, through metrics.k8s.io.
type MemoryUtilizationSignal struct {
	// container measures only the container of this name. Absent: the whole pod. At most 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Container *string `json:"container,omitempty"`
}

// PrometheusSignal is the one value of an instant query.
// Source: the Prometheus HTTP API, /api/v1/query.
type PrometheusSignal struct {
	// endpoint is the name of a Prometheus in the operator's configuration file. Absent: "default". 1 to 63 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Endpoint",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Endpoint *string `json:"endpoint,omitempty"`

	// query is PromQL that yields one value: a scalar, or a vector with one element. 1 to 4096 characters. A comparison without
	// `bool` yields nothing when all is well: write `... > bool 0`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Query",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Query string `json:"query,omitempty"`

	// aliveQuery is PromQL that yields a value while the system reports at all. It is asked when query yields nothing, and lets
	// noData tell "nothing to report" from "nobody reports". 1 to 4096 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Alive query",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	AliveQuery *string `json:"aliveQuery,omitempty"`

	// windowSeconds is how far back the query itself looks (the 300 of `[5m]`), in seconds. Verification waits that much
	// longer, since old samples stay in the value. Absent: 0. 0 to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Window, seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
}

// ConditionStatus is the status of a condition.
// +kubebuilder:validation:Enum="True";"False";Unknown
type ConditionStatus string

// ConditionSignal looks at one condition in the target's status.
type ConditionSignal struct {
	// type is the type of the condition, such as Available. 1 to 316 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Type string `json:"type,omitempty"`

	// status is the status that counts as 1: True, False or Unknown.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Status",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:True","urn:alm:descriptor:com.tectonic.ui:select:False","urn:alm:descriptor:com.tectonic.ui:select:Unknown"}
	Status ConditionStatus `json:"status,omitempty"`
}
