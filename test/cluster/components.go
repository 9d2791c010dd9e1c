package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	serviceNetwork = "10.96.0.0/16"
	serviceAddress = "10.96.0.1"
	podNetwork     = "10.244.0.0/16"
	// mastersGroup may do everything: RBAC does not apply to it.
	mastersGroup = "system:masters"
	// pollInterval is how often a start looks whether the next thing is ready.
	pollInterval = 25 * time.Millisecond
)

// ports are the ports of one cluster, all on the loopback address.
type ports struct {
	etcd, etcdPeer, apiServer, kwok, metricsServer int
}

func (c *Cluster) choosePorts(context.Context) error {
	chosen, err := freePorts(5)
	if err != nil {
		return err
	}
	c.ports = ports{etcd: chosen[0], etcdPeer: chosen[1], apiServer: chosen[2], kwok: chosen[3], metricsServer: chosen[4]}
	return nil
}

// writeConfiguration makes certificates, kubeconfigs and the files the programs read.
func (c *Cluster) writeConfiguration(context.Context) error {
	roots, err := writeCertificates(c.path("certificates"))
	if err != nil {
		return err
	}
	c.authority = roots.cluster
	users := map[string]struct{ name, group string }{
		"admin":                  {"admin", mastersGroup},
		controllerManagerProgram: {"system:kube-controller-manager", ""},
		schedulerProgram:         {"system:kube-scheduler", ""},
		kwokProgram:              {"kwok", mastersGroup},
		metricsServerProgram:     {"metrics-server", mastersGroup},
	}
	for file, user := range users {
		config, err := c.UserConfig(user.name, user.group)
		if err != nil {
			return err
		}
		if err := c.WriteKubeconfig(c.kubeconfig(file), config); err != nil {
			return err
		}
	}
	if err := c.readAccess(); err != nil {
		return err
	}
	return c.writeFiles()
}

// kubeconfig is where the credentials of one program are kept.
func (c *Cluster) kubeconfig(name string) string {
	return c.path("configuration", name+".kubeconfig")
}

