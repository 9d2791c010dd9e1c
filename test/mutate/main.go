// Command mutate asks whether the tests of internal/runbook notice when deciding goes wrong. It flips one comparison or boolean
// operator at a time, through an overlay, so that the tree stays as it is, and runs the package's tests against it: they must fail.
// A mutant that they do not notice is either a missing test or makes no difference; the latter are listed with their
// reason. Usage, from the repository's root:
//
//	go run ./test/mutate [-run <regular expression of file:line>]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"time"
)

const (
	// folder is the package that is mutated.
	folder = "internal/runbook"
	// parallel is how many mutants are tried at a time: each is a compiler, a linker and a test.
	parallel = 2
	// patience is how long one mutant is tried. One that makes the tests hang is noticed.
	patience = 60 * time.Second
)

// files are those of the package that decide.
func files() []string {
	return []string{"judge.go", "next.go", "step.go", "refuse.go", "repair.go", "results.go", "verify.go", "machine.go", "gate.go", "outcome.go"}
}

func main() {
	only := flag.String("run", "", "try only mutants whose file:line matches this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *only); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("read -run: %w", err)
	}
	mutants, err := mutantsOf(folder, files())
	if err != nil {
		return err
	}
	if err := checkEquivalents(mutants); err != nil {
		return err
	}
	trial, err := newTrial(ctx, folder)
	if err != nil {
		return err
	}
	defer trial.close()
	return report(out, tryAll(ctx, trial, mutants, wanted))
}

// result is what became of one mutant.
type result struct {
	mutant  mutant
	outcome outcome
	err     error
}

type outcome string

const (
	killed     outcome = "killed"
	survived   outcome = "SURVIVED"
	equivalent outcome = "equivalent"
)

// tryAll tries every mutant that is wanted and sends what became of it.
func tryAll(ctx context.Context, trial *trial, mutants []mutant, wanted *regexp.Regexp) <-chan result {
	queue, results := make(chan mutant), make(chan result)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for mutant := range queue {
				outcome, err := trial.try(ctx, mutant)
				results <- result{mutant, outcome, err}
			}
		})
	}
	go func() {
		for _, mutant := range mutants {
			if wanted.MatchString(mutant.place()) {
				queue <- mutant
			}
		}
		close(queue)
		workers.Wait()
		close(results)
	}()
	return results
}

// report prints every result and returns an error unless each mutant was killed or makes no difference.
func report(out io.Writer, results <-chan result) error {
	counts := map[outcome]int{}
	var failed error
	for result := range results {
		if result.err != nil {
			failed = result.err
			continue
		}
		counts[result.outcome]++
		fmt.Fprintf(out, "%-10s %s: %s\n", result.outcome, result.mutant.place(), result.mutant)
	}
	fmt.Fprintf(out, "%d mutants: %d killed, %d make no difference, %d survived\n",
		counts[killed]+counts[equivalent]+counts[survived], counts[killed], counts[equivalent], counts[survived])
	switch {
	case failed != nil:
		return failed
	case counts[survived] > 0:
		return fmt.Errorf("%d mutants survived: write a test that fails with each, or list it with the reason why it makes no difference", counts[survived])
	}
	return nil
}
