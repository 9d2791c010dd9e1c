package runbook

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// cut shortens text to at most limit bytes without breaking a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len("...")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

func count(number int, one, many string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, many)
}

func upperFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// clock writes an instant the way messages show it. Messages name instants, never what is left until then: a text that changes
// by itself would be written for ever.
func clock(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

func span(d time.Duration) string {
	return fmt.Sprintf("%ds", int64(d/time.Second))
}
