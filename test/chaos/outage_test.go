package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// outage is a time in which events of some resources do not arrive.
type outage struct {
	when      moment
	resources []string
	relist    bool
	action    aiopsv1.ActionType
}

// String names the variant.
func (o outage) String() string {
	return fmt.Sprintf("%s: no events of %s, %s, relist after it: %t", o.action, strings.Join(o.resources, ", "), o.when, o.relist)
}

func outages() []outage {
	var out []outage
	actions := []aiopsv1.ActionType{aiopsv1.ActionRestart, aiopsv1.ActionScale, aiopsv1.ActionRollback, aiopsv1.ActionEvict}
	for _, when := range moments() {
		for i, resources := range [][]string{
			{"aitasks"}, {"deployments"}, {"pods"}, {"aitasks", "deployments", "pods", "replicasets"},
		} {
			for j, relist := range []bool{false, true} {
				out = append(out, outage{when: when, resources: resources, relist: relist, action: actions[(i+2*j)%len(actions)]})
			}
		}
	}
	return out
}

var _ = Describe("A process whose watches hang", func() {
	It("does exactly one action, and ends the incident once they go on", func(ctx context.Context) {
		mark := auditMark()
		incidents := inParallel(outages(), func(t *try, variant outage) *incident {
			in := prepare(ctx, t, variant.action, variant.when.lasts)
			process := t.start(in.namespace)
			in.settle()
			var end func(relist bool)
			in.at(variant.when, process, func() { end = process.wire.silenced(variant.resources...) })
			over := time.After(faultTime)
			t.Eventually(func() bool { in.play(); return isOver(over) }).Should(BeTrue())
			end(variant.relist)
			in.ended()
			in.sawOneAction()
			return in
		})
		sawOneActionEach(mark, incidents)
	})
})
