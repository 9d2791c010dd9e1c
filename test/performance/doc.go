// Command performance measures the operator's own program on a real control plane: how long it takes from a breach to the action,
// beside what the API server itself takes for one patch; a cold start; memory; requests; failover; and what a quiet system costs.
// docs/performance.md says what each number means.
//
// What belongs here: measuring and printing. What does not: assertions about behaviour; the suites in test/integration hold those.
package main
