package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// processAttributes puts a child into a process group of its own, so that Ctrl-C in the terminal reaches only the program
// that knows how to stop it, and ties its life to this process unless it is to be left running.
func processAttributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// errNoProcess says that a process has ended, even if its parent has not yet taken notice.
var errNoProcess = errors.New("no such process")

// Fields of /proc/N/stat after the command; startField counts ticks between the start of the machine and that of the process.
const stateField, startField = 0, 19

// startTime tells a process from a later one with the same number.
func startTime(number int) (string, error) {
	fields := statOf(fmt.Sprintf("/proc/%d/stat", number))
	if len(fields) <= startField || fields[stateField] == "Z" || fields[stateField] == "X" {
		return "", errNoProcess
	}
	return fields[startField], nil
}

// stopped says that no thread of a process runs. A stop signal reaches one thread, which stops the others once it is its turn to run: on a
// busy machine the program answers for a while yet.
func stopped(number int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", number))
	return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, func(thread string) bool {
		fields := statOf(thread)
		return len(fields) > 0 && fields[stateField] != "T"
	})
}

// statOf reads a stat file of /proc, or nothing of a process that is gone. The second field is the command in brackets and may hold
// anything; what follows the last bracket is regular.
func statOf(path string) []string {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
}
