// Package check holds the custom scorecard tests: what they promise about an installed operator, and how they look. They know
// the cluster through an [Environment] alone, so that the same functions run in a scorecard pod and under `go test`.
//
// What belongs here: one file per check, and what several of them share. What does not: command lines and printing, which are
// the program's, and setting a cluster or an operator up, which is the user's or the suite's.
package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Check is one custom scorecard test.
type Check struct {
	// Name is what the scorecard's configuration calls it by.
	Name string
	// Timeout is how long it may take, without cleaning up (at most 20 seconds).
	Timeout time.Duration

	run func(context.Context, *stage) error
}

// All lists the checks.
func All() []Check {
	return []Check{
		{Name: "samples-healthy", Timeout: 2 * time.Minute, run: samplesHealthy},
		{Name: "short-form-acts", Timeout: 3 * time.Minute, run: shortFormActs},
		{Name: "rights-sufficient-and-minimal", Timeout: time.Minute, run: rightsSufficientAndMinimal},
		{Name: "uninstall-leaves-nothing", Timeout: 2 * time.Minute, run: uninstallLeavesNothing},
		{Name: "upgrade-keeps-pods", Timeout: 2 * time.Minute, run: upgradeKeepsPods},
	}
}

// Run makes what the check needs, judges, removes what it made, and says what came of it. The state is "error" where the check
// could not judge, because the operator is not there or a right is missing; the message says what to do.
func (c Check) Run(ctx context.Context, environment Environment) v1alpha3.TestStatus {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	s := newStage(environment)
	err := s.findOperator(ctx)
	if err == nil {
		s.logf("Found the operator: Deployment %s/%s", s.operator.Namespace, s.operator.Name)
		err = c.run(ctx, s)
	}
	return report(c.Name, s, errors.Join(explain(err, environment), s.cleanUp(ctx)))
}

// Unjudged is the status of a test that did not begin, such as one of an unknown name.
func Unjudged(name string, reason error) v1alpha3.TestStatus {
	return report(name, newStage(Environment{}), unmet("%w", reason))
}

func report(name string, s *stage, err error) v1alpha3.TestStatus {
	result := v1alpha3.TestResult{Name: name, State: v1alpha3.PassState, CreationTimestamp: metav1.NewTime(s.Clock.Now())}
	if err != nil {
		result.State, result.Errors = v1alpha3.FailState, messages(err)
	}
	if errors.As(err, new(*unmetError)) {
		result.State = v1alpha3.ErrorState
	}
	result.Log = s.log.String()
	return v1alpha3.TestStatus{Results: []v1alpha3.TestResult{result}}
}

// messages takes joined errors apart again: each is a finding of its own. Only the outermost error is looked at: what is wrapped further
// inside belongs to one finding.
func messages(err error) []string {
	joined, several := err.(interface{ Unwrap() []error })
	if !several {
		return []string{err.Error()}
	}
	var out []string
	for _, one := range joined.Unwrap() {
		out = append(out, messages(one)...)
	}
	return out
}

// unmetError is why a check could not judge, with what to do about it.
type unmetError struct {
	err error
}

func (e *unmetError) Error() string { return e.err.Error() }
func (e *unmetError) Unwrap() error { return e.err }

func unmet(format string, args ...any) error {
	return &unmetError{fmt.Errorf(format, args...)}
}
