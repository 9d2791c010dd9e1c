package chaos_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// atOnce is how many variants run at the same time: each has an operator of its own.
const atOnce = 16

// try is one variant under way. Its assertions end it alone.
type try struct {
	Gomega
	name      string
	processes []*process
	failure   string
}

// start starts an operator process for the variant; it ends with it.
func (t *try) start(namespace string) *process {
	started := start(t, namespace)
	t.processes = append(t.processes, started)
	return started
}

// fail ends the variant's goroutine.
func (t *try) fail(message string, _ ...int) {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", t.name, message)
	for i, started := range t.processes {
		fmt.Fprintf(&text, "  process %d did %s, and said\n%s\n", i+1, started.wire.counted(), started.log)
	}
	t.failure = text.String()
	runtime.Goexit()
}

// inParallel tries every variant, some at the same time, and fails with all that failed.
func inParallel[V fmt.Stringer](variants []V, check func(t *try, variant V)) {
	GinkgoHelper()
	tries := make([]*try, len(variants))
	slots := make(chan struct{}, atOnce)
	var done sync.WaitGroup
	for i, variant := range variants {
		current := &try{name: variant.String()}
		current.Gomega = NewGomega(current.fail)
		tries[i] = current
		done.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			defer func() {
				for _, started := range current.processes {
					started.crash()
				}
			}()
			check(current, variant)
		})
	}
	done.Wait()
	var failures []string
	for _, finished := range tries {
		if finished.failure != "" {
			failures = append(failures, finished.failure)
		}
	}
	if len(failures) > 0 {
		Fail(fmt.Sprintf("%d of %d variants failed:\n%s", len(failures), len(variants), strings.Join(failures, "\n")))
	}
}
