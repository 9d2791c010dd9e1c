// Package schema holds the AITask that the API server serves against the one that this operator was built with. Where the served
// CustomResourceDefinition is older, the API server drops fields of each write without a word, the recorded order's among
// them, and an action that is not recorded could be done twice. What the fields mean does not belong here.
package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// waitInterval is how often a process that waits looks. The document that it reads is about 110 KB.
	waitInterval = time.Second
	// settleTime is how long what is found may come from a moment ago: OpenAPI documents follow a definition that was just applied by a
	// second or two, and installers start the operator right after.
	settleTime = 5 * time.Second
	// tellInterval is how often the log says what is waited for.
	tellInterval = time.Minute
	// runInterval is how often a process that runs looks.
	runInterval = 10 * time.Second
	// lookTimeout bounds one look.
	lookTimeout = 5 * time.Second

	// namedFields is how many missing fields are named.
	namedFields = 5
)

// OutdatedError says that the served CustomResourceDefinition is older than the operator.
type OutdatedError struct {
	// Missing are the fields that the API server drops, such as "status.order.id". Never empty.
	Missing []string
	// Version is the operator's.
	Version string
}

// Error names the first fields, and says what to do.
func (e *OutdatedError) Error() string {
	named := strings.Join(e.Missing[:min(namedFields, len(e.Missing))], ", ")
	if more := len(e.Missing) - namedFields; more > 0 {
		named = fmt.Sprintf("%s and %d more", named, more)
	}
	return fmt.Sprintf("the CustomResourceDefinition aitasks.%s is older than the operator, and the API server drops what it does not know: %s; "+
		"apply that of version %s, config/crd/bases/%[1]s_aitasks.yaml, with kubectl apply --server-side -f, or upgrade it as it was installed",
		aiopsv1.GroupName, named, e.Version)
}

// Check compares the two.
type Check struct {
	// OpenAPI is the API server's. Every account may read it.
	OpenAPI openapi.ClientWithContext
	Clock   clock.Clock
	Logger  logr.Logger
	// Version is the operator's, for the message.
	Version string

	// complete names, by its hash, the document that was found to have every field.
	complete string
	waitsFor atomic.Pointer[OutdatedError]
}

// WaitsFor returns what Wait is waiting for, nil for nothing. Safe for concurrent use.
func (c *Check) WaitsFor() error {
	if outdated := c.waitsFor.Load(); outdated != nil {
		return outdated
	}
	return nil
}

// Wait returns once the API server stores every field, or ctx ends. Where it does not say what it stores, which is no reason to leave
// every workload alone, Wait returns after a few seconds. Once it has said that fields are missing, only its own word ends the wait.
func (c *Check) Wait(ctx context.Context) {
	settled := c.Clock.Now().Add(settleTime)
	tell := settled
	for ctx.Err() == nil {
		err := c.look(ctx)
		if outdated, isOutdated := errors.AsType[*OutdatedError](err); isOutdated || err == nil {
			c.waitsFor.Store(outdated)
		}
		now, waitsFor := c.Clock.Now(), c.WaitsFor()
		switch {
		case err == nil:
			return
		case waitsFor == nil && !now.Before(settled):
			c.Logger.Info("Started without knowing whether the CustomResourceDefinition has every field", "reason", err.Error())
			return
		case waitsFor != nil && !now.Before(tell):
			c.Logger.Error(waitsFor, "Looked after no AITask: waited for the CustomResourceDefinition")
			tell = now.Add(tellInterval)
		}
		select {
		case <-ctx.Done():
		case <-c.Clock.After(waitInterval):
		}
	}
}

// Start looks until ctx ends, and fails when an older definition has been applied: the process that is started in place of this one
// waits. It looks twice, since one of several API servers may be a few seconds behind the others.
func (c *Check) Start(ctx context.Context) error {
	suspected := false
	for {
		interval := runInterval
		err := c.look(ctx)
		_, isOutdated := errors.AsType[*OutdatedError](err)
		switch {
		case isOutdated && suspected:
			return err
		case isOutdated:
			interval = settleTime
		case err != nil:
			c.Logger.V(1).Info("Could not look at the CustomResourceDefinition", "reason", err.Error())
		}
		suspected = isOutdated
		select {
		case <-ctx.Done():
			return nil
		case <-c.Clock.After(interval):
		}
	}
}

// NeedLeaderElection says that every replica looks for itself: one that is to take over must not be the one that drops fields.
func (*Check) NeedLeaderElection() bool { return false }

// look compares, if the document is another one than that which was complete. What is missing is read anew each time: index and document
// may come from two API servers, of which one is behind. Any error but an OutdatedError means that it is not known.
func (c *Check) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	index, err := c.OpenAPI.PathsWithContext(ctx)
	if err != nil {
		return fmt.Errorf("read the index of OpenAPI documents: %w", err)
	}
	path := "apis/" + aiopsv1.GroupVersion().String()
	document, found := index[path]
	if !found {
		return fmt.Errorf("find the OpenAPI document %s: it is not there", path)
	}
	if document.ServerRelativeURL() == c.complete {
		return nil
	}
	content, err := document.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return fmt.Errorf("read the OpenAPI document %s: %w", path, err)
	}
	missing, err := missingFields(content)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &OutdatedError{Missing: missing, Version: c.Version}
	}
	c.complete = document.ServerRelativeURL()
	return nil
}
