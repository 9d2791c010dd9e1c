package cluster_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/example/aiops-operator/test/cluster"
)

var _ = Describe("Access", func() {
	It("is refused to a user nobody has granted anything", func(ctx SpecContext) {
		config, err := shared.UserConfig("stranger", "nobodies")
		Expect(err).NotTo(HaveOccurred())
		_, err = clientFor(config).CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
		Expect(err).To(MatchError(ContainSubstring(`User "stranger" cannot list resource "pods"`)))
	})

	It("is granted to a group by RBAC", func(ctx SpecContext) {
		bind(ctx, "view", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "readers"})
		config, err := shared.UserConfig("reader", "readers")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error {
			_, err := clientFor(config).CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err
		}).WithContext(ctx).Should(Succeed())
	})

	It("works with a ServiceAccount's token, as far as its rights go", func(ctx SpecContext) {
		_, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		bind(ctx, "view", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "robot"})
		config, err := shared.ServiceAccountConfig(ctx, namespace, "robot")
		Expect(err).NotTo(HaveOccurred())
		robot := clientFor(config)
		Eventually(func() error {
			_, err := robot.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err
		}).WithContext(ctx).Should(Succeed())
		Expect(createConfigMap(ctx, robot, "note")).To(Satisfy(apierrors.IsForbidden))
	})

	It("can be written as a kubeconfig", func(ctx SpecContext) {
		config, err := shared.UserConfig("root", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(shared.WriteKubeconfig(path, config)).To(Succeed())
		read, err := clientcmd.BuildConfigFromFlags("", path)
		Expect(err).NotTo(HaveOccurred())
		Expect(createConfigMap(ctx, clientFor(read), "note")).To(Succeed())
	})
})

var _ = Describe("The audit log", func() {
	It("shows who wrote what, and only what came after the mark", func(ctx SpecContext) {
		config, err := shared.UserConfig("writer-"+namespace, "system:masters")
		Expect(err).NotTo(HaveOccurred())
		writer := clientFor(config)
		Expect(createConfigMap(ctx, writer, "before")).To(Succeed())
		byWriter := func(event cluster.AuditEvent) bool { return event.User == "writer-"+namespace }
		Eventually(func() ([]cluster.AuditEvent, error) { return shared.AuditEvents(byWriter) }).
			WithContext(ctx).Should(HaveLen(1))
		mark, err := shared.AuditMark()
		Expect(err).NotTo(HaveOccurred())

		Expect(createConfigMap(ctx, writer, "after")).To(Succeed())
		_, err = writer.CoreV1().ConfigMaps(namespace).Get(ctx, "after", metav1.GetOptions{}) // Reads are not recorded.
		Expect(err).NotTo(HaveOccurred())
		Expect(createConfigMap(ctx, writer, "after")).To(Satisfy(apierrors.IsAlreadyExists))

		Eventually(func() ([]cluster.AuditEvent, error) { return shared.AuditEventsSince(mark, byWriter) }).
			WithContext(ctx).Should(HaveExactElements(
			SatisfyAll(HaveField("Verb", "create"), HaveField("Resource", "configmaps"), HaveField("Namespace", namespace),
				HaveField("Name", "after"), HaveField("Code", 201), HaveField("Stage", "ResponseComplete")),
			SatisfyAll(HaveField("Verb", "create"), HaveField("Name", "after"), HaveField("Code", 409)),
		))
	})

	DescribeTable("is marked at the end of a line, also while the next one is being written",
		func(log, marked string) {
			Expect(cluster.EndOfLines(strings.NewReader(log), int64(len(log)))).To(BeEquivalentTo(len(marked)))
		},
		Entry("empty", "", ""),
		Entry("complete", "a\nb\n", "a\nb\n"),
		Entry("the last line is not", "a\nb", "a\n"),
		Entry("the first line is not", "a", ""),
		Entry("it is long", "a\n"+strings.Repeat("b", 10000), "a\n"),
	)
})

