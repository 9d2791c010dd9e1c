package v1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// UnknownFields are the fields of a status list's element that this version does not know, as one JSON object; empty where there are
// none.
//
// Status is written as a merge patch, which leaves unknown fields of objects alone but replaces a list as a whole. So the elements of
// lists carry what they do not understand from reading to writing: an operator that was taken back to an older version
// loses nothing of what the newer one wrote.
type UnknownFields string

// The names of the fields of each element. A type does not change while the program runs, and elements are read by the thousand.
//
//nolint:gochecknoglobals // functions without a state that anybody could change
var (
	conditionFields    = sync.OnceValue(fieldsOf[Condition])
	signalStatusFields = sync.OnceValue(fieldsOf[SignalStatus])
	historyEntryFields = sync.OnceValue(fieldsOf[HistoryEntry])
)

// fieldsOf returns the names that the fields of a struct of plain fields have in JSON.
func fieldsOf[T any]() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// readKnown decodes data into known, a struct of plain fields with these names, and returns the fields that it does not have.
func readKnown(data []byte, known any, names []string) (UnknownFields, error) {
	if err := utiljson.Unmarshal(data, known); err != nil {
		return "", err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", err
	}
	for _, name := range names {
		delete(fields, name)
	}
	if len(fields) == 0 {
		return "", nil
	}
	unknown, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("keep unknown fields: %w", err)
	}
	return UnknownFields(unknown), nil
}

// write encodes known, a struct of plain fields, together with the fields that it does not have.
func (u UnknownFields) write(known any) ([]byte, error) {
	data, err := json.Marshal(known)
	switch {
	case err != nil || u == "":
		return data, err
	case string(data) == "{}":
		return []byte(u), nil
	}
	return append(append(data[:len(data)-1], ','), u[1:]...), nil
}

// UnmarshalJSON reads a condition and keeps the fields that this version does not know.
func (c *Condition) UnmarshalJSON(data []byte) (err error) {
	type plain Condition
	c.Unknown, err = readKnown(data, (*plain)(c), conditionFields())
	return err
}

// MarshalJSON writes the condition with the fields that this version does not know.
func (c Condition) MarshalJSON() ([]byte, error) {
	type plain Condition
	return c.Unknown.write(plain(c))
}

// UnmarshalJSON reads a verdict and keeps the fields that this version does not know.
func (s *SignalStatus) UnmarshalJSON(data []byte) (err error) {
	type plain SignalStatus
	s.Unknown, err = readKnown(data, (*plain)(s), signalStatusFields())
	return err
}

// MarshalJSON writes the verdict with the fields that this version does not know.
func (s SignalStatus) MarshalJSON() ([]byte, error) {
	type plain SignalStatus
	return s.Unknown.write(plain(s))
}

// UnmarshalJSON reads a finished order and keeps the fields that this version does not know.
func (h *HistoryEntry) UnmarshalJSON(data []byte) (err error) {
	type plain HistoryEntry
	h.Unknown, err = readKnown(data, (*plain)(h), historyEntryFields())
	return err
}

// MarshalJSON writes the finished order with the fields that this version does not know.
func (h HistoryEntry) MarshalJSON() ([]byte, error) {
	type plain HistoryEntry
	return h.Unknown.write(plain(h))
}
