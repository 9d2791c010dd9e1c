package runbook

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// cut shortens text to at most limit bytes as JSON writes it, without breaking a character. Status is stored as JSON, where some
// characters take six bytes, so its size is bounded whatever the text is.
func cut(text string, limit int) string {
	length, end := 0, 0
	for at, character := range text {
		if length <= limit-len("...") {
			end = at
		}
		if length += encodedSize(character); length > limit {
			return text[:end] + "..."
		}
	}
	return text
}

// encodedSize is how many bytes JSON takes for a character, as the API server and its clients write it.
func encodedSize(character rune) int {
	switch {
	case character == '"', character == '\\', character == '\n', character == '\r', character == '\t':
		return len(`\n`)
	case character < ' ', character == '<', character == '>', character == '&', character == '\u2028', character == '\u2029', character == utf8.RuneError:
		return len(`\u0000`)
	}
	return utf8.RuneLen(character)
}

func count(number int, one, many string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, many)
}

func upperFirst(text string) string {
	_, size := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:size]) + text[size:]
}

// clock writes an instant the way messages show it. Messages name instants, never what is left until then: a text that changes
// by itself would be written for ever.
func clock(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

func span(d time.Duration) string {
	return fmt.Sprintf("%ds", int64(d/time.Second))
}
