package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range the system hands out for outgoing connections, so that a connection opened between
// choosing a port and listening on it does not take it away.
const (
	firstPort = 20000
	lastPort  = 32000
)

// errPortTaken says that another process was faster; the start is tried again with other ports.
var errPortTaken = errors.New("a chosen port was taken by another process")

// FreeAddress returns an address of this machine that nobody listens on at the moment, for a server of a test.
func FreeAddress() (string, error) {
	ports, err := freePorts(1)
	if err != nil {
		return "", err
	}
	return address(ports[0]), nil
}

// freePorts chooses ports nobody listens on at the moment.
func freePorts(count int) ([]int, error) {
	chosen := map[int]bool{}
	var ports []int
	for attempt := 0; attempt < 1000 && len(ports) < count; attempt++ {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if chosen[port] || !isFree(port) {
			continue
		}
		chosen[port] = true
		ports = append(ports, port)
	}
	if len(ports) < count {
		return nil, fmt.Errorf("find %d free ports between %d and %d", count, firstPort, lastPort)
	}
	return ports, nil
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// address is a port on the loopback address.
func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
