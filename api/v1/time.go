package v1

import (
	"encoding/json"
	"time"
)

// Time is an instant as status holds it: RFC 3339, UTC, milliseconds.
//
// It is a type of its own because a value that the API server admits and Go cannot decode would break the LIST of the whole
// kind for every client of this package (the schema format date-time, for one, admits a lower-case "t", which
// metav1.Time refuses). A text that is no instant decodes as the zero Time, which every reader treats as "not known".
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
type Time instant

// instant is what a Time is made of. It has a name of its own because operator-sdk looks up the types of fields by name alone:
// a struct Time with time.Time in it would hold itself, without end.
type instant struct {
	time.Time
}

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// NewTime returns t as status holds it, cut to the millisecond.
func NewTime(t time.Time) Time {
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// TimePointer returns a pointer to NewTime(t), for optional fields.
func TimePointer(t time.Time) *Time {
	out := NewTime(t)
	return &out
}

// Or returns the instant, or fallback where it is absent or not known.
func (t *Time) Or(fallback time.Time) time.Time {
	if t == nil || t.IsZero() {
		return fallback
	}
	return t.Time
}

// Equal says whether both are the same instant.
func (t Time) Equal(other Time) bool {
	return t.Time.Equal(other.Time)
}

// DeepCopyInto copies t into out.
func (t *Time) DeepCopyInto(out *Time) {
	*out = *t
}

// DeepCopy returns a copy of t.
func (t *Time) DeepCopy() *Time {
	if t == nil {
		return nil
	}
	out := *t
	return &out
}

// MarshalJSON writes the instant, or null for the zero Time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(timeLayout))
}

// UnmarshalJSON reads an instant. It never fails: what is no instant becomes the zero Time.
func (t *Time) UnmarshalJSON(data []byte) error {
	*t = Time{}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return nil //nolint:nilerr // one unreadable field must not hide every AITask from its reader
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if year := parsed.UTC().Year(); err == nil && year >= 1 && year <= 9999 { // beyond, RFC 3339 cannot write it back
		*t = NewTime(parsed)
	}
	return nil
}