var _ = Describe("The metrics API", func() {
	It("serves what the pods' annotations say, and follows them", func(ctx SpecContext) {
		createDeployment(ctx, 1, podTemplate(map[string]string{
			cluster.CPUAnnotation: "250m", cluster.MemoryAnnotation: "64Mi",
		}, "app:1"))
		Eventually(podUsage(ctx)).WithContext(ctx).Should(SatisfyAll(
			HaveKeyWithValue("cpu", BeNumerically("~", 0.25, 0.03)), HaveKeyWithValue("memory", BeEquivalentTo(64<<20))))

		annotatePod(ctx, onlyPod(ctx).Name, `{"`+cluster.CPUAnnotation+`":"900m"}`)
		Eventually(podUsage(ctx)).WithContext(ctx).Should(HaveKeyWithValue("cpu", BeNumerically("~", 0.9, 0.1)))
	})
})

var _ = Describe("A cluster", func() {
	It("runs beside another one, and leaves no process and no folder behind", func(ctx SpecContext) {
		other := startCluster(ctx, cluster.Options{Nodes: -1})
		processes := processNumbers(other.Dir())
		Expect(processes).To(HaveLen(5))
		Expect(other.Config().Host).NotTo(Equal(shared.Config().Host))
		Expect(createConfigMap(ctx, clientFor(other.Config()), "note", metav1.NamespaceDefault)).To(Succeed())
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "note", metav1.GetOptions{})
		Expect(err).To(Satisfy(apierrors.IsNotFound))

		Expect(other.Stop()).To(Succeed())
		Expect(other.Stop()).To(Succeed())
		Expect(slices.DeleteFunc(processes, ended)).To(BeEmpty())
		Expect(other.Dir()).NotTo(BeAnExistingFile())
		Expect(createConfigMap(ctx, client, "still-there")).To(Succeed())
		AddReportEntry("start times", startTimes) // how long it may take, Start itself says
	})

	It("dies with the process that started it", func(ctx SpecContext) {
		if runtime.GOOS != "linux" {
			Skip("only the Linux kernel ties children to their parent")
		}
		folder := GinkgoT().TempDir()
		parent := exec.CommandContext(ctx, os.Args[0], "-test.run=TestCluster")
		parent.Env = append(os.Environ(), childVariable+"="+folder)
		parent.Stderr = GinkgoWriter
		Expect(parent.Start()).To(Succeed())
		DeferCleanup(func() {
			if left, err := cluster.Open(folder); err == nil { // Only if the spec fails.
				Expect(left.Stop()).To(Succeed())
			}
		})
		Eventually(func() []int { return processNumbers(folder) }).WithContext(ctx).Should(HaveLen(5))
		processes := processNumbers(folder)

		Expect(parent.Process.Signal(syscall.SIGKILL)).To(Succeed())
		_ = parent.Wait()
		Eventually(func() []int { return slices.DeleteFunc(slices.Clone(processes), ended) }).WithContext(ctx).Should(BeEmpty())
	})

	It("is refused a folder in which another one runs", func(ctx SpecContext) {
		_, err := cluster.Start(ctx, cluster.Options{Dir: shared.Dir()})
		Expect(err).To(MatchError(cluster.ErrAlreadyRunning))
		Expect(createConfigMap(ctx, client, "unharmed")).To(Succeed())
	})

	It("hangs while frozen and goes on afterwards", func(ctx SpecContext) {
		thaw, err := shared.Freeze("kube-apiserver")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(thaw) // The other specs share this cluster.
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		Expect(createConfigMap(short, client, "lost")).To(MatchError(context.DeadlineExceeded))
		Expect(thaw()).To(Succeed())
		Eventually(func() error { return createConfigMap(ctx, client, "found") }).WithContext(ctx).Should(Succeed())
	})
})

var _ = Describe("The version", func() {
	It("is the one that the environment asks for, of the control plane and of the nodes", func(ctx SpecContext) {
		wanted := os.Getenv(cluster.KubernetesVariable)
		if wanted == "" {
			wanted = cluster.KubernetesVersions()[0]
		}
		served, err := client.Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(served.GitVersion).To(HavePrefix("v" + wanted + "."))
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(nodes.Items).NotTo(BeEmpty())
		for _, node := range nodes.Items {
			Expect(node.Status.NodeInfo.KubeletVersion).To(Equal(served.GitVersion))
		}
	})
})

