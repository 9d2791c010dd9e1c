package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	metricsService     = "metrics-server"
	metricsServiceName = metricsService + "." + metav1.NamespaceSystem + ".svc"
	metricsVersion     = "v1beta1"
	metricsGroup       = "metrics.k8s.io"
)

func (c *Cluster) metricsServerArguments() []string {
	kubeconfig := c.kubeconfig(metricsServerProgram)
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(c.ports.metricsServer),
		"--tls-cert-file=" + c.certificate("metrics-server"), "--tls-private-key-file=" + c.key("metrics-server"),
		"--kubelet-certificate-authority=" + c.certificate("cluster"),
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port",
	}
}

// registerMetricsServer makes kube-apiserver serve the metrics API from the process on this machine. Endpoints on a
// loopback address are refused by validation, but a Service may be a name for something outside the cluster, and
// kube-apiserver passes aggregated requests on to that name.
func (c *Cluster) registerMetricsServer(ctx context.Context) error {
	if !c.options.MetricsServer {
		return nil
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: metricsService, Namespace: metav1.NamespaceSystem},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if _, err := c.client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the Service of metrics-server: %w", err)
	}
	role := metricsReaderRole()
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the ClusterRole %s: %w", role.Name, err)
	}
	body, err := json.Marshal(c.metricsAPIService())
	if err != nil {
		return fmt.Errorf("encode the APIService of metrics-server: %w", err)
	}
	err = c.client.Discovery().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("create the APIService of metrics-server: %w", err)
	}
	return nil
}

// metricsReaderRole lets whoever may view a namespace also view what its pods use, as in a usual installation.
func metricsReaderRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: "system:aggregated-metrics-reader",
			Labels: map[string]string{
				"rbac.authorization.k8s.io/aggregate-to-view":  "true",
				"rbac.authorization.k8s.io/aggregate-to-edit":  "true",
				"rbac.authorization.k8s.io/aggregate-to-admin": "true",
			},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{metricsGroup}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
}

// metricsAPIService is spelled out because the kind's Go types live in a module that nothing else here needs.
func (c *Cluster) metricsAPIService() map[string]any {
	return map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": metricsVersion + "." + metricsGroup},
		"spec": map[string]any{
			"group": metricsGroup, "version": metricsVersion, "groupPriorityMinimum": 100, "versionPriority": 100,
			"caBundle": c.authority.certificatePEM,
			"service": map[string]any{
				"namespace": metav1.NamespaceSystem, "name": metricsService, "port": c.ports.metricsServer,
			},
		},
	}
}
