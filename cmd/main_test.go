package main

import (
	"strings"
	"testing"
)

func TestMistypedFlagsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		given flags
		want  string
	}{
		"a word that is no flag":       {flags{unexpected: "concurrency=4", concurrency: 8}, `unexpected argument "concurrency=4": write every flag as --name=value`},
		"nobody to reconcile anything": {flags{}, "--concurrency is 0: write 1 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), test.given); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
