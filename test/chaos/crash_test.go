package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// crashAt is what goes wrong in one run of an incident.
type crashAt struct {
	number int
	fate   fate
	// certain says that every run of the incident has that many writes.
	certain bool
}

// String names the variant.
func (c crashAt) String() string {
	return fmt.Sprintf("write %d %s", c.number, c.fate)
}

// crashes are all that can go wrong with these writes, one at a time. How many status writes follow the one that records what the
// action came to, depends on what the operator sees in one pass: one more than these is tried, and the last ones need not come.
func crashes(writes []string) []crashAt {
	record := 2
	for i, what := range writes {
		if what != statusPatch {
			record = i + 2
		}
	}
	var out []crashAt
	for number := 1; number <= len(writes)+1; number++ {
		for _, fate := range []fate{diesAfter, diesBefore, unanswered} {
			out = append(out, crashAt{number: number, fate: fate, certain: number <= record})
		}
	}
	return out
}

const statusPatch = "patch aitasks/status"

var _ = DescribeTable("A process that dies or goes deaf at any of its writes leaves exactly one action",
	func(ctx context.Context, action aiopsv1.ActionType) {
		mark := auditMark()
		writes := faultFree(ctx, action)
		var met atomic.Int32
		incidents := inParallel(crashes(writes), func(t *try, crash crashAt) *incident {
			in := prepare(ctx, t, action)
			first := t.start(in.namespace)
			in.settle()
			first.wire.arm(crash.number, crash.fate)
			in.begin()
			t.Eventually(func() bool {
				in.play()
				return first.wire.hasMet() || !crash.certain && in.summary() == in.end()
			}).Should(BeTrue(), "the write never came")
			if first.wire.hasMet() {
				met.Add(1)
			}
			if crash.fate != unanswered {
				first.crash()
				t.start(in.namespace)
			}
			in.ended()
			in.sawOneAction()
			return in
		})
		sawOneActionEach(mark, incidents)
		AddReportEntry(fmt.Sprintf("%s: %d writes without faults; %d faults met in %d incidents", action, len(writes), met.Load(), len(incidents)), strings.Join(writes, ", "))
	},
	Entry(nil, aiopsv1.ActionRestart),
	Entry(nil, aiopsv1.ActionScale),
	Entry(nil, aiopsv1.ActionRollback),
	Entry(nil, aiopsv1.ActionEvict),
	Entry(nil, aiopsv1.ActionNotify),
)

func everyAction() []aiopsv1.ActionType {
	return []aiopsv1.ActionType{aiopsv1.ActionRestart, aiopsv1.ActionScale, aiopsv1.ActionRollback, aiopsv1.ActionEvict, aiopsv1.ActionNotify}
}

// faultFree returns the writes of an incident in which nothing fails.
func faultFree(ctx context.Context, action aiopsv1.ActionType) (writes []string) {
	GinkgoHelper()
	inParallel([]aiopsv1.ActionType{action}, func(t *try, action aiopsv1.ActionType) *incident {
		in := prepare(ctx, t, action)
		process := t.start(in.namespace)
		in.settle()
		process.wire.arm(0, passes)
		in.begin()
		in.ended()
		in.sawOneAction()
		writes = process.wire.counted()
		return in
	})
	return writes
}

var _ = Describe("An operator that crashes in a loop", func() {
	// A notification is not recorded anywhere but by the operator's next write: a life that ends between the two sends it again.
	perLife := map[aiopsv1.ActionType]int{aiopsv1.ActionNotify: 2}

	It("brings each incident to its end with exactly one action, one write in each life", func(ctx context.Context) {
		mark := auditMark()
		incidents := inParallel(everyAction(), func(t *try, action aiopsv1.ActionType) *incident {
			in := prepare(ctx, t, action)
			process := t.start(in.namespace)
			in.settle()
			process.wire.arm(max(1, perLife[action]), diesAfter)
			in.begin()
			lives := 1
			t.Eventually(func() string {
				in.play()
				if process.wire.hasMet() {
					process.crash()
					process = t.start(in.namespace)
					process.wire.arm(max(1, perLife[action]), diesAfter)
					lives++
				}
				return in.summary()
			}).Should(Equal(in.end()))
			in.sawOneAction()
			t.Expect(lives).To(BeNumerically(">", 2), "lives of the operator")
			return in
		})
		sawOneActionEach(mark, incidents)
	})
})
