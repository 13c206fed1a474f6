package nodelabel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/source/family"
)

const (
	settle  = 10 * time.Second
	recheck = 500 * time.Millisecond
)

// words stand for labels in these tests.
var words = map[string]string{
	"capable": label.Capable, "level": label.Level, "gpus": label.GPUs,
	"ready": label.Ready, "reason": label.Reason, "peermem": label.Peermem, "dmabuf": label.DMABuf, "iommu": label.IOMMU, "degraded": label.Degraded,
}

// set reads labels, "ready=false reason=NoNIC".
func set(t *testing.T, text string) label.Set {
	t.Helper()
	s := label.Set{}
	for field := range strings.FieldsSeq(text) {
		word, value, ok := strings.Cut(field, "=")
		if !ok || words[word] == "" {
			t.Fatalf("no label: %q", field)
		}
		s[words[word]] = value
	}
	return s
}

// names reads names of labels; "all" names all.
func names(t *testing.T, text string) label.Names {
	t.Helper()
	if text == "all" {
		return nodelabel.All(family.Known())
	}
	n := label.Names{}
	for word := range strings.FieldsSeq(text) {
		if words[word] == "" {
			t.Fatalf("no label: %q", word)
		}
		n[words[word]] = true
	}
	return n
}

// nothing is expected before anything may be published.
const nothing = "nothing"

// step is a reading, so long after the first, and what is published then.
type step struct {
	at            time.Duration
	read, unknown string
	want          string
	hurry         bool // the next reading is due after the recheck delay
}

// no GPU here: no labels, and none unknown.
const gone = ""

// After a reboot a state label that this boot has not had is taken away at once, once it can be
// read. One that this boot has had settles as always, and hardware labels are read twice.
func TestRebooted(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"drivers not loaded yet", []step{
			{
				0, "capable=true level=PIX ready=false reason=GPUDriverNotLoaded peermem=false", "",
				"capable=true level=PIX ready=false reason=GPUDriverNotLoaded peermem=false", false,
			},
			{s, "capable=true level=PIX ready=true peermem=true", "", "capable=true level=PIX ready=true peermem=true", false},
			{2 * s, "capable=true level=PIX ready=false reason=NoActivePort peermem=true", "", "capable=true level=PIX ready=true peermem=true", true},
		}},
		{"first as before, then not", []step{
			{0, "capable=true level=PIX ready=true peermem=true", "", "capable=true level=PIX ready=true peermem=true", false},
			{s, "capable=true level=PIX ready=false reason=NoActivePort peermem=true", "", "capable=true level=PIX ready=true peermem=true", true},
		}},
		{"unknown at first", []step{
			{0, "capable=true level=PIX", "ready reason peermem", "capable=true level=PIX ready=true peermem=true", false},
			{s, "capable=true level=PIX ready=false reason=NoRDMADevice", "peermem", "capable=true level=PIX ready=false reason=NoRDMADevice peermem=true", false},
		}},
		{"other hardware", []step{
			{0, "capable=true level=SYS ready=true peermem=true", "", "capable=true level=PIX ready=true peermem=true", true},
			{s, "capable=true level=SYS ready=true peermem=true", "", "capable=true level=SYS ready=true peermem=true", false},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := nodelabel.NewFilter(settle, set(t, "capable=true level=PIX ready=true peermem=true"))
			f.Rebooted()
			for i, st := range test.steps {
				got, wait, ok := f.Next(nodelabel.Reading{Labels: set(t, st.read), Unknown: names(t, st.unknown), At: time.Unix(0, 0).Add(st.at)})
				if diff := cmp.Diff(set(t, st.want), got); diff != "" || !ok || (wait == recheck) != st.hurry {
					t.Errorf("step %d, wait %v (-want +got):\n%s", i, wait, diff)
				}
			}
		})
	}
}

