package helm_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

const (
	definitionName = "aitasks.aiops.example.com"
	releaseName    = "aiops-operator"
	// nextVersion is later than every version that this tree will have.
	nextVersion = "1000.0.0"
)

// release is a release of the chart in a namespace of the spec's own.
type release struct {
	name, namespace string
}

// newRelease names a release. Whatever becomes of it in the spec, nothing is left after it.
func newRelease() *release {
	GinkgoHelper()
	r := &release{name: releaseName, namespace: "aiops-" + utilrand.String(5)}
	DeferCleanup(func(ctx context.Context) {
		_, err := program.Run(ctx, "uninstall", r.name, "--namespace", r.namespace, "--ignore-not-found", "--wait")
		Expect(err).NotTo(HaveOccurred())
		remove(ctx, definition())
		remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})
	})
	return r
}

// remove deletes an object and waits until it is gone.
func remove(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed())
	Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(object), object) }).WithTimeout(harness.DeletionTime).
		Should(MatchError(ContainSubstring("not found")))
}

// createNamespace makes the release's namespace and waits for what every namespace has.
func (r *release) createNamespace(ctx context.Context) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})).To(Succeed())
	Eventually(func() ([]string, error) { return harness.Inventory(ctx, kubernetes.Config()) }).Should(ContainElements(
		"configmaps "+r.namespace+"/kube-root-ca.crt", "serviceaccounts "+r.namespace+"/default"))
}

// lease is what the operator itself leaves in its namespace.
func (r *release) lease() string {
	return "leases.coordination.k8s.io " + r.namespace + "/aiops-operator.aiops.example.com"
}

// kept is what the chart leaves by default.
func kept(task *aiopsv1.AITask) []string {
	return []string{
		"customresourcedefinitions.apiextensions.k8s.io " + definitionName,
		"apiservices.apiregistration.k8s.io v1.aiops.example.com",
		"aitasks.aiops.example.com " + task.Namespace + "/" + task.Name,
	}
}

// documented returns the arguments of the one command in docs/helm.md that begins so.
func documented(beginning string) []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "helm.md"))
	Expect(err).NotTo(HaveOccurred())
	_, command, found := strings.Cut(strings.ReplaceAll(string(text), "\\\n", ""), "    "+beginning)
	Expect(found).To(BeTrue())
	command, _, _ = strings.Cut(beginning+command, "\n")
	return strings.Fields(command)[1:]
}

// kubectl runs kubectl and expects it to succeed.
func kubectl(ctx context.Context, arguments ...string) {
	GinkgoHelper()
	paths, err := cluster.Build(ctx, GinkgoWriter, "kubectl")
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, paths["kubectl"], arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubernetes.KubeconfigFile())
	printed, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(printed))
}

// helm runs a command about the release and expects it to succeed.
func (r *release) helm(ctx context.Context, command string, arguments ...string) string {
	GinkgoHelper()
	printed, err := r.try(ctx, command, arguments...)
	Expect(err).NotTo(HaveOccurred())
	return printed
}

func (r *release) try(ctx context.Context, command string, arguments ...string) (string, error) {
	return program.Run(ctx, append([]string{command, r.name, "--namespace", r.namespace}, arguments...)...)
}

// install installs a chart, or this tree's, as docs/helm.md says.
func (r *release) install(ctx context.Context, arguments ...string) {
	GinkgoHelper()
	r.helm(ctx, "install", append([]string{chart(), "--create-namespace", "--wait"}, arguments...)...)
}

// upgrade upgrades to a chart as docs/helm.md says.
func (r *release) upgrade(ctx context.Context, folder string, arguments ...string) {
	GinkgoHelper()
	r.helm(ctx, "upgrade", append([]string{folder, "--wait", "--reset-then-reuse-values"}, arguments...)...)
}

// deployment reads the operator's Deployment.
func (r *release) deployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	out := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: r.name + "-controller-manager"}, out)).To(Succeed())
	return out
}

// chart is the chart of this tree.
func chart() string { return filepath.Join(harness.Root(), "dist", "chart") }

// version is that of this tree's chart.
func version() string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(chart(), "Chart.yaml"))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`(?m)^version: (\S+)$`).FindSubmatch(content)
	Expect(found).To(HaveLen(2))
	return string(found[1])
}