func (c *Cluster) writeFiles() error {
	simulation, err := simulationConfiguration()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"simulation.yaml":   simulation,
		"audit-policy.yaml": []byte(auditPolicy(c.options.AuditReads)),
	}
	for name, content := range files {
		if err := os.WriteFile(c.path("configuration", name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func (c *Cluster) readAccess() (err error) {
	if c.config, err = readKubeconfig(c.KubeconfigFile()); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

func (c *Cluster) start(name string, arguments []string) error {
	started, err := c.launcher.start(c.dir, name, c.programs[name], arguments)
	if started != nil {
		c.processes = append(c.processes, started)
	}
	return err
}

// certificate and key are the flags' file names.
func (c *Cluster) certificate(name string) string { return c.path("certificates", name+".crt") }
func (c *Cluster) key(name string) string         { return c.path("certificates", name+".key") }

func (c *Cluster) startEtcd(ctx context.Context) error {
	url, peerURL := "http://"+address(c.ports.etcd), "http://"+address(c.ports.etcdPeer)
	err := c.start(etcdProgram, []string{
		"--name=etcd", "--data-dir=" + c.path("data"), "--log-level=warn",
		"--unsafe-no-fsync", // The data need not survive the machine.
		"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=etcd=" + peerURL,
	})
	if err != nil {
		return err
	}
	return c.waitFor(ctx, "etcd to answer", func(ctx context.Context) error { return checkHealth(ctx, url+"/health") })
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	if err := c.start(apiServerProgram, c.apiServerArguments()); err != nil {
		return err
	}
	return c.waitFor(ctx, "kube-apiserver to be ready", func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (c *Cluster) apiServerArguments() []string {
	arguments := []string{
		"--etcd-servers=http://" + address(c.ports.etcd),
		"--bind-address=" + loopback, "--advertise-address=" + loopback, "--secure-port=" + strconv.Itoa(c.ports.apiServer),
		// The Service "kubernetes" gets no endpoints: a loopback address is not a valid one, and no pod really runs.
		"--endpoint-reconciler-type=none",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--client-ca-file=" + c.certificate("cluster"),
		"--tls-cert-file=" + c.certificate("kube-apiserver"), "--tls-private-key-file=" + c.key("kube-apiserver"),
		"--kubelet-certificate-authority=" + c.certificate("cluster"), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + c.certificate("kube-apiserver-client"), "--kubelet-client-key=" + c.key("kube-apiserver-client"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.path("certificates", "service-accounts.pub"),
		"--service-account-signing-key-file=" + c.key("service-accounts"),
		"--requestheader-client-ca-file=" + c.certificate("front-proxy"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.certificate("front-proxy-client"), "--proxy-client-key-file=" + c.key("front-proxy-client"),
		"--service-cluster-ip-range=" + serviceNetwork, "--profiling=false",
	}
	if c.options.Audit || c.options.AuditReads {
		arguments = append(arguments,
			"--audit-policy-file="+c.path("configuration", "audit-policy.yaml"), "--audit-log-path="+c.auditFile(),
			// One file, written before the answer leaves: a reader misses nothing and needs no rotation.
			"--audit-log-mode=blocking-strict", "--audit-log-maxsize=4096")
	}
	return arguments
}

// startControllers starts everything that only needs kube-apiserver, all at once.
func (c *Cluster) startControllers(context.Context) error {
	if err := c.start(controllerManagerProgram, c.controllerManagerArguments()); err != nil {
		return err
	}
	err := c.start(schedulerProgram, []string{
		"--kubeconfig=" + c.kubeconfig(schedulerProgram), "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000", "--profiling=false",
	})
	if err != nil {
		return err
	}
	err = c.start(kwokProgram, []string{
		"--kubeconfig=" + c.kubeconfig(kwokProgram), "--config=" + c.path("configuration", "simulation.yaml"),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=" + simulatedNodeAnnotation + "=" + simulatedNodeValue,
		"--cidr=" + podNetwork, "--node-ip=" + loopback, "--node-port=" + strconv.Itoa(c.ports.kwok),
		"--server-address=" + address(c.ports.kwok), "--node-lease-duration-seconds=40",
		"--tls-cert-file=" + c.certificate("kwok"), "--tls-private-key-file=" + c.key("kwok"),
	})
	if err != nil || !c.options.MetricsServer {
		return err
	}
	return c.start(metricsServerProgram, c.metricsServerArguments())
}

func (c *Cluster) controllerManagerArguments() []string {
	return []string{
		"--kubeconfig=" + c.kubeconfig(controllerManagerProgram), "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true", "--root-ca-file=" + c.certificate("cluster"),
		"--service-account-private-key-file=" + c.key("service-accounts"),
		"--cluster-signing-cert-file=" + c.certificate("cluster"), "--cluster-signing-key-file=" + c.key("cluster"),
		"--cluster-cidr=" + podNetwork, "--service-cluster-ip-range=" + serviceNetwork,
		// The default rates make several dozen controllers with accounts of their own wait for seconds at the start.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		// An autoscaler that takes minutes to act is of no use to a test.
		"--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=5s",
		"--horizontal-pod-autoscaler-cpu-initialization-period=1s", "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
		"--profiling=false",
	}
}

// waitFor polls until check succeeds. It gives up when the context ends or one of the cluster's processes does.
func (c *Cluster) waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		lastErr := check(ctx)
		if lastErr == nil {
			return nil
		}
		if err := c.firstFailure(); err != nil {
			return err
		}
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("wait for %s: %w: %w", what, err, lastErr)
		}
	}
}

// firstFailure reports a process that has ended although it should run.
func (c *Cluster) firstFailure() error {
	for _, started := range c.processes {
		if started.running() {
			continue
		}
		cause := errors.New("ended unexpectedly")
		if bytes.Contains([]byte(started.logTail()), []byte("address already in use")) {
			cause = errPortTaken
		}
		return started.failure(cause)
	}
	return nil
}
