package report_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gdr-features/internal/label"
	"gdr-features/source"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// TestEmptyFileNeverLies empties each file of a machine in turn: a label keeps its
// value or becomes unknown, and only the reason may appear.
func TestEmptyFileNeverLies(t *testing.T) {
	t.Parallel()
	for _, name := range testsize.Share([]string{"epyc-3gpu-phb-nccltests320", "bluefield3-l40s", "gb300-datadirect", "vfs-with-pf"}) {
		m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"ready", "closed-no-peermem"} {
			t.Run(name+" "+s, func(t *testing.T) {
				dir := m.Tree(t, state(t, s))
				before := collect(t, dir, source.What{}).Labels
				emptied := 0
				eachFile(t, dir, func(path string, text []byte) {
					emptied++
					if err := os.Truncate(path, 0); err != nil {
						t.Fatal(err)
					}
					after := collect(t, dir, source.What{})
					for name, value := range after.Labels {
						if was, ok := before[name]; name != label.Reason && (!ok || was != value) {
							t.Errorf("%s empty: %s was %q, is %q", path[len(dir):], name, was, value)
						}
					}
					for name := range before {
						if _, ok := after.Labels[name]; !ok && !after.Unknown[name] && (name != label.ACS || !privileged(path)) {
							t.Errorf("%s empty: %s is gone, and not as unknown", path[len(dir):], name)
						}
					}
					for name := range after.Unknown {
						if value, ok := after.Labels[name]; ok && name != label.Reason {
							t.Errorf("%s empty: %s is unknown and %q", path[len(dir):], name, value)
						}
					}
					if len(after.Labels) < len(before) && len(after.Problems) == 0 && !privileged(path) {
						t.Errorf("%s empty: labels gone without a problem", path[len(dir):])
					}
					if err := os.WriteFile(path, text, 0o644); err != nil {
						t.Fatal(err)
					}
				})
				if emptied < 50 {
					t.Errorf("only %d files", emptied)
				}
			})
		}
	}
}

// privileged reports whether only root can read a file: its absence is no problem.
func privileged(path string) bool {
	base := filepath.Base(path)
	return base == "config" || base == "vpd"
}

func eachFile(t *testing.T, dir string, do func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && len(text) > 0 {
			do(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
