package config

import (
	"context"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// watchInterval is how often the file is looked at. The kubelet brings a changed ConfigMap into the pod within about a minute.
const watchInterval = 10 * time.Second

// Watch notices that the file says something else than what the process was started with. Nobody needs to restart the operator
// then, which some installers would undo.
type Watch struct {
	// Path is the file's.
	Path string
	// Running is what the process was started with.
	Running Config
	// Changed is called once, when the file says something else that is without mistakes: the process is to end, and to be started
	// anew.
	Changed func()
	Clock   clock.WithTicker
	Logger  logr.Logger

	told string // the mistake that was logged last
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
			if w.changed() {
				w.Logger.Info("Read another configuration; ended to be started with it", "file", w.Path)
				w.Changed()
				return nil
			}
		}
	}
}

func (w *Watch) changed() bool {
	now, _, err := Load(w.Path)
	if err == nil {
		w.told = ""
		return !reflect.DeepEqual(now, w.Running)
	}
	if err.Error() != w.told {
		w.told = err.Error()
		w.Logger.Error(err, "Kept the configuration that was read before", "file", w.Path)
	}
	return false
}

// NeedLeaderElection says that every replica looks for itself.
func (*Watch) NeedLeaderElection() bool { return false }
