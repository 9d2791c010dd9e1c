//go:build unix

package cluster

import (
	"fmt"
	"syscall"
)

// Freeze makes a program of the cluster, such as "kube-apiserver", stop answering without closing its connections, as a
// machine that hangs would, until the returned function is called. Once Freeze has returned, nothing is answered any more.
// Stop works on a frozen cluster too.
func (c *Cluster) Freeze(program string) (thaw func() error, err error) {
	for _, running := range c.processes {
		if running.name == program {
			if err := running.freeze(); err != nil {
				return nil, err
			}
			return func() error { return running.signal(syscall.SIGCONT) }, nil
		}
	}
	return nil, fmt.Errorf("freeze %q: no such program runs in this cluster", program)
}
