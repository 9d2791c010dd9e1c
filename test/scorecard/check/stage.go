package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// RunLabel is on everything that a check makes; its value differs from run to run.
	RunLabel = "scorecard.aiops.example.com/run"

	pollInterval   = 200 * time.Millisecond
	cleanUpTimeout = 20 * time.Second
)

// stage is one run of a check: what it made, and what it has to tell. Names end in the run's ID, so that runs never meet.
type stage struct {
	Environment

	id       string
	operator *appsv1.Deployment
	made     []client.Object
	log      *journal
}

func newStage(environment Environment) *stage {
	if environment.Clock == nil {
		environment.Clock = clock.RealClock{}
	}
	return &stage{Environment: environment, id: rand.String(5), log: &journal{}}
}

// named makes a name of the run's own.
func (s *stage) named(name string) string { return name + "-" + s.id }

func (s *stage) logf(format string, args ...any) {
	s.log.add(s.Clock.Now(), fmt.Sprintf(format, args...))
}

// create makes an object in the stage's namespace, and remembers to remove it.
func (s *stage) create(ctx context.Context, object client.Object) error {
	object.SetNamespace(s.Namespace)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[RunLabel] = s.id
	object.SetLabels(labels)
	if s.Owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*s.Owner})
	}
	if err := s.Client.Create(ctx, object, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	s.made = append(s.made, object)
	return nil
}

// cleanUp removes what was made, even after the check's time has run out, and returns when it is gone. What workloads own is left to
// the garbage collector.
func (s *stage) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	var problems []error
	for _, object := range s.made {
		err := s.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			problems = append(problems, fmt.Errorf("clean up %T %s: %w", object, object.GetName(), err))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	for _, object := range s.made {
		if err := s.untilGone(ctx, object); err != nil {
			problems = append(problems, fmt.Errorf("clean up: %w", err))
		}
	}
	return errors.Join(problems...)
}

func (s *stage) untilGone(ctx context.Context, object client.Object) error {
	return s.until(ctx, fmt.Sprintf("the end of %T %s", object, object.GetName()), func(ctx context.Context) (string, error) {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return fmt.Sprintf("it is still there, with the finalizers %q", object.GetFinalizers()), err
	})
}

// until looks again and again until nothing is missing any more. What is missing is the error when the time is over.
func (s *stage) until(ctx context.Context, what string, look func(context.Context) (missing string, err error)) error {
	missing := "there was no time left to look"
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		now, err := look(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
			return false, decisive(err)
		}
		if err == nil {
			missing, last = now, nil
		}
		return err == nil && now == "", nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil:
		return fmt.Errorf("wait for %s: %w", what, last)
	}
	why := "not in time"
	if errors.Is(ctx.Err(), context.Canceled) {
		why = "interrupted"
	}
	return fmt.Errorf("wait for %s: %s: %s", what, why, missing)
}

// decisive errors do not pass by themselves.
func decisive(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return err
	}
	return nil
}

// holds fails as soon as look finds something wrong within the time.
func (s *stage) holds(ctx context.Context, span time.Duration, what string, look func(context.Context) (wrong string, err error)) error {
	limited, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var found error
	_ = wait.PollUntilContextCancel(limited, pollInterval, true, func(context.Context) (bool, error) { // ends with its time or with found
		wrong, err := look(ctx)
		if err != nil {
			found = fmt.Errorf("%s: %w", what, err)
		} else if wrong != "" {
			found = fmt.Errorf("%s: %s", what, wrong)
		}
		return found != nil, nil
	})
	return found
}

// journal is what a check did, line by line.
type journal struct {
	mutex sync.Mutex
	lines []string
}

func (j *journal) add(at time.Time, line string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = append(j.lines, at.UTC().Format("15:04:05.000 ")+line)
}

func (j *journal) String() string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return strings.Join(j.lines, "\n")
}
