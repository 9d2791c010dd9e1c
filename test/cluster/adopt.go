//go:build unix

package cluster

import (
	"fmt"
	"os"
	"slices"
)

// Adopt makes a process that the caller started in this cluster's company part of it: Stop ends it before all others, also
// after Open. Its output is expected in LogFile(name). The name must not be that of a program of the cluster.
func (c *Cluster) Adopt(name string, number int) error {
	started, err := startTime(number)
	if err != nil {
		return fmt.Errorf("adopt %s (process %d): %w", name, number, err)
	}
	adopted := &process{name: name, number: number, started: started, logFile: c.LogFile(name)}
	c.processes = append(c.processes, adopted)
	return adopted.remember(c.dir)
}

// LogFile is where the output of a program of the cluster is.
func (c *Cluster) LogFile(name string) string { return c.path("logs", name+".log") }

// adoptedNames lists the processes noted in a state folder that are no programs of the cluster itself.
func adoptedNames(dir string) []string {
	entries, err := os.ReadDir((&Cluster{dir: dir}).path("run"))
	if err != nil {
		return nil // no cluster was ever started there
	}
	var names []string
	for _, entry := range entries {
		if !slices.Contains(startOrder(), entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}
