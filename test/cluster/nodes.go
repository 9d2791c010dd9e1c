package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KWOK looks after the nodes with this annotation.
const (
	simulatedNodeAnnotation = "kwok.x-k8s.io/node"
	simulatedNodeValue      = "fake"
	// metricsPathAnnotation tells metrics-server where one of many nodes behind the same port is served.
	metricsPathAnnotation = "metrics.k8s.io/resource-metrics-path"
)

func (c *Cluster) createNodes(ctx context.Context) error {
	count := c.options.Nodes
	if count == 0 {
		count = defaultNodes
	}
	for number := 1; number <= count; number++ {
		node := c.node(fmt.Sprintf("node-%d", number))
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s: %w", node.Name, err)
		}
	}
	return nil
}

// node is a machine of 32 CPUs whose kubelet is KWOK.
func (c *Cluster) node(name string) *corev1.Node {
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
		"nvidia.com/gpu":                resource.MustParse("8"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Annotations: map[string]string{
				simulatedNodeAnnotation: simulatedNodeValue,
				metricsPathAnnotation:   "/metrics/nodes/" + name + "/metrics/resource",
			},
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "type": "kwok",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    size,
			Allocatable: size,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: loopback}, {Type: corev1.NodeHostName, Address: name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(c.ports.kwok)}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "v" + c.controlPlane.version,
				ContainerRuntimeVersion: "kwok://" + kwokVersion, OSImage: "simulated",
			},
		},
	}
}

// waitUntilUsable waits for what a user of a cluster takes for granted.
func (c *Cluster) waitUntilUsable(ctx context.Context) error {
	err := c.waitFor(ctx, "the nodes to be ready", c.checkNodes)
	if err != nil {
		return err
	}
	// Without it no pod can be created in the namespace.
	err = c.waitFor(ctx, "the default ServiceAccount", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil || !c.options.MetricsServer {
		return err
	}
	return c.waitFor(ctx, "the metrics API", func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes").Do(ctx).Error()
	})
}

func (c *Cluster) checkNodes(ctx context.Context) error {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !isReady(node) {
			return fmt.Errorf("%s is not ready", node.Name)
		}
	}
	return nil
}

// isReady also asks for the absence of taints: a new node has one until a controller has seen that it is ready.
func isReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return len(node.Spec.Taints) == 0
		}
	}
	return false
}
