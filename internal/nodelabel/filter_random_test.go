package nodelabel_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/source/family"
	"gdr-features/test/testsize"
)

// pick returns one of several.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// random makes a possible reading: without GPU, with nothing readable, or with some
// facts unknown. A reason comes with readiness.
func random(r *rand.Rand, at time.Time) nodelabel.Reading {
	now := nodelabel.Reading{Labels: label.Set{}, Unknown: label.Names{}, At: at}
	switch r.IntN(12) {
	case 0:
		return now
	case 1:
		now.Unknown = nodelabel.All(family.Known())
		return now
	}
	put := func(name, value string) {
		switch value {
		case "unknown":
			now.Unknown[name] = true
		case "":
		default:
			now.Labels[name] = value
		}
	}
	put(label.Capable, "true")
	put(label.GPUs, pick(r, "8", "8", "8", "7"))
	put(label.Level, pick(r, "PIX", "PIX", "PIX", "PHB", "unknown"))
	put(label.Peermem, pick(r, "true", "false", "unknown"))
	put(label.IOMMU, pick(r, "off", "translated", "unknown", ""))
	ready := pick(r, "true", "true", "false", "unknown")
	put(label.Ready, ready)
	switch ready {
	case "false":
		put(label.Reason, pick(r, "NoNIC", "NoRDMADevice"))
	case "unknown":
		now.Labels[label.Reason] = "Unreadable"
		now.Unknown[label.Reason] = true
	}
	return now
}

// history is what was read and published so far.
type history struct {
	settle    time.Duration
	readings  []nodelabel.Reading
	published []label.Set // before each reading, and after the last
}

// lately returns the readings that a label has to have settled in: the last one,
// and those before it up to the settle time.
func (h *history) lately() []nodelabel.Reading {
	last := len(h.readings) - 1
	first := last
	for first > 0 && h.readings[last].At.Sub(h.readings[first-1].At) < h.settle {
		first--
	}
	return h.readings[first:]
}

// TestRandom checks what the package promises on random readings.
func TestRandom(t *testing.T) {
	for seed := range testsize.Inputs(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := &history{settle: pick(r, 0, time.Second, 10*time.Second), published: []label.Set{{}}}
		k := nodelabel.NewFilter(h.settle, nil)
		at := time.Unix(1e9, 0)
		for range 40 {
			at = at.Add(pick(r, recheck, recheck, 3*time.Second, time.Minute))
			reading := random(r, at)
			if len(h.readings) > 0 && r.IntN(2) == 0 {
				reading = h.readings[len(h.readings)-1] // things last
				reading.At = at
			}
			h.readings = append(h.readings, reading)
			got, again, ok := k.Next(reading)
			if !ok {
				if len(h.published[len(h.published)-1]) > 0 {
					t.Fatalf("seed %d: has published, and now has nothing to say", seed)
				}
				got = label.Set{}
			}
			h.published = append(h.published, got)
			h.checkHardware(t)
			h.checkState(t, ok)
			h.checkReason(t)
			h.checkRest(t, again)
			if t.Failed() {
				t.Fatalf("seed %d, reading %d: %v, unknown %v; published %v, before %v", seed, len(h.readings),
					reading.Labels, reading.Unknown, got, h.published[len(h.published)-2])
			}
		}
		last := h.readings[len(h.readings)-1]
		last.Unknown = label.Names{}
		var got label.Set
		for range 3 {
			last.At = last.At.Add(h.settle)
			got, _, _ = k.Next(last)
		}
		if diff := cmp.Diff(last.Labels, got); diff != "" && last.Labels[label.Reason] != "Unreadable" {
			t.Fatalf("seed %d: not what is read when nothing moves any more (-want +got):\n%s", seed, diff)
		}
	}
}

// ends returns what was published before the last reading and after it, and the
// reading.
func (h *history) ends() (before, after label.Set, now nodelabel.Reading) {
	n := len(h.published)
	return h.published[n-2], h.published[n-1], h.readings[n-2]
}

// checkHardware: hardware labels change only to what two readings in a row agree on,
// as far as it is known.
func (h *history) checkHardware(t *testing.T) {
	t.Helper()
	before, after, now := h.ends()
	changed := false
	for name := range nodelabel.All(family.Known()) {
		changed = changed || nodelabel.Hardware(name) && before[name] != after[name]
	}
	if !changed {
		return
	}
	if len(h.readings) < 2 {
		t.Error("hardware published after one reading")
		return
	}
	for _, r := range []nodelabel.Reading{now, h.readings[len(h.readings)-2]} {
		for name := range nodelabel.All(family.Known()) {
			if !nodelabel.Hardware(name) {
				continue
			}
			want := r.Labels[name]
			if r.Unknown[name] {
				want = before[name]
			}
			if after[name] != want {
				t.Errorf("%s was never confirmed", name)
			}
		}
	}
}

// checkState: a state label becomes true at once, changes to anything else only
// after it has settled, and never to unknown.
func (h *history) checkState(t *testing.T, ok bool) {
	t.Helper()
	before, after, now := h.ends()
	for name := range nodelabel.All(family.Known()) {
		if nodelabel.Hardware(name) || name == label.Reason {
			continue
		}
		value, is := now.Labels[name]
		was, had := before[name]
		switch {
		case !ok:
		case now.Unknown[name] && after[name] != was:
			t.Errorf("%s: unknown, and changed", name)
		case now.Unknown[name]:
		case value == "true" && after[name] != "true":
			t.Errorf("%s: not true at once", name)
		case !had && is && after[name] != value:
			t.Errorf("%s: new, and not published", name)
		case after[name] != was && after[name] != value:
			t.Errorf("%s: neither as before nor as read", name)
		case had && after[name] != was && value != "true":
			for _, r := range h.lately() {
				if !r.Unknown[name] && r.Labels[name] == was {
					t.Errorf("%s: changed though it has not settled", name)
				}
			}
		}
	}
}

// checkReason: there is a reason if and only if readiness is not true.
func (h *history) checkReason(t *testing.T) {
	t.Helper()
	_, after, _ := h.ends()
	reason, ok := after[label.Reason]
	switch after[label.Ready] {
	case "true":
		if ok {
			t.Error("ready, for a reason")
		}
	case "false":
		if !ok || reason == "Unreadable" {
			t.Errorf("not ready, reason %q", reason)
		}
	default:
		if ok && reason != "Unreadable" {
			t.Errorf("not known to be ready, reason %q", reason)
		}
	}
}

// checkRest: a filter that asks for no further reading has published everything that
// was read.
func (h *history) checkRest(t *testing.T, again time.Duration) {
	t.Helper()
	before, after, now := h.ends()
	if again != 0 {
		return
	}
	for name := range nodelabel.All(family.Known()) {
		want, known := now.Labels[name], !now.Unknown[name]
		if known && name != label.Reason && after[name] != want {
			t.Errorf("%s: no hurry, though it is %q and to be %q", name, after[name], want)
		}
	}
	if now.Unknown[label.Ready] && before[label.Reason] != "" && after[label.Reason] != before[label.Reason] {
		t.Error("the reason changed without anything known")
	}
}
