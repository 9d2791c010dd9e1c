// Command demo shows the operator at work, to whoever has just cloned the repository: a real Kubernetes control plane, the operator's
// own program with its own rights, and three incidents with what a person on call would see of them. It ends with 0 only if every
// incident ended as it must. KEEP=1 leaves cluster and operator running.
//
// What belongs here: telling and checking the three scenes. What does not: proofs of the operator's promises; these are
// in test/integration.
package main
