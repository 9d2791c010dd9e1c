package packaging_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// networkPolicies are those of config/network-policy.
func networkPolicies(t *testing.T) map[string]networkingv1.NetworkPolicy {
	t.Helper()
	kustomization := &unstructured.Unstructured{}
	path := filepath.Join(configFolder, "network-policy")
	decodeFile(t, filepath.Join(path, "kustomization.yaml"), &kustomization.Object)
	files, _, err := unstructured.NestedStringSlice(kustomization.Object, "resources")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]networkingv1.NetworkPolicy{}
	for _, file := range files {
		var policy networkingv1.NetworkPolicy
		decodeFile(t, filepath.Join(path, file), &policy)
		out[policy.Name] = policy
	}
	if len(out) == 0 {
		t.Fatal("there is no network policy")
	}
	return out
}

// What speaks of the operator's pods picks them by the labels of their Deployment, and nobody else's.
func TestSelectorsPickTheOperatorsPods(t *testing.T) {
	deployment := installed[appsv1.Deployment](t, "Deployment")[0]
	selected := map[string]map[string]string{"topology spread": deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels}
	for _, service := range installed[corev1.Service](t, "Service") {
		selected["Service "+service.Name] = service.Spec.Selector
	}
	for _, budget := range installed[policyv1.PodDisruptionBudget](t, "PodDisruptionBudget") {
		selected["PodDisruptionBudget "+budget.Name] = budget.Spec.Selector.MatchLabels
	}
	for name, policy := range networkPolicies(t) {
		selected["NetworkPolicy "+name] = policy.Spec.PodSelector.MatchLabels
	}
	for what, got := range selected {
		if diff := cmp.Diff(deployment.Spec.Selector.MatchLabels, got); diff != "" {
			t.Errorf("%s picks other pods (-Deployment +it):\n%s", what, diff)
		}
	}
}

// One policy denies everything; the others allow ports, and into the pods only the one of metrics.
func TestNetworkPoliciesDenyWhatIsNotNeeded(t *testing.T) {
	policies := networkPolicies(t)
	deny := policies["controller-manager-deny-all"].Spec
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	if !slices.Equal(deny.PolicyTypes, both) || len(deny.Ingress)+len(deny.Egress) != 0 {
		t.Errorf("deny-all lets something through: %v", deny)
	}
	in, out := map[string]bool{}, map[string]bool{}
	for name, policy := range policies {
		for _, rule := range policy.Spec.Ingress {
			if len(rule.From) == 0 || len(rule.Ports) == 0 {
				t.Errorf("%s lets everybody in, or to every port", name)
			}
			addPorts(in, rule.Ports)
		}
		for _, rule := range policy.Spec.Egress {
			if len(rule.Ports) == 0 {
				t.Errorf("%s lets out to every port", name)
			}
			addPorts(out, rule.Ports)
		}
	}
	if diff := cmp.Diff(map[string]bool{"TCP/8443": true}, in); diff != "" {
		t.Errorf("ports of the pods (-want +got):\n%s", diff)
	}
	want := map[string]bool{"UDP/53": true, "TCP/53": true, "UDP/5353": true, "TCP/5353": true, // names
		"TCP/443": true, "TCP/6443": true, "TCP/8443": true, "TCP/16443": true, // API server
		"TCP/80": true, "TCP/8080": true, "TCP/8428": true, "TCP/8481": true, "TCP/9090": true, "TCP/9091": true,
		"TCP/10902": true} // with 443: the endpoints and receivers of the configuration
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("ports elsewhere (-want +got):\n%s", diff)
	}
}

func addPorts(to map[string]bool, ports []networkingv1.NetworkPolicyPort) {
	for _, port := range ports {
		to[string(*port.Protocol)+"/"+port.Port.String()] = true
	}
}
