package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The network policies that values change.
const (
	metricsPolicy   = "controller-manager-allow-metrics"
	endpointsPolicy = "controller-manager-allow-endpoints"
)

// placement says where in the chart an object stands and what switches it.
type placement struct {
	kind string
	// nameStart narrows the kind to objects whose names, without the chart's part, begin with it.
	nameStart string
	file      string
	// when is the condition of an {{ if }}. Empty: always.
	when string
}

// placements: the first that fits an object holds. An object that none fits fails the build, so that nothing which is added
// below config/ is forgotten or installed without having been thought about.
func placements() []placement {
	const (
		rights        = ".Values.rbac.create"
		metricsRights = "and .Values.rbac.create .Values.metrics.enabled"
		userRights    = "and .Values.rbac.create .Values.rbac.userRoles"
	)
	return []placement{
		{kind: "CustomResourceDefinition", file: "crd.yaml", when: ".Values.crds.enabled"},
		{kind: "ServiceAccount", file: "serviceaccount.yaml", when: ".Values.serviceAccount.create"},
		{kind: "ClusterRole", nameStart: "aitask-", file: "user-roles.yaml", when: userRights},
		{kind: "ClusterRole", nameStart: "metrics-", file: "metrics-rbac.yaml", when: metricsRights},
		{kind: "ClusterRoleBinding", nameStart: "metrics-", file: "metrics-rbac.yaml", when: metricsRights},
		{kind: "ClusterRole", nameStart: "manager-", file: "rbac.yaml", when: rights},
		{kind: "ClusterRoleBinding", nameStart: "manager-", file: "rbac.yaml", when: rights},
		{kind: "Role", nameStart: "leader-election-", file: "rbac.yaml", when: rights},
		{kind: "RoleBinding", nameStart: "leader-election-", file: "rbac.yaml", when: rights},
		{kind: "ConfigMap", nameStart: "manager-config", file: "configmap.yaml"},
		{kind: "Deployment", nameStart: "controller-manager", file: "deployment.yaml"},
		{kind: "PriorityClass", file: "priorityclass.yaml", when: ".Values.priorityClass.create"},
		{kind: "PodDisruptionBudget", file: "poddisruptionbudget.yaml", when: ".Values.podDisruptionBudget.enabled"},
		{kind: "Service", nameStart: "controller-manager-metrics", file: "metrics-service.yaml", when: ".Values.metrics.enabled"},
		{
			kind: "ServiceMonitor", file: "servicemonitor.yaml",
			when: "and .Values.metrics.enabled .Values.metrics.serviceMonitor.enabled",
		},
		{
			kind: "PrometheusRule", file: "prometheusrule.yaml",
			when: "and .Values.metrics.enabled .Values.metrics.prometheusRule.enabled",
		},
		{
			kind: "NetworkPolicy", nameStart: metricsPolicy, file: "networkpolicy.yaml",
			when: "and .Values.networkPolicy.enabled .Values.metrics.enabled .Values.networkPolicy.metricsFrom",
		},
		{
			kind: "NetworkPolicy", nameStart: endpointsPolicy, file: "networkpolicy.yaml",
			when: "and .Values.networkPolicy.enabled .Values.networkPolicy.egressPorts",
		},
		{kind: "NetworkPolicy", file: "networkpolicy.yaml", when: ".Values.networkPolicy.enabled"},
	}
}

func placementOf(object *unstructured.Unstructured) (placement, error) {
	for _, candidate := range placements() {
		if candidate.kind == object.GetKind() && strings.HasPrefix(object.GetName(), candidate.nameStart) {
			return candidate, nil
		}
	}
	return placement{}, fmt.Errorf("%s %s has no place in the chart: say in placements which value switches it", object.GetKind(), object.GetName())
}