func TestNext(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name   string
		settle time.Duration
		last   string // read back
		steps  []step
	}{
		{"first of all two equal readings", settle, "", []step{
			{0, "capable=true level=PIX ready=true", "", nothing, true},
			{s, "capable=true level=PIX ready=true", "", "capable=true level=PIX ready=true", false},
		}},
		{"the state need not be equal", settle, "", []step{
			{0, "capable=true ready=true", "", nothing, true},
			{s, "capable=true ready=false reason=NoRDMADevice", "", "capable=true ready=false reason=NoRDMADevice", false},
		}},
		{"unequal readings say nothing", settle, "", []step{
			{0, "capable=true level=PIX", "", nothing, true},
			{1 * s, "capable=true level=PHB", "", nothing, true},
			{2 * s, "capable=true level=PIX", "", nothing, true},
			{3 * s, "capable=true level=PIX", "", "capable=true level=PIX", false},
		}},
		{"a node without GPU has nothing to wait for", settle, "", []step{{0, gone, "", "", false}}},
		{"nothing readable at first", settle, "", []step{
			{0, "", "all", "", false},
			{1 * s, "capable=true ready=true", "", nothing, true},
			{2 * s, "capable=true ready=true", "", "capable=true ready=true", false},
		}},
		{"the hardware changes after two equal readings", settle, "capable=true level=PIX ready=true", []step{
			{0, "capable=true level=PHB ready=true", "", "capable=true level=PIX ready=true", true},
			{s, "capable=true level=PHB ready=true", "", "capable=true level=PHB ready=true", false},
		}},
		{"a single other reading changes nothing", settle, "capable=true gpus=8", []step{
			{0, "capable=true gpus=7", "", "capable=true gpus=8", true},
			{1 * s, "capable=true gpus=8", "", "capable=true gpus=8", false},
			{2 * s, "capable=true gpus=7", "", "capable=true gpus=8", true},
		}},
		{"flapping hardware does not hold the state up", settle, "gpus=8 ready=false reason=NoNIC", []step{
			{0, "gpus=1 ready=true", "", "gpus=8 ready=true", true},
			{1 * s, "gpus=2 ready=true", "", "gpus=8 ready=true", true},
			{2 * s, "gpus=1 ready=true", "", "gpus=8 ready=true", true},
			{3 * s, "gpus=2 ready=false reason=NoNIC", "", "gpus=8 ready=true", true},
			{12 * s, "gpus=1 ready=false reason=NoNIC", "", "gpus=8 ready=true", true},
			{13 * s, "gpus=2 ready=false reason=NoNIC", "", "gpus=8 ready=false reason=NoNIC", true},
		}},
		{"unknown hardware stays", settle, "capable=true level=PIX gpus=8", []step{
			{0, "capable=true gpus=8", "level", "capable=true level=PIX gpus=8", false},
			{s, "", "all", "capable=true level=PIX gpus=8", false},
		}},
		{"one more label of the hardware is a change", settle, "capable=true", []step{
			{0, "capable=true level=PIX", "", "capable=true", true},
			{s, "capable=true level=PIX", "", "capable=true level=PIX", false},
		}},
		{"readings with an unreadable one between do not confirm each other", settle, "gpus=8", []step{
			{0, "gpus=7", "", "gpus=8", true},
			{1 * s, "", "all", "gpus=8", false},
			{2 * s, "gpus=7", "", "gpus=8", true},
			{3 * s, "gpus=7", "", "gpus=7", false},
		}},
		{"a NIC that no table has appears", settle, "capable=false gpus=8 ready=false reason=NoNIC", []step{
			{0, "gpus=8 reason=NICNotJudged", "", "capable=false gpus=8 ready=false reason=NoNIC", true},
			{s, "gpus=8 reason=NICNotJudged", "", "gpus=8 ready=false reason=NoNIC", true},
			{settle, "gpus=8 reason=NICNotJudged", "", "gpus=8 reason=NICNotJudged", false},
		}},
		{"the driver of a NIC that no table has goes, also across a restart", settle, "gpus=8 reason=NICNotJudged", []step{
			{0, "capable=false gpus=8 ready=false reason=NoNIC", "", "gpus=8 reason=NICNotJudged", false},
			{settle, "capable=false gpus=8 ready=false reason=NoNIC", "", "gpus=8 reason=NICNotJudged", false},
			{2 * settle, "capable=false gpus=7 ready=false reason=NoNIC", "", "gpus=8 reason=NICNotJudged", true},
			{3 * settle, "capable=false gpus=7 ready=false reason=NoNIC", "", "gpus=7 reason=NICNotJudged", false},
		}},
		{"a NIC that is judged comes in its place", settle, "gpus=8 reason=NICNotJudged", []step{
			{0, "capable=true gpus=8 ready=true", "", "gpus=8 ready=true", true},
			{s, "capable=true gpus=8 ready=true", "", "capable=true gpus=8 ready=true", false},
		}},
		{"true at once", settle, "gpus=8 ready=false reason=NoActivePort peermem=false", []step{
			{0, "gpus=8 ready=true peermem=true", "", "gpus=8 ready=true peermem=true", false},
		}},
		{"false when it has settled", settle, "gpus=8 ready=true peermem=true", []step{
			{0, "gpus=8 ready=false reason=PeermemNotLoaded peermem=false", "", "gpus=8 ready=true peermem=true", true},
			{settle - 1, "gpus=8 ready=false reason=NoRDMADevice peermem=false", "", "gpus=8 ready=true peermem=true", true},
			{settle, "gpus=8 ready=false reason=NoRDMADevice peermem=false", "", "gpus=8 ready=false reason=NoRDMADevice peermem=false", false},
		}},
		{"a break begins anew", settle, "gpus=8 ready=true", []step{
			{0, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=true", true},
			{9 * s, "gpus=8 ready=true", "", "gpus=8 ready=true", false},
			{11 * s, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=true", true},
			{20 * s, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=true", true},
			{21 * s, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=false reason=NoNIC", false},
		}},
		{"unknown is no break", settle, "gpus=8 ready=true", []step{
			{0, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=true", true},
			{5 * s, "gpus=8 reason=Unreadable", "ready reason", "gpus=8 ready=true", false},
			{10 * s, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=false reason=NoNIC", false},
		}},
		{"unknown proves nothing", settle, "gpus=8 ready=true peermem=true", []step{
			{0, "gpus=8 reason=Unreadable", "ready reason peermem", "gpus=8 ready=true peermem=true", false},
			{60 * s, "gpus=8 reason=Unreadable", "ready reason peermem", "gpus=8 ready=true peermem=true", false},
			{61 * s, "gpus=8 ready=false reason=NoNIC peermem=false", "", "gpus=8 ready=true peermem=true", true},
		}},
		{"the reason stays with what is unknown", settle, "gpus=8 ready=false reason=NoNIC", []step{
			{0, "gpus=8 reason=Unreadable", "ready reason", "gpus=8 ready=false reason=NoNIC", false},
			{s, "", "all", "gpus=8 ready=false reason=NoNIC", false},
		}},
		{"unreadable from the first", settle, "", []step{
			{0, "gpus=8 reason=Unreadable", "ready reason", nothing, true},
			{1 * s, "gpus=8 reason=Unreadable", "ready reason", "gpus=8 reason=Unreadable", false},
			{2 * s, "", "all", "gpus=8 reason=Unreadable", false},
			{3 * s, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=false reason=NoNIC", false},
		}},
		{"unreadable no more", settle, "gpus=8 reason=Unreadable", []step{
			{0, "gpus=8 ready=true", "", "gpus=8 ready=true", false},
		}},
		{"another reason settles too", settle, "gpus=8 ready=false reason=GPUDriverNotLoaded", []step{
			{0, "gpus=8 ready=false reason=NoRDMADevice", "", "gpus=8 ready=false reason=GPUDriverNotLoaded", true},
			{10 * s, "gpus=8 ready=false reason=NoActivePort", "", "gpus=8 ready=false reason=NoActivePort", false},
		}},
		{"a reason that was missing", settle, "gpus=8 ready=false", []step{
			{0, "gpus=8 ready=false reason=NoNIC", "", "gpus=8 ready=false reason=NoNIC", false},
		}},
		{"a reason that was missing, and is not known", settle, "gpus=8 ready=false", []step{
			{0, "gpus=8 reason=Unreadable", "ready reason", "gpus=8 ready=false reason=Unreadable", false},
		}},
		{"another reason why it is unknown", settle, "gpus=8 reason=Unreadable", []step{
			{0, "gpus=8 reason=SMMUPassthrough", "", "gpus=8 reason=SMMUPassthrough", false},
		}},
		{"degraded settles both ways", settle, "gpus=8 degraded=false", []step{
			{0, "gpus=8 degraded=true", "", "gpus=8 degraded=false", true},
			{settle, "gpus=8 degraded=true", "", "gpus=8 degraded=true", false},
			{settle + s, "gpus=8 degraded=false", "", "gpus=8 degraded=true", true},
			{2*settle + s, "gpus=8 degraded=false", "", "gpus=8 degraded=false", false},
		}},
		{"a reason too many", settle, "gpus=8 ready=true reason=NoNIC", []step{
			{0, "gpus=8 ready=true", "", "gpus=8 ready=true", false},
		}},
		{"words settle like booleans", settle, "gpus=8 iommu=off", []step{
			{0, "gpus=8 iommu=translated", "", "gpus=8 iommu=off", true},
			{10 * s, "gpus=8 iommu=translated", "", "gpus=8 iommu=translated", false},
			{11 * s, "gpus=8", "", "gpus=8 iommu=translated", true},
			{21 * s, "gpus=8", "", "gpus=8", false},
		}},
		{"what was not published need not settle", settle, "gpus=8", []step{
			{0, "gpus=8 iommu=off peermem=false", "", "gpus=8 iommu=off peermem=false", false},
		}},
		{"each label settles by itself", settle, "gpus=8 peermem=true dmabuf=true", []step{
			{0, "gpus=8 peermem=false dmabuf=true", "", "gpus=8 peermem=true dmabuf=true", true},
			{5 * s, "gpus=8 peermem=false dmabuf=false", "", "gpus=8 peermem=true dmabuf=true", true},
			{10 * s, "gpus=8 peermem=false dmabuf=false", "", "gpus=8 peermem=false dmabuf=true", true},
			{15 * s, "gpus=8 peermem=false dmabuf=false", "", "gpus=8 peermem=false dmabuf=false", false},
		}},
		{"no settle time", 0, "gpus=8 ready=true iommu=off", []step{
			{0, "gpus=8 ready=false reason=NoNIC iommu=translated", "", "gpus=8 ready=false reason=NoNIC iommu=translated", false},
			{0, "gpus=8 ready=true", "", "gpus=8 ready=true", false},
		}},
		{"read back and found as it was", settle, "gpus=8 ready=true", []step{
			{0, "gpus=8 ready=true", "", "gpus=8 ready=true", false},
		}},
		{"read back what can no longer be read", settle, "gpus=8 ready=true level=PIX", []step{
			{0, "", "all", "gpus=8 ready=true level=PIX", false},
		}},
		{"the GPU goes", settle, "gpus=8 ready=false reason=NoNIC iommu=off", []step{
			{0, gone, "", "gpus=8 ready=false reason=NoNIC iommu=off", true},
			{1 * s, gone, "", "ready=false reason=NoNIC iommu=off", true},
			{9 * s, gone, "", "ready=false reason=NoNIC iommu=off", true},
			{10 * s, gone, "", "", false},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := nodelabel.NewFilter(test.settle, set(t, test.last))
			start := time.Unix(1e9, 0)
			for i, step := range test.steps {
				r := nodelabel.Reading{Labels: set(t, step.read), Unknown: names(t, step.unknown), At: start.Add(step.at)}
				got, again, ok := k.Next(r)
				if ok != (step.want != nothing) {
					t.Fatalf("step %d: ok is %v, labels %v", i, ok, got)
				}
				if ok {
					if diff := cmp.Diff(set(t, step.want), got); diff != "" {
						t.Fatalf("step %d (-want +got):\n%s", i, diff)
					}
				}
				if want := map[bool]time.Duration{true: recheck}[step.hurry]; again != want {
					t.Errorf("step %d: the next reading in %v, want %v", i, again, want)
				}
			}
		})
	}
}

// A reading without the hardware does not confirm the hardware labels of the reading
// before.
func TestPartial(t *testing.T) {
	was, odd := "gpus=8 ready=true", "gpus=7 ready=true"
	k := nodelabel.NewFilter(settle, set(t, was))
	for i, step := range []struct {
		read    string
		partial bool
		want    string
		hurry   bool
	}{
		{odd, true, was, true}, // the reading before was not given to the filter
		{odd, false, was, true},
		{odd, true, was, true},
		{"gpus=7 ready=false reason=NoRDMADevice", true, was, true},
		{was, false, was, false},
		{was, true, was, false},
		{odd, false, was, true},
		{odd, true, was, true},
		{odd, false, odd, false},
		{odd, true, odd, false},
	} {
		got, again, ok := k.Next(nodelabel.Reading{Labels: set(t, step.read), Partial: step.partial, At: time.Unix(1e9+int64(i), 0)})
		if diff := cmp.Diff(set(t, step.want), got); diff != "" || !ok || (again > 0) != step.hurry {
			t.Errorf("step %d: ok %v, again in %v (-want +got):\n%s", i, ok, again, diff)
		}
	}
	fresh := nodelabel.NewFilter(settle, nil)
	if got, _, ok := fresh.Next(nodelabel.Reading{Labels: set(t, was), Partial: true}); ok {
		t.Errorf("published after a partial reading: %v", got)
	}
}

// A driver that is unloaded and loaded twenty times in a row changes no label; when
// it stays unloaded, labels change once.
func TestReloads(t *testing.T) {
	up, down := set(t, "gpus=8 ready=true"), set(t, "gpus=8 ready=false reason=GPUDriverNotLoaded")
	k := nodelabel.NewFilter(settle, up)
	at, changes, last := time.Unix(1e9, 0), 0, up
	show := func(labels label.Set, during time.Duration) {
		for end := at.Add(during); at.Before(end); at = at.Add(recheck) {
			got, _, ok := k.Next(nodelabel.Reading{Labels: labels, At: at})
			if !ok {
				t.Fatal("nothing to publish")
			}
			if !cmp.Equal(last, got) {
				changes++
				last = got
			}
		}
	}
	for range 20 {
		show(down, 9*time.Second)
		show(up, 2*time.Second)
	}
	if changes != 0 {
		t.Errorf("%d changes", changes)
	}
	show(down, time.Minute)
	if diff := cmp.Diff(down, last); diff != "" || changes != 1 {
		t.Errorf("%d changes; at last (-want +got):\n%s", changes, diff)
	}
}

// The caller may change the labels that it gives to a filter or gets from it.
func TestNothingShared(t *testing.T) {
	last := set(t, "gpus=8 ready=true")
	k := nodelabel.NewFilter(settle, last)
	clear(last)
	blind := nodelabel.Reading{Unknown: nodelabel.All(family.Known()), At: time.Unix(1e9, 0)}
	first, _, _ := k.Next(blind)
	want := set(t, "gpus=8 ready=true")
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("after what was read back is cleared (-want +got):\n%s", diff)
	}
	clear(first)
	if second, _, _ := k.Next(blind); !cmp.Equal(want, second) {
		t.Errorf("after the labels given are cleared: %v", second)
	}
}

// Without a settle time a state label changes at once.
func TestNoSettleTime(t *testing.T) {
	k := nodelabel.NewFilter(0, nil)
	for range 2 {
		k.Next(nodelabel.Reading{Labels: set(t, "gpus=8 ready=true")})
	}
	got, again, ok := k.Next(nodelabel.Reading{Labels: set(t, "gpus=8 ready=false reason=NoNIC")})
	if diff := cmp.Diff(set(t, "gpus=8 ready=false reason=NoNIC"), got); diff != "" || again != 0 || !ok {
		t.Errorf("again in %v, ok %v (-want +got):\n%s", again, ok, diff)
	}
}
