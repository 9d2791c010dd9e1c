package chaos_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/aiops-operator/internal/operator"
)

// atOnce is how many variants run at the same time: each has an operator of its own.
const atOnce = 24

// try is one variant under way. Its assertions end it alone.
type try struct {
	Gomega
	name      string
	processes []*process
	failure   string
}

func newTry(name string) *try {
	t := &try{name: name}
	t.Gomega = NewGomega(t.fail)
	return t
}

// start starts an operator process for the variant; it ends with it.
func (t *try) start(namespace string, changes ...func(*operator.Options)) *process {
	started := start(t, namespace, changes...)
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

func (t *try) cleanUp() {
	for _, started := range t.processes {
		started.crash()
	}
}

// inParallel tries every variant, some at the same time, and fails with all that failed. It returns what the variants returned.
func inParallel[V any, R any](variants []V, check func(t *try, variant V) R) []R {
	GinkgoHelper()
	tries, results := make([]*try, len(variants)), make([]R, len(variants))
	slots := make(chan struct{}, atOnce)
	var done sync.WaitGroup
	for i, variant := range variants {
		tries[i] = newTry(fmt.Sprint(variant))
		done.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			defer tries[i].cleanUp()
			results[i] = check(tries[i], variant)
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
	return results
}

// alone tries one thing.
func alone(name string, check func(t *try)) {
	GinkgoHelper()
	inParallel([]string{name}, func(t *try, _ string) struct{} {
		check(t)
		return struct{}{}
	})
}
