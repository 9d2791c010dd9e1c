package admission_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Parts of specs that are right, so that a case shows only what is wrong.
const (
	target = "targetDeployment: web"
	judged = "targetDeployment: web, threshold: 1"
	query  = "{query: up}"
)

func withSignal(text string) string { return "{" + target + ", signals: [" + text + "]}" }

func withStep(text string) string { return "{" + judged + ", steps: [" + text + "]}" }

func stepNames(format string, count int) string {
	var out []string
	for i := range count {
		out = append(out, fmt.Sprintf(format, i))
	}
	return strings.Join(out, ", ")
}

// withoutValue drops the refused value from a refusal by a rule: Kubernetes writes the value, its type or nothing there, by version.
func withoutValue(refusal string) string {
	return regexp.MustCompile(`Invalid value: "[^"]*": `).ReplaceAllString(refusal, "Invalid value: ")
}

// What can never be right is refused at the door, before it is stored. `want` is the part of the answer that says what is wrong
// and what to write instead.
var _ = DescribeTable("refuses at admission",
	func(ctx context.Context, text, want string) {
		err := apply(ctx, "default", manifest(text))
		Expect(err).To(HaveOccurred(), "the task was admitted")
		Expect(withoutValue(err.Error())).To(ContainSubstring(withoutValue(want)))
	},
	// Target
	Entry("no target", "{threshold: 1, action: Restart}", "spec: Invalid value: set exactly one of targetDeployment, targetRef"),
	Entry("a target of null", "{targetDeployment: null, threshold: 1}", "spec: Invalid value: set exactly one of targetDeployment, targetRef"),
	Entry("two targets", "{targetDeployment: web, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}", "spec: Invalid value: set exactly one of targetDeployment, targetRef"),
	Entry("an empty target", "{targetDeployment: ''}", "spec.targetDeployment: Invalid value"),
	Entry("a target of 254 characters", "{targetDeployment: "+strings.Repeat("a", 254)+"}", "spec.targetDeployment: Too long: may not be more than 253"),
	Entry("a target without kind", "{targetRef: {apiVersion: apps/v1, name: web}}", "spec.targetRef.kind: Required value"),
	Entry("a target in another namespace", "{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: prod}}", `unknown field "spec.targetRef.namespace"`),
	Entry("a list of targets", "{targetDeployment: [web]}", `spec.targetDeployment in body must be of type string`),

	// Short form
	Entry("threshold and signals", "{"+judged+", signals: [{name: a, type: OOMKills, threshold: 1}]}", "set either threshold or signals, not both"),
	Entry("action and steps", "{"+judged+", action: Restart, steps: [{name: a, action: Restart}]}", "set either action or steps, not both"),
	Entry("Scale as short form", "{"+judged+", action: Scale}", `spec.action: Unsupported value: "Scale": supported values: "Restart", "Evict", "Rollback"`),
	Entry("Notify as short form", "{"+judged+", action: Notify}", `spec.action: Unsupported value: "Notify": supported values: "Restart", "Evict", "Rollback"`),
	Entry("an action in lower case", "{"+judged+", action: restart}", `spec.action: Unsupported value: "restart": supported values: "Restart", "Evict", "Rollback"`),
	Entry("an empty action", "{"+judged+", action: ''}", `spec.action: Unsupported value: "": supported values: "Restart", "Evict", "Rollback"`),
	Entry("a mode in lower case", "{"+judged+", mode: observe}", `spec.mode: Unsupported value: "observe": supported values: "Auto", "Observe"`),
	Entry("a mode that is to come", "{"+judged+", mode: Approve}", `spec.mode: Unsupported value: "Approve": supported values: "Auto", "Observe"`),
	Entry("suspend as a word", "{"+judged+", suspend: 'yes'}", "spec.suspend in body must be of type boolean"),

	// Numbers
	Entry("a threshold in quotes", "{"+target+", threshold: '1'}", `spec.threshold in body must be of type integer`),
	Entry("a fraction as threshold", "{"+target+", threshold: 1.5}", `spec.threshold in body must be of type int`),
	Entry("a threshold of 2^53", "{"+target+", threshold: 9007199254740992}", "spec.threshold in body should be less than or equal to 9007199254740991"),
	Entry("a signal's threshold of -2^53", withSignal("{name: a, type: Prometheus, prometheus: "+query+", threshold: -9007199254740992}"), "spec.signals[0].threshold in body should be greater than or equal to -9007199254740991"),
	Entry("a threshold of 1e400", "{"+target+", threshold: 1e400}", `spec.threshold in body must be of type integer`),
	Entry("a threshold of infinity", "{"+target+", threshold: Inf}", `spec.threshold in body must be of type integer`),
	Entry("a percentage", withSignal("{name: a, type: CPUUtilization, threshold: 80%}"), "spec.signals[0].threshold in body must be of type integer"),
	Entry("a duration with a unit", "{"+judged+", forSeconds: 60s}", "spec.forSeconds in body must be of type integer"),
	Entry("forSeconds below 0", "{"+judged+", forSeconds: -1}", "spec.forSeconds in body should be greater than or equal to 0"),
	Entry("forSeconds above a day", "{"+judged+", forSeconds: 86401}", "spec.forSeconds in body should be less than or equal to 86400"),
	Entry("forSeconds beyond 32 bits", "{"+judged+", forSeconds: 4294967296}", "spec.forSeconds in body should be less than or equal to 86400"),
	Entry("recoverySeconds below 0", "{"+judged+", recoverySeconds: -1}", "spec.recoverySeconds in body should be greater than or equal to 0"),
	Entry("recoverySeconds above a day", "{"+judged+", recoverySeconds: 86401}", "spec.recoverySeconds in body should be less than or equal to 86400"),
	Entry("intervalSeconds below 5", "{"+judged+", intervalSeconds: 4}", "spec.intervalSeconds in body should be greater than or equal to 5"),
	Entry("intervalSeconds above a day", "{"+judged+", intervalSeconds: 86401}", "spec.intervalSeconds in body should be less than or equal to 86400"),
	Entry("startupGraceSeconds below 0", "{"+judged+", startupGraceSeconds: -1}", "spec.startupGraceSeconds in body should be greater than or equal to 0"),
	Entry("startupGraceSeconds above a day", "{"+judged+", startupGraceSeconds: 86401}", "spec.startupGraceSeconds in body should be less than or equal to 86400"),
	Entry("cooldownSeconds below 0", "{"+judged+", limits: {cooldownSeconds: -1}}", "spec.limits.cooldownSeconds in body should be greater than or equal to 0"),
	Entry("cooldownSeconds above a day", "{"+judged+", limits: {cooldownSeconds: 86401}}", "spec.limits.cooldownSeconds in body should be less than or equal to 86400"),
	Entry("recurrenceSeconds above a week", "{"+judged+", limits: {recurrenceSeconds: 604801}}", "spec.limits.recurrenceSeconds in body should be less than or equal to 604800"),
	Entry("periodSeconds below a minute", "{"+judged+", limits: {periodSeconds: 59}}", "spec.limits.periodSeconds in body should be greater than or equal to 60"),
	Entry("periodSeconds above a week", "{"+judged+", limits: {periodSeconds: 604801}}", "spec.limits.periodSeconds in body should be less than or equal to 604800"),
	Entry("no pass", "{"+judged+", limits: {maxPasses: 0}}", "spec.limits.maxPasses in body should be greater than or equal to 1"),
	Entry("more actions than are remembered", "{"+judged+", limits: {maxActions: 101}}", "spec.limits.maxActions in body should be less than or equal to 100"),
	Entry("timeoutSeconds below 10", withStep("{name: a, action: Restart, timeoutSeconds: 9}"), "spec.steps[0].timeoutSeconds in body should be greater than or equal to 10"),
	Entry("timeoutSeconds above a day", withStep("{name: a, action: Restart, timeoutSeconds: 86401}"), "spec.steps[0].timeoutSeconds in body should be less than or equal to 86400"),
	Entry("a window of restarts below 10", withSignal("{name: a, type: ContainerRestarts, threshold: 1, containerRestarts: {windowSeconds: 9}}"), "containerRestarts.windowSeconds in body should be greater than or equal to 10"),
	Entry("a window of OOM kills above a day", withSignal("{name: a, type: OOMKills, threshold: 1, oomKills: {windowSeconds: 86401}}"), "oomKills.windowSeconds in body should be less than or equal to 86400"),
	Entry("a window of pending below 0", withSignal("{name: a, type: PendingPods, threshold: 1, pendingPods: {windowSeconds: -1}}"), "pendingPods.windowSeconds in body should be greater than or equal to 0"),
	Entry("a query's window above a day", withSignal("{name: a, type: Prometheus, threshold: 1, prometheus: {query: up, windowSeconds: 86401}}"), "prometheus.windowSeconds in body should be less than or equal to 86400"),

	// Signals
	Entry("no signals", "{"+target+", signals: []}", "spec.signals in body should have at least 1 items"),
	Entry("two signals", withSignal("{name: a, type: OOMKills, threshold: 1}, {name: b, type: OOMKills, threshold: 2}"), "spec.signals: Too many: 2: must have at most 1"),
	Entry("a signal of null", "{"+target+", signals: [null]}", "spec.signals[0] in body must be of type object"),
	Entry("a signal without name", withSignal("{type: OOMKills, threshold: 1}"), "spec.signals[0].name: Required value"),
	Entry("a signal without type", withSignal("{name: a, threshold: 1}"), "spec.signals[0].type: Required value"),
	Entry("a signal without threshold", withSignal("{name: a, type: OOMKills}"), "spec.signals[0].threshold: Required value"),
	Entry("a threshold of null", withSignal("{name: a, type: OOMKills, threshold: null}"), "spec.signals[0].threshold: Required value"),
	Entry("an unknown type", withSignal("{name: a, type: PromQL, threshold: 1}"), `spec.signals[0].type: Unsupported value: "PromQL": supported values: "UnavailableReplicas", "ContainerRestarts", "CrashLoopingPods", "OOMKills", "PendingPods", "RolloutStalled", "CPUUtilization", "MemoryUtilization", "Prometheus", "Condition"`),
	Entry("a comparison as a sign", withSignal("{name: a, type: OOMKills, threshold: 1, comparison: '>='}"), `spec.signals[0].comparison: Unsupported value: ">=": supported values: "AtLeast", "AtMost"`),
	Entry("an unknown noData", withSignal("{name: a, type: OOMKills, threshold: 1, noData: Ignore}"), `spec.signals[0].noData: Unsupported value: "Ignore": supported values: "Unknown", "Breached", "Healthy"`),
	Entry("a signal's name with a capital", withSignal("{name: Queue, type: OOMKills, threshold: 1}"), "spec.signals[0].name: Invalid value: \"Queue\": must be a DNS label: lower-case letters, digits and hyphens"),
	Entry("Prometheus without its member", withSignal("{name: a, type: Prometheus, threshold: 1}"), "spec.signals[0]: Invalid value: prometheus: {query: ...} is required when type is Prometheus, and forbidden otherwise"),
	Entry("Prometheus without a query", withSignal("{name: a, type: Prometheus, threshold: 1, prometheus: {endpoint: default}}"), "spec.signals[0].prometheus.query: Required value"),
	Entry("a query of 4097 characters", withSignal("{name: a, type: Prometheus, threshold: 1, prometheus: {query: "+strings.Repeat("a", 4097)+"}}"), "spec.signals[0].prometheus.query: Too long: may not be more than 4096"),
	Entry("Condition without its member", withSignal("{name: a, type: Condition, threshold: 1}"), "spec.signals[0]: Invalid value: condition: {type: ..., status: ...} is required when type is Condition, and forbidden otherwise"),
	Entry("a condition's status as a boolean", withSignal("{name: a, type: Condition, threshold: 1, condition: {type: Available, status: true}}"), `supported values: "True", "False", "Unknown"`),
	Entry("a query for another type", withSignal("{name: a, type: OOMKills, threshold: 1, prometheus: "+query+"}"), "spec.signals[0]: Invalid value: prometheus: {query: ...} is required when type is Prometheus, and forbidden otherwise"),
	Entry("a condition for another type", withSignal("{name: a, type: OOMKills, threshold: 1, condition: {type: Available, status: 'True'}}"), "spec.signals[0]: Invalid value: condition: {type: ..., status: ...} is required when type is Condition, and forbidden otherwise"),
	Entry("containerRestarts for another type", withSignal("{name: a, type: OOMKills, threshold: 1, containerRestarts: {}}"), "containerRestarts is allowed only when type is ContainerRestarts"),
	Entry("crashLoopingPods for another type", withSignal("{name: a, type: OOMKills, threshold: 1, crashLoopingPods: {}}"), "crashLoopingPods is allowed only when type is CrashLoopingPods"),
	Entry("oomKills for another type", withSignal("{name: a, type: PendingPods, threshold: 1, oomKills: {}}"), "oomKills is allowed only when type is OOMKills"),
	Entry("pendingPods for another type", withSignal("{name: a, type: OOMKills, threshold: 1, pendingPods: {}}"), "pendingPods is allowed only when type is PendingPods"),
	Entry("cpuUtilization for another type", withSignal("{name: a, type: MemoryUtilization, threshold: 1, cpuUtilization: {}}"), "cpuUtilization is allowed only when type is CPUUtilization"),
	Entry("memoryUtilization for another type", withSignal("{name: a, type: CPUUtilization, threshold: 1, memoryUtilization: {}}"), "memoryUtilization is allowed only when type is MemoryUtilization"),
	Entry("recovery above the threshold", withSignal("{name: a, type: OOMKills, threshold: 5, recoveryThreshold: 6}"), "below it for AtLeast, above it for AtMost"),
	Entry("recovery at the threshold", withSignal("{name: a, type: OOMKills, threshold: 5, recoveryThreshold: 5, comparison: AtLeast}"), "below it for AtLeast, above it for AtMost"),
	Entry("recovery below the threshold for AtMost", withSignal("{name: a, type: Prometheus, prometheus: "+query+", threshold: 5, recoveryThreshold: 4, comparison: AtMost}"), "below it for AtLeast, above it for AtMost"),
	Entry("no data as health without an aliveQuery", withSignal("{name: a, type: Prometheus, prometheus: "+query+", threshold: 5, noData: Healthy}"), "noData: Healthy needs prometheus.aliveQuery, to tell a healthy system from one that reports nothing: set both, or noData: Unknown"),
	Entry("no data as health without Prometheus", withSignal("{name: a, type: CPUUtilization, threshold: 5, noData: Healthy}"), "noData: Healthy needs prometheus.aliveQuery, to tell a healthy system from one that reports nothing: set both, or noData: Unknown"),

	// Steps
	Entry("no steps", "{"+judged+", steps: []}", "spec.steps in body should have at least 1 items"),
	Entry("nine steps", withStep(stepNames("{name: s%d, action: Restart}", 9)), "spec.steps: Too many: 9: must have at most 8"),
	Entry("two steps of one name", withStep("{name: a, action: Restart}, {name: a, action: Rollback}"), "spec.steps[1]: Duplicate value"),
	Entry("a step without name", withStep("{action: Restart}"), "spec.steps[0].name: Required value"),
	Entry("a step without action", withStep("{name: a}"), "spec.steps[0].action: Required value"),
	Entry("a step as a word", withStep("Restart"), "spec.steps[0] in body must be of type object"),
	Entry("a step's name with capitals", withStep("{name: RestartIt, action: Restart}"), "spec.steps[0].name: Invalid value: \"RestartIt\": must be a DNS label: lower-case letters, digits and hyphens"),
	Entry("a step's name with a dot", withStep("{name: step.one, action: Restart}"), "must be a DNS label: lower-case letters, digits and hyphens"),
	Entry("a step's name with a hyphen at its end", withStep("{name: step-, action: Restart}"), "hyphens, not at either end"),
	Entry("a step's name that YAML reads as a boolean", withStep("{name: off, action: Restart}"), "spec.steps[0].name in body must be of type string"),
	Entry("a step's name of 64 characters", withStep("{name: "+strings.Repeat("a", 64)+", action: Restart}"), "spec.steps[0].name: Too long: may not be more than 63"),
	Entry("a step's action in lower case", withStep("{name: a, action: scale, scale: {by: 1, max: 2}}"), `spec.steps[0].action: Unsupported value: "scale": supported values: "Restart", "Evict", "Scale", "Rollback", "Notify"`),
	Entry("a step's mode in lower case", withStep("{name: a, action: Restart, mode: auto}"), `spec.steps[0].mode: Unsupported value: "auto": supported values: "Auto", "Observe"`),
	Entry("an unknown onFailure", withStep("{name: a, action: Restart, onFailure: Continue}"), `spec.steps[0].onFailure: Unsupported value: "Continue": supported values: "Next", "Stop"`),
	Entry("Scale without its member", withStep("{name: a, action: Scale}"), "spec.steps[0]: Invalid value: scale: {by: ..., max: ...} is required when action is Scale, and forbidden otherwise"),
	Entry("scale for another action", withStep("{name: a, action: Restart, scale: {by: 1, max: 2}}"), "spec.steps[0]: Invalid value: scale: {by: ..., max: ...} is required when action is Scale, and forbidden otherwise"),
	Entry("evict for another action", withStep("{name: a, action: Restart, evict: {}}"), "evict is allowed only when action is Evict"),
	Entry("notify for another action", withStep("{name: a, action: Restart, notify: {}}"), "notify is allowed only when action is Notify"),
	Entry("by and to", withStep("{name: a, action: Scale, scale: {by: 1, to: 3, max: 6}}"), "set exactly one of by (replicas to add or take away), to (replicas to have)"),
	Entry("neither by nor to", withStep("{name: a, action: Scale, scale: {max: 6}}"), "set exactly one of by (replicas to add or take away), to (replicas to have)"),
	Entry("Scale without a maximum", withStep("{name: a, action: Scale, scale: {by: 1}}"), "spec.steps[0].scale.max: Required value"),
	Entry("min above max", withStep("{name: a, action: Scale, scale: {by: 1, min: 7, max: 6}}"), "min must not be above max: lower min or raise max"),
	Entry("replicas below 0", withStep("{name: a, action: Scale, scale: {to: -1, max: 6}}"), "spec.steps[0].scale.to in body should be greater than or equal to 0"),
	Entry("a maximum above 10000", withStep("{name: a, action: Scale, scale: {by: 1, max: 10001}}"), "spec.steps[0].scale.max in body should be less than or equal to 10000"),
	Entry("more pods than an order holds", withStep("{name: a, action: Evict, evict: {maxPods: 17}}"), "spec.steps[0].evict.maxPods in body should be less than or equal to 16"),
	Entry("an unknown budget policy", withStep("{name: a, action: Evict, evict: {unhealthyPods: Always}}"), `spec.steps[0].evict.unhealthyPods: Unsupported value: "Always": supported values: "RespectBudget", "IgnoreBudget"`),
	Entry("an empty receiver", withStep("{name: a, action: Notify, notify: {receiver: ''}}"), "spec.steps[0].notify.receiver"),

	// Metadata and the whole
	Entry("a name of 53 characters", "metadata: {name: "+strings.Repeat("a", 53)+"}\nspec: {"+judged+"}", "metadata.name must be at most 52 characters"),
	Entry("a name with a capital", "metadata: {name: Web}\nspec: {"+judged+"}", "metadata.name: Invalid value: \"Web\": a lowercase RFC 1123 subdomain"),
	Entry("no spec", "metadata: {name: web}", "spec: Required value"),
	Entry("a spec of null", "metadata: {name: web}\nspec: null", "spec: Required value"),
	Entry("a spec in the wrong place", "metadata: {name: web, targetDeployment: web}\nspec: {"+judged+"}", `unknown field "metadata.targetDeployment"`),

	// Fields that do not exist
	Entry("a misspelt threshold", "{"+target+", treshold: 1}", `unknown field "spec.treshold"`),
	Entry("misspelt steps", "{"+judged+", stpes: []}", `unknown field "spec.stpes"`),
	Entry("a field in another case", "{"+target+", Threshold: 1}", `unknown field "spec.Threshold"`),
	Entry("a field of another product", withStep("{name: a, action: Restart, params: {}}"), `unknown field "spec.steps[0].params"`),
	Entry("workload, which is to come", "{"+judged+", workload: {kind: Deployment}}", `unknown field "spec.workload"`),
	Entry("windows, which are to come", "{"+judged+", windows: []}", `unknown field "spec.windows"`),
	Entry("approval, which is to come", "{"+judged+", approvalTimeoutSeconds: 60}", `unknown field "spec.approvalTimeoutSeconds"`),
	Entry("pauses, which are to come", "{"+judged+", pauses: []}", `unknown field "spec.pauses"`),
	Entry("backup, which is to come", "{"+judged+", backup: {}}", `unknown field "spec.backup"`),
	Entry("restore, which is to come", "{"+judged+", restore: {}}", `unknown field "spec.restore"`),
	Entry("undo, which is to come", withStep("{name: a, action: Restart, undo: Always}"), `unknown field "spec.steps[0].undo"`),
	Entry("an action that is to come", withStep("{name: a, action: RunJob}"), `spec.steps[0].action: Unsupported value: "RunJob": supported values: "Restart", "Evict", "Scale", "Rollback", "Notify"`),
	Entry("a signal that is to come", withSignal("{name: a, type: HTTP, threshold: 1}"), `spec.signals[0].type: Unsupported value: "HTTP": supported values:`),
)

var _ = DescribeTable("refuses JSON that YAML cannot say",
	func(ctx context.Context, spec, want string) {
		err := create(ctx, "default", []byte(`{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":"web"},"spec":`+spec+`}`))
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
	Entry("a number too large for any float", `{"targetDeployment":"web","threshold":1e400}`, "cannot unmarshal number 1e400"),
	Entry("a key twice", `{"targetDeployment":"web","targetDeployment":"db"}`, `duplicate field "spec.targetDeployment"`),
	Entry("a fraction that looks whole, where a rule reads it", `{"targetDeployment":"web","threshold":1,"steps":[{"name":"a","action":"Scale","scale":{"by":1.0,"max":6}}]}`, "expected int, got float64 evaluating rule: set exactly one of by"),
)
