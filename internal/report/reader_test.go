package report_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

func reader(t *testing.T, dir string) *report.Reader {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return report.NewReader(fs, report.ForPublishing)
}

// Reading a machine again and again gives the same as reading it once.
func TestReaderIsCollect(t *testing.T) {
	t.Parallel()
	states := []machine.State{state(t, "ready"), state(t, "closed-no-peermem")}
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		for s, dir := range m.Trees(t, states) {
			once := collect(t, dir, report.ForPublishing.What)
			rd := reader(t, dir)
			for _, parts := range []report.Parts{report.All, report.RDMA, report.Drivers, report.RDMA | report.Drivers, report.PCI, report.All} {
				again := rd.Read(t.Context(), parts)
				if diff := cmp.Diff(once.Labels, again.Labels); diff != "" {
					t.Fatalf("%s %s, parts %b: labels (-once +again):\n%s", m.Name, s.Name, parts, diff)
				}
				if diff := cmp.Diff(sanitize.Errors(once.Problems), sanitize.Errors(again.Problems)); diff != "" && len(once.Labels) > 0 {
					t.Fatalf("%s %s, parts %b: problems (-once +again):\n%s", m.Name, s.Name, parts, diff)
				}
			}
		}
	}
}

// Only what a reader is asked for is read again.
func TestReaderParts(t *testing.T) {
	m := parse(t, one)
	dir := m.Tree(t, state(t, "ready"))
	rd := reader(t, dir)
	expect := func(parts report.Parts, name, want string) {
		t.Helper()
		if got := rd.Read(t.Context(), parts).Labels[name]; got != want {
			t.Errorf("parts %b: %s is %q, want %q", parts, name, got, want)
		}
	}
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect(report.Drivers, label.Ready, "true") // the first reading reads all

	write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
	expect(report.Drivers, label.Reason, "")
	expect(report.RDMA, label.Reason, "NoActivePort")
	write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
	expect(report.Drivers, label.Reason, "NoActivePort")
	expect(report.RDMA, label.Ready, "true")

	write("sys/module/nvidia_peermem/initstate", "going\n")
	expect(report.RDMA, label.Peermem, "true")
	expect(report.Drivers, label.Peermem, "false")
	expect(report.RDMA, label.Peermem, "false")

	if err := os.Remove(filepath.Join(dir, "sys/bus/pci/devices/0000:18:00.0")); err != nil {
		t.Fatal(err)
	}
	expect(report.RDMA|report.Drivers, label.GPUs, "1")
	expect(report.PCI, label.GPUs, "")
	expect(report.RDMA, label.GPUs, "")
}

// A port that changes its state is noticed once, also one that becomes unreadable or
// disappears.
func TestPortsMoved(t *testing.T) {
	m := parse(t, one)
	dir := m.Tree(t, state(t, "ready"))
	rd := reader(t, dir)
	file := filepath.Join(dir, "sys/class/infiniband/mlx5_0/ports/1/state")
	rd.Read(t.Context(), report.All)
	expect := func(what string, want bool) {
		t.Helper()
		if got := rd.PortsMoved(t.Context()); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		rd.Read(t.Context(), report.RDMA)
		if rd.PortsMoved(t.Context()) {
			t.Errorf("%s: twice", what)
		}
	}
	expect("nothing", false)
	for _, text := range []string{"1: DOWN\n", "2: INIT\n", "garbage\n", "4: ACTIVE\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		expect(text, true)
		expect("the same", false)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("gone", true)
}

// What does not answer is unknown until it answers.
func TestReaderRecovers(t *testing.T) {
	m := parse(t, one)
	rd := reader(t, m.Tree(t, state(t, "ready")))
	ended, end := context.WithCancel(t.Context())
	end()
	if r := rd.Read(ended, report.All); r.PCIRead && len(r.Labels) > 5 && len(r.Problems) == 0 {
		t.Errorf("all was read in no time: %v", r.Labels)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // what was left behind comes back
		r := rd.Read(t.Context(), report.RDMA)
		if r.Labels[label.Ready] == "true" {
			return
		}
		for _, problem := range r.Problems {
			if !errors.Is(problem, deadline.ErrTimeout) {
				t.Fatal(problem)
			}
		}
	}
	t.Error("it does not recover")
}
