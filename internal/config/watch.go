package config

import (
	"context"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// watchInterval is how often the file is looked at. The kubelet brings a changed ConfigMap into a pod within about a minute.
const watchInterval = 10 * time.Second

// leaderLooks is how often a leader must see the same change before it ends: a minute, in which a standby, which needs one look, has
// long been started anew and can take over.
const leaderLooks = 6

// Watch notices that the file says something else than what the process was started with. Nobody needs to restart the operator
// then, which some installers would undo.
type Watch struct {
	// Path is the file's.
	Path string
	// Running is what the process was started with.
	Running Config
	// Leads is closed when others stand by for this process. Nil: nobody does.
	Leads <-chan struct{}
	// End is called once, when the file says something else that is without mistakes: the process is to end, and to be started anew.
	End    func()
	Clock  clock.WithTicker
	Logger logr.Logger

	told string // the mistake that was logged last
	next Config // the change that was seen last
	seen int    // how many looks in a row have seen it
}

// Start looks at the file until it has changed or ctx ends. A file with mistakes changes nothing: they are logged, and the process
// goes on with what it has.
func (w *Watch) Start(ctx context.Context) error {
	ticker := w.Clock.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			if w.due() {
				w.Logger.Info("Read another configuration; ended to be started with it", "file", w.Path)
				w.End()
				return nil
			}
		}
	}
}

// due looks at the file and says whether the process is to end now.
func (w *Watch) due() bool {
	now, _, err := Load(w.Path)
	if err != nil {
		w.seen = 0
		if err.Error() != w.told {
			w.told = err.Error()
			w.Logger.Error(err, "Kept the configuration that was read before", "file", w.Path)
		}
		return false
	}
	w.told = ""
	if reflect.DeepEqual(now, w.Running) {
		w.seen = 0
		return false
	}
	if !reflect.DeepEqual(now, w.next) {
		w.next, w.seen = now, 0
	}
	w.seen++
	return w.seen >= w.looks()
}

func (w *Watch) looks() int {
	select {
	case <-w.Leads:
		return leaderLooks
	default: // a standby, or alone: a nil channel is never ready
		return 1
	}
}

// NeedLeaderElection says that every replica looks for itself.
func (*Watch) NeedLeaderElection() bool { return false }
