//go:build unix && !linux

package cluster

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes puts a child into a process group of its own. Only Linux can tie its life to this process; elsewhere
// a killed test leaves its cluster running until the command "cluster down --dir" ends it.
func processAttributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

var errNoProcess = errors.New("no such process")

func startTime(number int) (string, error) {
	printed, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(number)).Output()
	started := strings.TrimSpace(string(printed))
	if err != nil || started == "" {
		return "", errNoProcess
	}
	return started, nil
}

// stopped says that a process does not run.
func stopped(number int) bool {
	printed, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(number)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(printed)), "T")
}
