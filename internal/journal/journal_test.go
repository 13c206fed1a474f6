package journal_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"gdr-features/internal/journal"
)

func changes(n int, name string) (all []journal.Change) {
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for i := range n {
		all = append(all, journal.Change{Time: start.Add(time.Duration(i) * time.Minute), Name: name, Old: "false", New: "true"})
	}
	return all
}

// What is encoded is decoded, but for what is too much, of which the newest stay.
func TestEncode(t *testing.T) {
	for _, tt := range []struct {
		name string
		all  []journal.Change
		want int // how many stay
	}{
		{"none", nil, 0},
		{"one", changes(1, "gdr.degraded"), 1},
		{"as many as are kept", changes(20, "gdr.degraded"), 20},
		{"one more", changes(21, "gdr.degraded"), 20},
		{"long ones", changes(20, strings.Repeat("x", 500)), 7},
		{"one that is too long", changes(1, strings.Repeat("x", 5000)), 0},
	} {
		text := journal.Encode(tt.all)
		if len(text) > journal.MostBytes {
			t.Errorf("%s: %d bytes", tt.name, len(text))
		}
		got, err := journal.Decode(text)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if want := tt.all[len(tt.all)-tt.want:]; len(got) != tt.want || tt.want > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d changes, want the last %d", tt.name, len(got), tt.want)
		}
	}
}

// Decode takes any value: an object can be edited by hand.
func TestDecodeRefuses(t *testing.T) {
	for _, value := range []string{"{", `{"time":1}`, `[{"time":"yesterday"}]`, "[" + strings.Repeat(" ", 4096) + "]"} {
		if got, err := journal.Decode(value); err == nil || got != nil {
			t.Errorf("%.20q: %v, %v; want an error", value, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(journal.Encode(changes(3, "gdr.rate")))
	f.Fuzz(func(t *testing.T, value string) {
		got, err := journal.Decode(value)
		if err == nil && len(got) > journal.Most {
			t.Errorf("%d changes", len(got))
		}
	})
}
