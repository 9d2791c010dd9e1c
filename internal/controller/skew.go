package controller

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// ClockSkew is how far the API server's clock is ahead of this machine's, as its latest answer said. Safe for concurrent use.
type ClockSkew struct {
	clock clock.PassiveClock
	skew  atomic.Int64
}

// NewClockSkew returns a skew of zero until an answer was seen.
func NewClockSkew(passive clock.PassiveClock) *ClockSkew {
	return &ClockSkew{clock: passive}
}

// Get returns the latest skew. The Date header has whole seconds, so it is off by up to one.
func (s *ClockSkew) Get() time.Duration {
	return time.Duration(s.skew.Load())
}

// Wrap returns a transport that reads the Date header of every answer.
func (s *ClockSkew) Wrap(next http.RoundTripper) http.RoundTripper {
	return skewTransport{next: next, skew: s}
}

type skewTransport struct {
	next http.RoundTripper
	skew *ClockSkew
}

// RoundTrip passes the request on.
func (t skewTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, parseErr := http.ParseTime(response.Header.Get("Date")); parseErr == nil {
		t.skew.skew.Store(int64(date.Sub(t.skew.clock.Now())))
	}
	return response, nil
}
