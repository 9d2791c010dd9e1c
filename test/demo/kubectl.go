package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

func (s *stage) run(ctx context.Context, arguments ...string) (string, error) {
	given := append([]string{"--kubeconfig=" + s.cluster.KubeconfigFile(), "--namespace=" + namespace}, arguments...)
	answer, err := exec.CommandContext(ctx, s.kubectl, given...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(arguments, " "), err, answer)
	}
	return string(answer), nil
}

// show prints what kubectl answers.
func (s *stage) show(ctx context.Context, arguments ...string) error {
	answer, err := s.run(ctx, arguments...)
	if err == nil {
		s.out.terminal("kubectl "+strings.Join(arguments, " "), answer)
	}
	return err
}

// describe prints of an AITask what a person on call looks at: the decision and the events.
func (s *stage) describe(ctx context.Context, name string) error {
	answer, err := s.run(ctx, "describe", "at", name)
	if err != nil {
		return err
	}
	s.out.terminal("kubectl describe at "+name, block(answer, "  Decision:", "  ")+block(answer, "Events:", ""))
	return nil
}

// block cuts from a description what stands, further indented, below a heading.
func block(answer, heading, indentation string) string {
	out := "..." + "\n"
	inside := false
	for line := range strings.Lines(answer) {
		text := strings.TrimRight(line, "\n")
		if inside && !strings.HasPrefix(text, indentation+" ") {
			break
		}
		inside = inside || strings.HasPrefix(text, heading)
		if inside {
			out += line
		}
	}
	return out
}
