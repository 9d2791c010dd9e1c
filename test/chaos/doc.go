// Package chaos holds no code of its own: its tests break the operator's process, its network and its world at every point of an
// incident, on a real control plane and with the operator's own rights, and count what the workload saw.
package chaos
