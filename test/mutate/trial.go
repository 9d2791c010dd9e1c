package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// trial runs the package's tests against mutants.
type trial struct {
	// temporary holds the mutated files, absolute is the package's folder.
	temporary string
	absolute  string
	number    atomic.Int64
}

// newTrial makes sure that the tests pass as they are: else every mutant would look noticed.
func newTrial(ctx context.Context, folder string) (*trial, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", folder, err)
	}
	temporary, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for mutants: %w", err)
	}
	out := &trial{temporary: temporary, absolute: absolute}
	passed, text, err := out.test(ctx, filepath.Join(temporary, "none.json"), map[string]string{})
	if err == nil && !passed {
		err = fmt.Errorf("the tests fail without any mutant:\n%s", text)
	}
	if err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

func (t *trial) close() {
	_ = os.RemoveAll(t.temporary) // a temporary folder that stays is no reason to fail
}

// try says whether the tests notice the mutant.
func (t *trial) try(ctx context.Context, mutant mutant) (outcome, error) {
	if _, listed := equivalents()[mutant.key()]; listed {
		return equivalent, nil
	}
	name := filepath.Join(t.temporary, strconv.FormatInt(t.number.Add(1), 10))
	if err := os.WriteFile(name+".go", mutant.apply(), 0o600); err != nil {
		return "", fmt.Errorf("write a mutant: %w", err)
	}
	passed, text, err := t.test(ctx, name+".json", map[string]string{filepath.Join(t.absolute, mutant.file): name + ".go"})
	switch {
	case err != nil:
		return "", err
	case passed:
		return survived, nil
	case bytes.Contains(text, []byte("[build failed]")):
		return "", fmt.Errorf("%s: %s does not build:\n%s", mutant.place(), mutant, text)
	}
	return killed, nil
}

// test runs the unit tests over an overlay, without what only looks for the unknown. Nobody waits longer than patience.
func (t *trial) test(ctx context.Context, overlay string, replace map[string]string) (passed bool, text []byte, err error) {
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return false, nil, fmt.Errorf("encode the overlay: %w", err)
	}
	if err := os.WriteFile(overlay, content, 0o600); err != nil {
		return false, nil, fmt.Errorf("write the overlay: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(bounded, "go", "test", "-overlay="+overlay, "-short", "-count=1", "-failfast", "-vet=off", "-ldflags=-s -w",
		"-run=^Test", "-timeout="+(patience*3/4).String(), ".")
	command.Dir = t.absolute
	text, err = command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, text, nil
	case ctx.Err() != nil:
		return false, nil, ctx.Err()
	case errors.As(err, &exit):
		return false, text, nil
	}
	return false, nil, fmt.Errorf("run go test: %w", err)
}
