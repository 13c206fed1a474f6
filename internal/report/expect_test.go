package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/tristate"
)

func expectations(t *testing.T, keys string) *expect.File {
	t.Helper()
	file, err := expect.Parse([]byte("types:\n- name: one\n  match:\n    product: Example*\n  expect:\n    " + keys))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A reader gets what is expected at each reading, and reads the facts for it that it
// has not read yet.
func TestReaderExpects(t *testing.T) {
	dir := parse(t, one).Tree(t, state(t, "ready"))
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	var file *expect.File
	wrong := errors.New("no file yet")
	rd := report.NewReader(fs, report.Options{Expect: func() (*expect.File, error) { return file, wrong }})
	r := rd.Read(t.Context(), report.All)
	if r.Expected == nil || r.Expected.State != tristate.Unknown || r.Expected.NoType || !r.Unknown[label.Expected] || len(r.Problems) != 1 || r.Problems[0].Error() != "no file yet" {
		t.Errorf("without a file: %+v, problems %q", r.Expected, r.Problems)
	}
	file, wrong = expectations(t, "nics:\n      count: 1\n      rate: 400"), nil
	step := func(name string, parts report.Parts, want tristate.State) {
		t.Helper()
		r := rd.Read(t.Context(), parts)
		if r.Expected.Type != "one" || r.Expected.State != want || r.Unknown[label.Expected] || r.Labels[label.Expected] != want.String() || len(r.Problems) > 0 {
			t.Errorf("%s: %+v, labels %v, problems %q", name, r.Expected, r.Labels, r.Problems)
		}
	}
	step("a file", report.Drivers, tristate.True)
	file = expectations(t, "nics:\n      count: 1\n      firmware: '28.42.1000'")
	step("a file that needs more", report.Drivers, tristate.True)
	if err := os.WriteFile(filepath.Join(dir, "sys/class/infiniband/mlx5_0/fw_ver"), []byte("28.43.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	step("firmware is not read with drivers", report.Drivers, tristate.True)
	step("but with RDMA devices", report.RDMA, tristate.False)
	file = expectations(t, "gpus: 1")
	step("another file", report.RDMA, tristate.True)
}

// Findings of the verdict come first and stay as they are.
func TestFindingsFollow(t *testing.T) {
	dir := parse(t, one).Tree(t, state(t, "ready"))
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	plain := report.Collect(t.Context(), fs, report.Options{})
	r := report.Collect(t.Context(), fs, report.Options{Expect: func() (*expect.File, error) { return expectations(t, "gpus: 2\n    level: PIX"), nil }})
	n := len(plain.Findings)
	if len(r.Findings) != n+1 || r.Findings[n].Check != "expected" || plain.Expected != nil {
		t.Errorf("%+v", r.Findings)
	}
	if _, ok := plain.Labels[label.Expected]; ok || plain.Unknown[label.Expected] {
		t.Error("a label that nobody asked for")
	}
}

// Of a machine without GPU only the PCI bus is read, unless a type matches it by
// name.
func TestNoGPUIsCheap(t *testing.T) {
	m, err := os.ReadFile(filepath.Join(machinesDir, "nic-only.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := parse(t, string(m)).Tree(t, state(t, "ready"))
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	for vendor, want := range map[string]bool{"Example*": true, "Other": false} {
		file, err := expect.Parse([]byte(strings.ReplaceAll("types:\n- name: a\n  match:\n    vendor: V\n  expect:\n    nics: '>= 1'\n- name: b\n  match: any\n  expect:\n    gpus: 1\n", "V", vendor)))
		if err != nil {
			t.Fatal(err)
		}
		r := report.Collect(t.Context(), fs, report.Options{OnlyWithGPU: true, Expect: func() (*expect.File, error) { return file, nil }})
		if read := len(r.RDMA.Devices) > 0; read != want || r.Expected.NoType == want || len(r.Labels) > 0 {
			t.Errorf("vendor %s: RDMA devices read %v, %+v", vendor, read, r.Expected)
		}
	}
}
