// Package container makes this project's container images without a container engine, a network or a base image: the
// operator and the scorecard tests from one static binary each, the bundle and the catalog from a folder each.
//
// The same input gives the same digest: files are in order, owned by root and dated by the caller, and the binaries know
// neither the folder they were built in nor the state of the working tree.
//
// What belongs here: what is in an image, and its archive. What does not: what the folders hold, and where an image goes.
package container