// nextChart is this tree's chart as a later version, whose CRD knows the field spec.note.
func nextChart() string {
	GinkgoHelper()
	folder := filepath.Join(GinkgoT().TempDir(), "chart")
	Expect(os.CopyFS(folder, os.DirFS(chart()))).To(Succeed())
	replace(filepath.Join(folder, "Chart.yaml"), regexp.QuoteMeta(version()), nextVersion)
	replace(filepath.Join(folder, "templates", "crd.yaml"), `(?m)^( +)intervalSeconds:$`,
		"${1}note:\n${1}  description: A field of the later version.\n${1}  type: string\n${1}intervalSeconds:")
	return folder
}

// replace changes every place that fits; there must be one.
func replace(file, pattern, by string) {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	changed := regexp.MustCompile(pattern).ReplaceAll(content, []byte(by))
	Expect(changed).NotTo(Equal(content))
	Expect(os.WriteFile(file, changed, 0o600)).To(Succeed())
}

func definition() *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	out.SetName(definitionName)
	return out
}

// fields are the fields of spec that the served CRD knows.
func fields(ctx context.Context) []string {
	GinkgoHelper()
	served := definition()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(served), served)).To(Succeed())
	versions, _, _ := unstructured.NestedSlice(served.Object, "spec", "versions")
	properties, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	var out []string
	for name := range properties {
		out = append(out, name)
	}
	return out
}

// newWorkload makes a Deployment with two running pods in a namespace of its own.
func newWorkload(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, namespace)).To(Succeed()) })
	out := harness.Deployment(namespace.Name, "web", 2, "shop/web:1")
	Expect(admin.Create(ctx, out)).To(Succeed())
	Eventually(func() int32 {
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(out), out)).To(Succeed())
		return out.Status.AvailableReplicas
	}).Should(Equal(int32(2)))
	return out
}

// newTask makes a task that restarts the workload.
func newTask(ctx context.Context, workload *appsv1.Deployment) *aiopsv1.AITask {
	GinkgoHelper()
	out := harness.Task(workload.Namespace, workload.Name, "Restart")
	Eventually(func() error { return admin.Create(ctx, out) }).Should(Succeed()) // the kind may just have been defined
	return out
}

// latest reads a task for Eventually.
func latest(ctx context.Context, of *aiopsv1.AITask) func() *aiopsv1.AITask {
	return func() *aiopsv1.AITask {
		out := &aiopsv1.AITask{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(of), out); err != nil {
			return nil
		}
		return out
	}
}

// note writes spec.note, which only the later CRD knows, and returns what has been stored.
func note(ctx context.Context, of *aiopsv1.AITask, text string) string {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"note": text}})
	Expect(err).NotTo(HaveOccurred())
	object := rawTask(of)
	Expect(admin.Patch(ctx, object, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
	return noteOf(ctx, of)
}

func noteOf(ctx context.Context, of *aiopsv1.AITask) string {
	GinkgoHelper()
	object := rawTask(of)
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	out, _, _ := unstructured.NestedString(object.Object, "spec", "note")
	return out
}

func rawTask(of *aiopsv1.AITask) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(aiopsv1.GroupVersion().WithKind("AITask"))
	out.SetNamespace(of.Namespace)
	out.SetName(of.Name)
	return out
}

// pods are the live pods of a Deployment.
func pods(ctx context.Context, of *appsv1.Deployment) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(admin.List(ctx, list, client.InNamespace(of.Namespace), client.MatchingLabels(of.Spec.Selector.MatchLabels))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// podUIDs tell whether pods were replaced.
func podUIDs(ctx context.Context, of *appsv1.Deployment) []string {
	GinkgoHelper()
	var out []string
	for _, pod := range pods(ctx, of) {
		out = append(out, string(pod.UID))
	}
	return out
}

// snapshot returns every object of the cluster, as soon as all kinds can be listed.
func snapshot(ctx context.Context) []string {
	GinkgoHelper()
	out, err := harness.CompleteInventory(ctx, kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	return out
}

// added returns, for Eventually, what there is now and was not before, without what the workload's controllers make.
func added(ctx context.Context, before []string) func() ([]string, error) {
	return func() ([]string, error) {
		now, err := harness.AddedSince(ctx, kubernetes.Config(), before)
		return slices.DeleteFunc(now, func(object string) bool {
			return strings.Contains(object, " shop-") && !strings.HasPrefix(object, "aitasks.")
		}), err
	}
}
