package v1

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Every element of every list in status takes this way whenever a task is read.
func BenchmarkElementOfAList(b *testing.B) {
	for name, text := range map[string]string{
		"known": `{"type":"Breached","status":"True","observedGeneration":3,"lastTransitionTime":"2026-01-01T03:03:10Z",` +
			`"reason":"ThresholdReached","message":"UnavailableReplicas reached 1 and has held for 60s"}`,
		"unknown": `{"type":"Breached","status":"True","observedGeneration":3,"lastTransitionTime":"2026-01-01T03:03:10Z",` +
			`"reason":"ThresholdReached","message":"UnavailableReplicas reached 1 and has held for 60s","severity":"Low"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := utiljson.Unmarshal([]byte(text), &Condition{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
