package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc/N/stat on every Linux that Go runs on.
const ticksPerSecond = 100

// memory returns a line of /proc/N/status, such as VmRSS or VmHWM, in KiB.
func memory(number int, line string) (float64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", number))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", number, err)
	}
	for text := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(text, line+":"); found {
			return strconv.ParseFloat(strings.Fields(value)[0], 64)
		}
	}
	return 0, fmt.Errorf("read the memory of process %d: there is no %s", number, line)
}

// processorTime is how long the process has computed so far.
func processorTime(number int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", number))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", number, err)
	}
	// The second field is the command in brackets and may hold anything; what follows the last bracket is regular.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	const userField, systemField = 11, 12
	total := 0
	for _, field := range []int{userField, systemField} {
		ticks, err := strconv.Atoi(fields[field])
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", number, err)
		}
		total += ticks
	}
	return time.Duration(total) * time.Second / ticksPerSecond, nil
}
