package main

import (
	"fmt"
	"slices"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

const (
	operatorUser             = "system:serviceaccount:" + harness.Namespace + ":" + harness.ServiceAccount
	deploymentControllerUser = "system:serviceaccount:kube-system:deployment-controller"
)

func isWrite(event cluster.AuditEvent) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb)
}

// isElection is true for the lease, and for the event that tells of it.
func isElection(event cluster.AuditEvent) bool {
	return event.Resource == "leases" || (event.Resource == "events" && event.Namespace == harness.Namespace)
}

// requestsSince returns the operator's requests after the mark, without the watches and lists that fill its caches.
func (b *bench) requestsSince(mark cluster.AuditMark) ([]cluster.AuditEvent, error) {
	return b.cluster.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
		return event.User == operatorUser && event.Verb != "watch" && event.Resource != ""
	})
}

// describe names a kind of request.
func describe(event cluster.AuditEvent) string {
	if event.Subresource != "" {
		return fmt.Sprintf("%s %s/%s", event.Verb, event.Resource, event.Subresource)
	}
	return fmt.Sprintf("%s %s", event.Verb, event.Resource)
}

// countByKind counts requests, without those of the leader election.
func countByKind(events []cluster.AuditEvent) (kinds []string, numbers map[string]int) {
	numbers = map[string]int{}
	for _, event := range events {
		if isElection(event) {
			continue
		}
		kind := describe(event)
		if numbers[kind] == 0 {
			kinds = append(kinds, kind)
		}
		numbers[kind]++
	}
	slices.Sort(kinds)
	return kinds, numbers
}

func countWhere(events []cluster.AuditEvent, holds func(cluster.AuditEvent) bool) int {
	number := 0
	for _, event := range events {
		if holds(event) {
			number++
		}
	}
	return number
}
