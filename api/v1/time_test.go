package v1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimeDecodesWhateverTheAPIServerAdmits(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]time.Time{
		`"2026-01-01T12:00:00Z"`:           noon,
		`"2026-01-01T12:00:00.000Z"`:       noon,
		`"2026-01-01T13:30:00+01:30"`:      noon,
		`"2026-01-01T12:00:00.123456789Z"`: noon.Add(123 * time.Millisecond),
		`"2026-01-01t12:00:00z"`:           {},
		`"2026-01-01T23:59:60Z"`:           {},
		`"2026-02-30T12:00:00Z"`:           {},
		`"9999-12-31T23:59:59-00:01"`:      {},
		`"0001-01-01T00:00:00+00:01"`:      {},
		`"yesterday"`:                      {},
		`""`:                               {},
		`null`:                             {},
		`12`:                               {},
		`{"a": 1}`:                         {},
		`["2026-01-01T12:00:00Z"]`:         {},
	}
	for text, want := range tests {
		got := Time{noon.Add(time.Hour)} // what was there before does not stay
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if !got.Time.Equal(want) {
			t.Errorf("%s decoded as %s, want %s", text, got, want)
		}
	}
}

func TestOneUnreadableTimeDoesNotHideAList(t *testing.T) {
	const text = `{"items": [
		{"metadata": {"name": "bad"}, "status": {"lastExecutionTime": "2026-01-01t12:00:00z", "executions": ["never", null, "2026-01-01T12:00:00Z"],
			"incident": {"startTime": 7}}},
		{"metadata": {"name": "good"}}]}`
	var list AITaskList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	noon := NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	want := AITaskStatus{LastExecutionTime: &Time{}, Executions: []Time{{}, {}, noon}, Incident: &Incident{StartTime: &Time{}}}
	if difference := cmp.Diff(want, list.Items[0].Status); difference != "" || len(list.Items) != 2 {
		t.Errorf("%d items, status of the first (-want +got):\n%s", len(list.Items), difference)
	}
}

func TestTimeIsWrittenInUTCToTheMillisecond(t *testing.T) {
	east := time.FixedZone("east", 2*60*60)
	tests := map[string]Time{
		`"2026-01-01T12:00:00.000Z"`: NewTime(time.Date(2026, 1, 1, 14, 0, 0, 999999, east)),
		`"2026-01-01T12:00:00.123Z"`: {time.Date(2026, 1, 1, 14, 0, 0, 123999999, east)},
		`null`:                       {},
	}
	for want, given := range tests {
		got, err := json.Marshal(given)
		if err != nil || string(got) != want {
			t.Errorf("%s was written as %s (%v), want %s", given, got, err, want)
		}
	}
}

func TestTimeOr(t *testing.T) {
	noon, fallback := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		given *Time
		want  time.Time
	}{
		"known":     {TimePointer(noon), noon},
		"not known": {&Time{}, fallback},
		"absent":    {nil, fallback},
	}
	for name, test := range tests {
		if got := test.given.Or(fallback); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestTimeEqualIsTheSameInstant(t *testing.T) {
	noon := NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	if east := (Time{noon.In(time.FixedZone("east", 7200))}); !noon.Equal(east) {
		t.Errorf("%s and %s are not equal", noon, east)
	}
	if later := (Time{noon.Add(time.Millisecond)}); noon.Equal(later) {
		t.Errorf("%s and %s are equal", noon, later)
	}
}

func TestTimeIsCopied(t *testing.T) {
	if got := (*Time)(nil).DeepCopy(); got != nil {
		t.Errorf("the copy of nothing is %s", got)
	}
	given := TimePointer(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	copied := given.DeepCopy()
	var into Time
	given.DeepCopyInto(&into)
	if copied == given || !copied.Equal(*given) || !into.Equal(*given) {
		t.Errorf("copies %p %s and %s of %p %s", copied, copied, into, given, given)
	}
}

// FuzzTime: no JSON value fails to decode, and what was decoded is written and read back as the same.
func FuzzTime(f *testing.F) {
	for _, seed := range []string{`"2026-01-01T12:00:00Z"`, `"2026-01-01t12:00:00.1z"`, `null`, `"0001-01-01T00:00:00Z"`, `"0000-01-01T00:00:00+23:59"`,
		`"9999-12-31T23:59:59-23:59"`, `"0001-01-01T00:00:00.0005Z"`, `1e1.5`, `{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		var first, second Time
		if err := json.Unmarshal([]byte(text), &first); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%s was read as %s and cannot be written: %v", text, first, err)
		}
		if err := json.Unmarshal(written, &second); err != nil || !first.Equal(second) {
			t.Fatalf("%s was read as %s, written as %s and read back as %s (%v)", text, first, written, second, err)
		}
	})
}
