package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// screen prints what happens, in columns: who or which scene, when, what, details.
type screen struct {
	mutex sync.Mutex
	out   io.Writer
	label string
	// setOff says that what comes next is set off by an empty line.
	setOff bool
	took   []string
}

// line prints one fact. A label is printed when it changes.
func (s *screen) line(label string, at time.Time, what, format string, values ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	shown := label
	if label == s.label {
		shown = ""
	}
	s.label = label
	s.gap()
	fmt.Fprintf(s.out, "%-19s %s  %-12s %s\n", shown, at.UTC().Format("15:04:05.000"), what, fmt.Sprintf(format, values...))
}

// about prints a fact without a time.
func (s *screen) about(label, format string, values ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Fprintf(s.out, "%-19s %s\n", label, fmt.Sprintf(format, values...))
}

func (s *screen) say(format string, values ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Fprintf(s.out, "\n"+format+"\n", values...)
}

// terminal prints a command and what it answered, set off from the story.
func (s *screen) terminal(command, answer string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Fprintf(s.out, "\n    $ %s\n", command)
	for line := range strings.Lines(answer) {
		fmt.Fprintln(s.out, strings.TrimRight("    "+line, " \n"))
	}
	s.setOff = true
}

// gap prints the empty line that is due. The caller holds the mutex.
func (s *screen) gap() {
	if s.setOff {
		fmt.Fprintln(s.out)
	}
	s.setOff = false
}

// reacted notes how long an action took, and returns it for people.
func (s *screen) reacted(took time.Duration) string {
	text := fmt.Sprintf("%d ms", took.Milliseconds())
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.took = append(s.took, text)
	return text
}

func (s *screen) reactions() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return strings.Join(s.took, ", ")
}

// progress shows the lines that the cluster prints about itself.
type progress struct {
	screen *screen
	label  string
}

// Write expects whole lines.
func (p progress) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		p.screen.about(p.label, "%s", strings.TrimSpace(line))
	}
	return len(text), nil
}
