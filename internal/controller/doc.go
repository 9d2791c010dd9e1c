// Package controller is the loop: for one AITask it resolves the target, observes the signal, has the runbook decide, carries the
// decision out through the gate, and reports. It holds no domain rule: what a threshold, a step or a refusal means is decided in
// runbook, what a workload is in target, what a value is in signal, what is done in action.
package controller
