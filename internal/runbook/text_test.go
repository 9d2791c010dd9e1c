package runbook

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutBoundsWhatJSONWrites(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"short":            {"short", "short"},
		"exactly":          {strings.Repeat("a", 20), strings.Repeat("a", 20)},
		"one too long":     {strings.Repeat("a", 21), strings.Repeat("a", 17) + "..."},
		"two-byte letters": {strings.Repeat("é", 11), strings.Repeat("é", 8) + "..."},
		"escaped":          {strings.Repeat("<", 4), "<<..."},
		"escaped, fits":    {strings.Repeat(">", 3), ">>>"},
		"quoted":           {strings.Repeat(`"`, 11), strings.Repeat(`"`, 8) + "..."},
		"quoted, fits":     {strings.Repeat("\n", 10), strings.Repeat("\n", 10)},
		"not text":         {strings.Repeat("\xff", 4), "\xff\xff..."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := cut(test.text, 20); got != test.want {
				t.Errorf("cut = %q, want %q", got, test.want)
			}
		})
	}
}

func TestEncodedSizeIsWhatJSONTakes(t *testing.T) {
	for character := range rune(0x3000) {
		if character == utf8.RuneError {
			continue
		}
		encoded, err := json.Marshal(string(character))
		if err != nil {
			t.Fatal(err)
		}
		if got, least := encodedSize(character), len(encoded)-len(`""`); got < least {
			t.Errorf("encodedSize(%U) = %d, JSON takes %d", character, got, least)
		}
	}
	for character, want := range map[rune]int{'a': 1, 'é': 2, '€': 3, '😀': 4, '\\': 2, '\t': 2, '\r': 2, ' ': 1, '&': 6, '\u2028': 6, '\u2029': 6} {
		if got := encodedSize(character); got != want {
			t.Errorf("encodedSize(%q) = %d, want %d", character, got, want)
		}
	}
}

func TestUpperFirstKeepsCharactersWhole(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "A", "rolled back": "Rolled back", "écrit": "Écrit", "3 pods": "3 pods"} {
		if got := upperFirst(text); got != want {
			t.Errorf("upperFirst(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestCountAgreesInNumber(t *testing.T) {
	for number, want := range map[int]string{0: "0 passes", 1: "1 pass", 2: "2 passes"} {
		if got := count(number, "pass", "passes"); got != want {
			t.Errorf("count(%d) = %q, want %q", number, got, want)
		}
	}
}

func TestDigestOfWhatCannotBeEncodedIsEmpty(t *testing.T) {
	if got := digest(math.NaN()); got != "" {
		t.Errorf("digest = %q, want none", got)
	}
	if one, other := digest("a", "b"), digest("ab"); one == other || len(one) != 16 {
		t.Errorf("digests %q and %q, want two of 16 characters", one, other)
	}
}
