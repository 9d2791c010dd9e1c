package signal

import "strings"

// isFilter says whether a query is, at its top level, a comparison without `bool`: it then yields the series for which the
// comparison holds, and nothing when it holds for none. It looks at the text alone, and says no where it is not sure.
func isFilter(query string) bool {
	rest := unwrap(outline(query))
	for _, word := range strings.FieldsFunc(rest, isNoLetter) {
		switch strings.ToLower(word) {
		case "or", "and", "unless":
			return false
		}
	}
	for _, sign := range []string{"==", "!=", ">=", "<=", ">", "<"} {
		_, after, found := strings.Cut(rest, sign)
		if found {
			word := strings.TrimSpace(strings.TrimLeft(after, "="))
			return !strings.HasPrefix(strings.ToLower(word), "bool")
		}
	}
	return false
}

func isNoLetter(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != ':' && (r < '0' || r > '9')
}

// outline is the query without comments, texts, label matchers and ranges.
func outline(query string) string {
	var out strings.Builder
	depth := 0
	for i := 0; i < len(query); i++ {
		switch c := query[i]; c {
		case '"', '\'', '`':
			i = endOfText(query, i)
		case '#':
			i = endOfLine(query, i)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				out.WriteByte(c)
			}
		}
	}
	return out.String()
}

func endOfText(query string, start int) int {
	quote := query[start]
	for i := start + 1; i < len(query); i++ {
		if query[i] == '\\' && quote != '`' {
			i++
		} else if query[i] == quote {
			return i
		}
	}
	return len(query)
}

func endOfLine(query string, start int) int {
	if length := strings.IndexByte(query[start:], '\n'); length >= 0 {
		return start + length
	}
	return len(query)
}

// unwrap is the text without what stands in parentheses, after those around all of it are taken off.
func unwrap(text string) string {
	text = strings.TrimSpace(text)
	for strings.HasPrefix(text, "(") && closing(text) == len(text)-1 {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	var out strings.Builder
	depth := 0
	for _, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// closing is where the parenthesis that text begins with is closed, -1 if it is not.
func closing(text string) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}
