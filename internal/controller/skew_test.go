package controller

import (
	"errors"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

type answer struct {
	date string
	err  error
}

// RoundTrip answers with the date.
func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{Header: http.Header{"Date": {a.date}}, Body: http.NoBody}, nil
}

func TestClockSkewFollowsTheLatestReadableAnswer(t *testing.T) {
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	skew := NewClockSkew(clocktesting.NewFakePassiveClock(now))
	steps := []struct {
		name   string
		answer answer
		want   time.Duration
	}{
		{"ahead", answer{date: now.Add(45 * time.Second).Format(http.TimeFormat)}, 45 * time.Second},
		{"no answer", answer{err: errors.New("connection refused")}, 45 * time.Second},
		{"no date", answer{date: ""}, 45 * time.Second},
		{"together again", answer{date: now.Format(http.TimeFormat)}, 0},
		{"behind", answer{date: now.Add(-time.Hour).Format(http.TimeFormat)}, -time.Hour},
	}
	for _, step := range steps {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := skew.Wrap(step.answer).RoundTrip(request)
		if !errors.Is(err, step.answer.err) {
			t.Errorf("%s: error = %v, want it passed on: %v", step.name, err, step.answer.err)
		}
		if response != nil {
			_ = response.Body.Close()
		}
		if got := skew.Get(); got != step.want {
			t.Errorf("%s: skew = %s, want %s", step.name, got, step.want)
		}
	}
}
