//go:build unix

package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one running program. It is known by its number and its start time together, so that a number the system has
// given to somebody else in the meantime is never signalled.
type process struct {
	name    string
	number  int
	started string
	logFile string
	// exited is closed when a process this program started has been waited for; nil for one that was found again.
	exited chan struct{}
}

// launcher starts processes from one operating-system thread that lives as long as the launcher. On Linux the kernel ends a
// child when the thread that started it ends, so a thread of Go's pool, which may go at any time, would not do.
type launcher struct {
	requests chan func()
	done     chan struct{}
	// detached processes outlive the one that started them.
	detached bool
}

func newLauncher(detached bool) *launcher {
	l := &launcher{requests: make(chan func()), done: make(chan struct{}), detached: detached}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			select {
			case request := <-l.requests:
				request()
			case <-l.done:
				return
			}
		}
	}()
	return l
}

// close ends the thread, and with it what is still running of an attached launcher.
func (l *launcher) close() { close(l.done) }

// start runs a program with its output in folder/logs/name.log and notes its number in folder/run/name.
func (l *launcher) start(folder, name, path string, arguments []string) (*process, error) {
	logFile := filepath.Join(folder, "logs", name+".log")
	output, err := os.OpenFile(logFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", name, err)
	}
	defer output.Close()
	command := exec.Command(path, arguments...)
	command.Stdout, command.Stderr = output, output
	command.Dir = folder
	command.Env = environment()
	command.SysProcAttr = processAttributes(l.detached)
	started := make(chan error, 1)
	l.requests <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	child := &process{name: name, number: command.Process.Pid, logFile: logFile, exited: make(chan struct{})}
	go func() {
		_ = command.Wait() // The way it ended is in its log.
		close(child.exited)
	}()
	if child.started, err = startTime(child.number); err != nil {
		return child, child.failure(fmt.Errorf("ended at once: %w", err))
	}
	return child, child.remember(folder)
}

// environment is that of this process without proxies: everything talks to 127.0.0.1.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasSuffix(strings.ToLower(name), "_proxy") && name != "KUBECONFIG" {
			kept = append(kept, variable)
		}
	}
	return kept
}

func (p *process) remember(folder string) error {
	content := fmt.Sprintf("%d\n%s\n", p.number, p.started)
	if err := os.WriteFile(filepath.Join(folder, "run", p.name), []byte(content), 0o600); err != nil {
		return fmt.Errorf("note the process number of %s: %w", p.name, err)
	}
	return nil
}

// recall finds a process noted by an earlier start, or nil if it no longer runs.
func recall(folder, name string) (*process, error) {
	content, err := os.ReadFile(filepath.Join(folder, "run", name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the process number of %s: %w", name, err)
	}
	number, started, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	found := &process{name: name, started: started, logFile: filepath.Join(folder, "logs", name+".log")}
	if found.number, err = strconv.Atoi(number); err != nil {
		return nil, fmt.Errorf("read the process number of %s: %w", name, err)
	}
	if !found.running() {
		return nil, nil
	}
	return found, nil
}

// running is true for a child of this process until it has been waited for, so that nothing is left in the process table.
func (p *process) running() bool {
	if p.exited != nil {
		select {
		case <-p.exited:
			return false
		default:
			return true
		}
	}
	started, err := startTime(p.number)
	return err == nil && started == p.started
}

// stop kills the process and returns when it is gone. Nothing is asked to end gracefully: the cluster's state is thrown
// away, and the graceful way of kube-apiserver takes seconds.
func (p *process) stop() error {
	deadline := time.Now().Add(10 * time.Second)
	for p.running() {
		if err := syscall.Kill(p.number, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end %s (process %d): %w", p.name, p.number, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s (process %d) did not end", p.name, p.number)
		}
		p.waitBriefly()
	}
	return nil
}

func (p *process) waitBriefly() {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
}

// failure adds the end of the program's log to what went wrong.
func (p *process) failure(err error) error {
	return fmt.Errorf("%s: %w; the end of %s:\n%s", p.name, err, p.logFile, p.logTail())
}

// logTail reads a bounded piece of the end of the log.
func (p *process) logTail() string {
	const limit = 16 << 10
	file, err := os.Open(p.logFile)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		if _, err := file.Seek(-limit, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return err.Error()
	}
	return lastLines(content, 15)
}

// signal sends a signal to the process if it still runs.
func (p *process) signal(what syscall.Signal) error {
	if !p.running() {
		return fmt.Errorf("%s does not run", p.name)
	}
	if err := syscall.Kill(p.number, what); err != nil {
		return fmt.Errorf("signal %s (process %d): %w", p.name, p.number, err)
	}
	return nil
}

// freeze stops the process and returns when it does not run any more. A stop signal takes its time on a busy machine.
func (p *process) freeze() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for !stopped(p.number) {
		if time.Now().After(deadline) || !p.running() {
			return fmt.Errorf("%s (process %d) did not stop", p.name, p.number)
		}
		p.waitBriefly()
	}
	return nil
}
