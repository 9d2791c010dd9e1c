// Package runbook decides. From an AITask, the state of its target, what its signal says, what the rest of the fleet does and
// the time, it works out the next status and what is to be done: nothing, plan a step, or run the recorded order.
//
// It is pure: no client, no clock, no logger, no randomness. The same input gives the same decision, so every rule can be tested
// as a table and replayed after a fault. Measuring, planning an action and running it belong to other packages, which
// hand their results in as plain values.
package runbook
