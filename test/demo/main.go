package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// longest ends a demo that hangs. Building what is missing is not counted.
const longest = 4 * time.Minute

// receive is the argument that makes this program the receiver of pages of a cluster that was left running.
const receive = "receive"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	var err error
	if len(os.Args) == 3 && os.Args[1] == receive {
		err = receiveInherited(ctx, os.Args[2])
	} else {
		err = show(ctx, os.Getenv("KEEP") == "1")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

// show sets the stage, plays the scenes and clears up.
func show(ctx context.Context, keep bool) error {
	out := &screen{out: os.Stdout}
	stage, err := setUp(ctx, out, keep)
	if err == nil {
		err = play(ctx, stage)
	}
	interrupted := ctx.Err() != nil
	switch {
	case interrupted:
		return errors.Join(errors.New("interrupted: everything that was started is ended"), stage.tearDown())
	case err != nil && stage.operator != nil:
		err = fmt.Errorf("%w\n\nThe operator's log ends with:\n%s", err, stage.operatorLog())
	}
	if keep && stage.cluster != nil {
		return errors.Join(err, stage.leave())
	}
	return errors.Join(err, stage.tearDown())
}

func play(ctx context.Context, stage *stage) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	tasks, err := watchTasks(ctx, stage.admin)
	if err != nil {
		return err
	}
	scenes := []struct {
		title string
		play  func(context.Context, *scene) error
	}{
		{"bad image", badImage},
		{"no cure", noCure},
		{"load", risingLoad},
	}
	for index, next := range scenes {
		title := fmt.Sprintf("scene %d  %s", index+1, next.title)
		if err := next.play(ctx, newScene(stage, tasks, title)); err != nil {
			return fmt.Errorf("%s: %w", title, err)
		}
	}
	if err := exhaustedOnce(ctx, stage); err != nil {
		return err
	}
	stage.out.say("%d scenes as expected. From a step being due to its action being applied: %s.", len(scenes), stage.out.reactions())
	return nil
}
