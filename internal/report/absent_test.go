package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
)

// Devices without an IOMMU group prove that the IOMMU is off only where
// /sys/kernel was read: copies of /sys often lack it.
func TestNoIOMMUNeedsEvidence(t *testing.T) {
	m := parse(t, one)
	const groups = "sys/kernel/iommu_groups"
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string // "" for unknown
	}{
		{"an empty list of groups", func(*testing.T, string) {}, "off"},
		{"groups of other devices", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Mkdir(filepath.Join(dir, groups, "0"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "off"},
		{"an empty /sys/kernel", remove(groups), ""},
		{"a kernel without IOMMU groups", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Rename(filepath.Join(dir, groups), filepath.Join(dir, "sys/kernel/mm")); err != nil {
				t.Fatal(err)
			}
		}, "off"},
		{"no /sys/kernel", remove("sys/kernel"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := m.Tree(t, state(t, "iommu-off"))
			tt.change(t, dir)
			r := collect(t, dir, report.ForCheck.What)
			if got, ok := r.Labels[label.IOMMU]; got != tt.want || r.Unknown[label.IOMMU] == ok {
				t.Errorf("label %q, unknown: %v; want %q", got, r.Unknown[label.IOMMU], tt.want)
			}
			for _, f := range r.Findings {
				if f.Check == "iommu" && (f.Status == finding.StatusOK) != (tt.want != "") {
					t.Errorf("finding %+v", f)
				}
			}
		})
	}
}
