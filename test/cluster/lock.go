//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile takes an exclusive lock that the kernel gives back when the process ends, however it ends. It calls waiting once
// if somebody else holds the lock.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock %s: %w", path, err)
	}
	said := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !said {
			waiting()
			said = true
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("wait for the lock %s: %w", path, err)
		}
	}
}

// pause waits for a duration or until the context ends.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
