package main_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/harness"
)

// operator is the operator's Deployment, whose pods are simulated, and the program that runs in their place: when none of the pods
// that a process stands for is left, a new process follows it, which stands for the pods that are there then.
type operator struct {
	path       string
	deployment *appsv1.Deployment

	mutex   sync.Mutex
	process *harness.Process
	config  string
	count   int
	// pods are those that the process stands for. Empty: they are not known yet.
	pods sets.Set[types.UID]
	// whenRolled is called when a new process has followed. Nil: nothing is.
	whenRolled func(context.Context)
}

// newOperator installs the Deployment that the ClusterServiceVersion describes, and looks after it until the suite ends.
func newOperator(ctx context.Context) *operator {
	GinkgoHelper()
	path, err := harness.BuildOperator(ctx)
	Expect(err).NotTo(HaveOccurred())
	described := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	out := &operator{path: path, deployment: &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: harness.Namespace, Name: described.Name}, Spec: described.Spec}}
	Expect(admin.Create(ctx, out.deployment.DeepCopy())).To(Succeed())
	looking, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		out.lookAfter(looking)
	}()
	DeferCleanup(func() {
		end()
		<-done
		out.stop()
	})
	return out
}

// start runs a process with this configuration, in place of the one before.
func (o *operator) start(ctx context.Context, config string) {
	GinkgoHelper()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.config, o.pods = config, nil
	o.replace(ctx)
}

// replace starts the new process before it ends the old one, as a rolling update does.
func (o *operator) replace(ctx context.Context) {
	GinkgoHelper()
	o.count++
	before := o.process
	var err error
	o.process, err = harness.StartProcess(ctx, kubernetes, o.path, harness.ProcessOptions{Name: fmt.Sprintf("operator-%d", o.count), Config: o.config})
	Expect(err).NotTo(HaveOccurred())
	Expect(o.process.WaitReady(ctx)).To(Succeed())
	if before != nil {
		Expect(before.Stop()).To(Succeed())
	}
}

// stop ends the process; the Deployment and its simulated pods stay.
func (o *operator) stop() {
	GinkgoHelper()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.process != nil {
		Expect(o.process.Stop()).To(Succeed())
		o.process = nil
	}
}

// lookAfter follows the Deployment's pods.
func (o *operator) lookAfter(ctx context.Context) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			o.follow(ctx)
		}
	}
}

// follow looks at the pods while the Deployment has as many as it wants.
func (o *operator) follow(ctx context.Context) {
	live, err := o.live(ctx)
	if err != nil || live.Len() != int(*o.deployment.Spec.Replicas) {
		return // some are being replaced, or the suite ends
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.process == nil || o.pods.HasAny(live.UnsortedList()...) {
		return
	}
	known := o.pods.Len() > 0
	o.pods = live
	if !known {
		return
	}
	o.replace(ctx)
	if o.whenRolled != nil {
		o.whenRolled(ctx)
	}
}

// live returns the operator's pods that are not ending.
func (o *operator) live(ctx context.Context) (sets.Set[types.UID], error) {
	list := &corev1.PodList{}
	if err := admin.List(ctx, list, client.InNamespace(o.deployment.Namespace), client.MatchingLabels(o.deployment.Spec.Selector.MatchLabels)); err != nil {
		return nil, err
	}
	out := sets.New[types.UID]()
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out.Insert(list.Items[i].UID)
		}
	}
	return out, nil
}

// onRoll has a function called whenever a new process follows, until the spec ends.
func (o *operator) onRoll(do func(context.Context)) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.whenRolled = do
	DeferCleanup(func() {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.whenRolled = nil
	})
}
