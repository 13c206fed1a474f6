package report_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/host"
	"gdr-features/internal/label"
	"gdr-features/internal/machine"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/snapshot"
)

// FuzzSnapshot breaks a machine and takes a snapshot of it: what is read from that
// is what is read from the machine, problems included.
func FuzzSnapshot(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, seed uint64, wounds uint8) { sameOnSnapshot(t, seed, int(wounds)%40+1) })
}

// TestSnapshotOfDamage is the fuzz target over a fixed range, for every test run.
func TestSnapshotOfDamage(t *testing.T) {
	for seed := range uint64(200) {
		sameOnSnapshot(t, seed, int(seed%12)+1)
	}
}

func sameOnSnapshot(t *testing.T, seed uint64, wounds int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	states := machine.States()
	dir := parse(t, one).Tree(t, states[random.IntN(len(states))])
	for range wounds {
		wound(dir, random)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	tape := snapshot.Record(fs)
	for _, o := range report.Verbs {
		_ = report.Collect(t.Context(), tape.FS(dir), o)
	}
	if late := tape.Finish(); late != nil {
		t.Fatalf("seed %d, %d wounds: no answer from %q", seed, wounds, late)
	}
	tape.Scrub()
	text, err := tape.Text()
	if err != nil {
		t.Fatal(err)
	}
	read, err := snapshot.Parse(string(text))
	if err != nil {
		t.Fatalf("seed %d, %d wounds: %v", seed, wounds, err)
	}
	for i, o := range report.Verbs {
		want := report.Collect(t.Context(), fs, o)
		got := report.Collect(t.Context(), read.FS("snapshot"), o)
		if diff := cmp.Diff(shown(t, &want), shown(t, &got)); diff != "" {
			t.Fatalf("seed %d, %d wounds, verb %d (-machine +snapshot):\n%s\n%s", seed, wounds, i, diff, text)
		}
	}
}

// shown is all that people and programs see of a report. The user and host that
// the machine's driver was built by are not in a snapshot; damage may bring them
// into a message.
func shown(t *testing.T, r *report.Report) map[string]string {
	t.Helper()
	all := map[string]string{"problems": strings.Join(r.Problems, "\n")}
	for name, show := range map[string]func(io.Writer, *report.Report) error{
		"topo": render.Topo, "topo json": render.TopoJSON, "check": render.Check, "check json": render.CheckJSON,
		"labels": func(w io.Writer, r *report.Report) error { return render.Labels(w, r.Labels, label.DefaultPrefix) },
	} {
		var out bytes.Buffer
		if err := show(&out, r); err != nil {
			t.Fatal(err)
		}
		all[name] = out.String()
	}
	for name, text := range all {
		all[name] = strings.ReplaceAll(text, "builder@host", "xxxxxxx@xxxx")
	}
	return all
}
