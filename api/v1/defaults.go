package v1

// What an absent field means. The schema carries these as defaults where it may (never below a list, where server-side
// apply and GitOps tools would fight it for ever); the operator applies the same numbers everywhere.
const (
	DefaultForSeconds        int32 = 60
	DefaultRecoverySeconds   int32 = 60
	DefaultIntervalSeconds   int32 = 60
	DefaultTimeoutSeconds    int32 = 600
	DefaultCooldownSeconds   int32 = 300
	DefaultRecurrenceSeconds int32 = 3600
	DefaultMaxPasses         int32 = 3
	DefaultMaxActions        int32 = 10
	DefaultPeriodSeconds     int32 = 86400

	DefaultRestartWindowSeconds int32 = 600
	DefaultOOMWindowSeconds     int32 = 600
	DefaultPendingWindowSeconds int32 = 120

	DefaultEvictMaxPods   int32  = 1
	DefaultEndpoint       string = "default"
	DefaultReceiver       string = "default"
	DefaultProgressSecond int32  = 600
)

// Bounds that the operator's code keeps in status, where the schema does not validate.
const (
	MaxHistory       = 10
	MaxExecutions    = 100
	MaxConditions    = 32
	MaxPodUIDs       = 16
	MaxMessageLength = 1024
	MaxReasonLength  = 128
	MaxValueLength   = 64
)

// Annotations that the operator reads or writes.
const (
	// RunAnnotation on an AITask asks for its next step now, the first one where no incident is open, whatever the signal says.
	// Limits, mode and suspend still hold.
	// Value: <AITask UID>/<RFC 3339 time>, valid for ten minutes, so that a replayed manifest does nothing.
	RunAnnotation = "aiops.example.com/run"
	// ResetAnnotation on an AITask forgets its incident, and so leaves Exhausted. Value as for RunAnnotation.
	ResetAnnotation = "aiops.example.com/reset"
	// LastActionTimeAnnotation on a target is when an AITask last acted on it: the cooldown's memory beside status.
	LastActionTimeAnnotation = "aiops.example.com/last-action-time"
	// LastOrderAnnotation on a target is the ID of the order that last acted on it: proof of execution after a crash.
	LastOrderAnnotation = "aiops.example.com/last-order"
)
