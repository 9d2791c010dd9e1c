package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// crashAt is what goes wrong in one run of an incident.
type crashAt struct {
	number int
	what   string
	fate   fate
}

// String names the variant.
func (c crashAt) String() string {
	return fmt.Sprintf("write %d (%s) %s", c.number, c.what, c.fate)
}

// crashes are all that can go wrong with these writes, one at a time.
func crashes(writes []string) []crashAt {
	var out []crashAt
	for i, what := range writes {
		for _, fate := range []fate{diesAfter, diesBefore, unanswered} {
			out = append(out, crashAt{number: i + 1, what: what, fate: fate})
		}
	}
	return out
}

var _ = DescribeTable("A process that dies or goes deaf at any of its writes leaves exactly one action",
	func(ctx context.Context, action aiopsv1.ActionType) {
		mark := auditMark()
		writes := faultFree(ctx, action)
		GinkgoWriter.Printf("%s: %d writes of an incident without faults: %s\n", action, len(writes), strings.Join(writes, ", "))
		AddReportEntry(fmt.Sprintf("%s: %d writes", action, len(writes)), strings.Join(writes, ", "))

		var mutex sync.Mutex
		var namespaces []string
		inParallel(crashes(writes), func(t *try, crash crashAt) {
			in := prepare(ctx, t, action)
			mutex.Lock()
			namespaces = append(namespaces, in.namespace)
			mutex.Unlock()
			first := t.start(in.namespace)
			in.settle()
			first.wire.arm(crash.number, crash.fate)
			in.begin()
			t.Eventually(func() bool { in.play(); return first.wire.hasMet() }).Should(BeTrue(), "the write never came")
			if crash.fate != unanswered {
				first.crash()
				t.start(in.namespace)
			}
			in.ended()
			in.sawOneAction()
		})
		sawOneActionEach(actionsSince(mark), action, namespaces)
	},
	Entry(nil, aiopsv1.ActionRestart),
	Entry(nil, aiopsv1.ActionScale),
	Entry(nil, aiopsv1.ActionRollback),
	Entry(nil, aiopsv1.ActionEvict),
	Entry(nil, aiopsv1.ActionNotify),
)

// faultFree returns the writes of an incident in which nothing fails.
func faultFree(ctx context.Context, action aiopsv1.ActionType) (writes []string) {
	GinkgoHelper()
	inParallel([]crashAt{{fate: passes}}, func(t *try, _ crashAt) {
		in := prepare(ctx, t, action)
		process := t.start(in.namespace)
		in.settle()
		process.wire.arm(0, passes)
		in.begin()
		in.ended()
		in.sawOneAction()
		writes = process.wire.counted()
	})
	return writes
}

// sawOneActionEach asks the audit log the same that each workload was asked.
func sawOneActionEach(seen actions, action aiopsv1.ActionType, namespaces []string) {
	GinkgoHelper()
	patches, evictions := 1, 0
	switch action {
	case aiopsv1.ActionEvict:
		evictions = 1
	case aiopsv1.ActionNotify:
		patches = 0
	}
	for _, namespace := range namespaces {
		Expect(seen.patches[namespace]).To(Equal(patches), "granted patches of the workload in %s", namespace)
		Expect(seen.evictions[namespace]).To(Equal(evictions), "granted evictions in %s", namespace)
	}
}
