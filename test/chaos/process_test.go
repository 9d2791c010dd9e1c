package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/operator"
	"github.com/example/aiops-operator/test/harness"
)

// process is one operator process, from its start with an empty memory to its end.
type process struct {
	wire     *wire
	operator *harness.Operator
	log      *processLog
	ended    sync.Once
}

// start starts an operator that sees one namespace, and returns when its caches are filled.
func start(g Gomega, namespace string, changes ...func(*operator.Options)) *process {
	p := &process{wire: newWire(namespace), log: &processLog{}}
	options := harness.OptionsFor(rest.CopyConfig(rights))
	options.Config.Wrap(p.wire.wrap)
	options.Receivers = []action.Receiver{post.receiver(p.wire)}
	options.Logger = funcr.New(p.log.add, funcr.Options{Verbosity: 1, LogTimestamp: true, TimestampFormat: "15:04:05.000"})
	for _, change := range changes {
		change(&options)
	}
	var err error
	p.operator, err = harness.Start(context.Background(), options)
	g.Expect(err).NotTo(HaveOccurred())
	return p
}

// crash ends the process without a last word: nothing that it still does gets out.
func (p *process) crash() {
	p.wire.kill()
	p.ended.Do(func() { _ = p.operator.Stop() }) // whatever it ends with is not heard
}

// stop ends the process in order.
func (p *process) stop(g Gomega) {
	p.ended.Do(func() { g.Expect(p.operator.Stop()).To(Succeed()) })
}

// processLog keeps the latest lines of a process.
type processLog struct {
	mutex sync.Mutex
	lines []string
}

const keptLines = 60

func (l *processLog) add(prefix, arguments string) {
	if strings.Contains(arguments, `"msg"="Starting `) {
		return // as every process does
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("    %s %s", prefix, arguments))
	l.lines = l.lines[max(0, len(l.lines)-keptLines):]
}

// String returns the latest lines.
func (l *processLog) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Join(l.lines, "\n")
}
