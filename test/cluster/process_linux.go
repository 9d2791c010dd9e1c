package cluster

import (
	"errors"
	"fmt"
	"os"
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

// startTime is field 22 of /proc/N/stat: ticks between the start of the machine and the start of the process.
func startTime(number int) (string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", number))
	if err != nil {
		return "", errNoProcess
	}
	// The second field is the command in brackets and may hold anything; what follows the last bracket is regular.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	const stateField, startField = 0, 19
	if len(fields) <= startField || fields[stateField] == "Z" || fields[stateField] == "X" {
		return "", errNoProcess
	}
	return fields[startField], nil
}