var _ = Describe("Building", func() {
	It("names the programs there are when asked for another one", func(ctx SpecContext) {
		_, err := cluster.Build(ctx, nil, "kubelet")
		Expect(err).To(MatchError(ContainSubstring(`no program "kubelet": choose from etcd, kube-apiserver`)))
	})

	DescribeTable("takes a ready-made program if its version fits", func(ctx SpecContext, printed string, taken bool) {
		assets := GinkgoT().TempDir()
		offered := filepath.Join(assets, "kube-apiserver")
		Expect(os.WriteFile(offered, []byte("#!/bin/sh\necho "+printed+"\n"), 0o755)).To(Succeed())
		GinkgoT().Setenv("KUBEBUILDER_ASSETS", assets)
		GinkgoT().Setenv(cluster.KubernetesVariable, "")
		paths, err := cluster.Build(ctx, GinkgoWriter, "kube-apiserver")
		Expect(err).NotTo(HaveOccurred())
		if taken {
			Expect(paths).To(HaveKeyWithValue("kube-apiserver", offered))
		} else {
			Expect(paths).To(HaveKeyWithValue("kube-apiserver", Not(BeElementOf("", offered))))
		}
	},
		Entry("same minor version", "Kubernetes v1.37.0", true),
		Entry("older", "Kubernetes v1.34.1", false),
		Entry("unreadable", "hello", false),
	)

	It("takes the version that the environment asks for", func(ctx SpecContext) {
		assets := GinkgoT().TempDir()
		offered := filepath.Join(assets, "kube-scheduler")
		Expect(os.WriteFile(offered, []byte("#!/bin/sh\necho Kubernetes v1.34.1\n"), 0o755)).To(Succeed())
		GinkgoT().Setenv("KUBEBUILDER_ASSETS", assets)
		GinkgoT().Setenv(cluster.KubernetesVariable, "1.34")
		Expect(cluster.Build(ctx, GinkgoWriter, "kube-scheduler")).To(HaveKeyWithValue("kube-scheduler", offered))
	})

	It("names the versions there are when asked for another one", func(ctx SpecContext) {
		GinkgoT().Setenv(cluster.KubernetesVariable, "1.20")
		_, err := cluster.Build(ctx, nil, "kube-scheduler")
		Expect(err).To(MatchError(`no Kubernetes "1.20" (AIOPS_KUBERNETES): choose from 1.37, 1.36, 1.35, 1.34`))
	})
})

var _ = Describe("Prometheus", func() {
	It("answers queries about what it scrapes", func(ctx SpecContext) {
		server, err := cluster.StartPrometheus(ctx, "", []byte(
			"global: {scrape_interval: 200ms}\nscrape_configs:\n- job_name: exporter\n  static_configs: [{targets: ['127.0.0.1:1']}]\n"), GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		Eventually(func() (string, error) {
			return get(ctx, server.URL+"/api/v1/query?query="+url.QueryEscape(`up{job="exporter"}`))
		}).WithContext(ctx).Should(MatchRegexp(`"instance":"127.0.0.1:1".*"value":\[[0-9.]+,"0"\]`))
	})

	It("says what is wrong with a configuration", func(ctx SpecContext) {
		_, err := cluster.StartPrometheus(ctx, "", []byte("scrape_configs: 7\n"), GinkgoWriter)
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("prometheus: ended unexpectedly"), ContainSubstring("cannot unmarshal"))))
	})
})

func clientFor(config *rest.Config) kubernetes.Interface {
	GinkgoHelper()
	made, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return made
}

func bind(ctx context.Context, clusterRole string, subject rbacv1.Subject) {
	GinkgoHelper()
	_, err := client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: clusterRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func createConfigMap(ctx context.Context, by kubernetes.Interface, name string, in ...string) error {
	target := append(in, namespace)[0]
	_, err := by.CoreV1().ConfigMaps(target).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// processNumbers reads the notes a running cluster keeps of its processes.
func processNumbers(folder string) []int {
	notes, _ := filepath.Glob(filepath.Join(folder, "run", "*"))
	var numbers []int
	for _, note := range notes {
		content, err := os.ReadFile(note)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(content), "\n")
		if number, err := strconv.Atoi(first); err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

func ended(number int) bool { return errors.Is(syscall.Kill(number, 0), syscall.ESRCH) }
