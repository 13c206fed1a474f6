package platform_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// TestExcluded: only the driver's own words say that it excludes a GPU, or that it does not.
func TestExcluded(t *testing.T) {
	const model = "Model: \t\t NVIDIA H100 80GB HBM3\n"
	for _, tt := range []struct {
		name, text string
		want       tristate.State
		problem    string
	}{
		{"excluded", model + "GPU Excluded:\t Yes\n", yes, ""},
		{"excluded by an old release", model + "Blacklisted:\t Yes\n", yes, ""},
		{"not excluded by an old release", model + "Blacklisted:\t No\n", no, ""},
		{"not excluded", model + "GPU Excluded:\t No\n", no, ""},
		{"a driver that does not say", model + "Device Minor: \t 0\n", no, ""},
		{"another word", model + "GPU Excluded:\t Perhaps\n", unknown, "it does not say"},
		{"no word", model + "GPU Excluded:\n", unknown, "it does not say"},
		{"garbage", "garbage\n", unknown, "it does not say"},
		{"an empty file", "", unknown, "file is empty"},
		{"a huge file", model + strings.Repeat("x", 5000), unknown, "more data"},
		{"no file", "-", no, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := container(t)
			file := filepath.Join(dir, information)
			err := os.WriteFile(file, []byte(tt.text), 0o644)
			if tt.text == "-" {
				err = os.Remove(file)
			}
			if err != nil {
				t.Fatal(err)
			}
			fs, err := host.Open(host.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fs.Close() }()
			inv, err := pci.Scan(fs, family.Known(), source.What{})
			if err != nil {
				t.Fatal(err)
			}
			st := platform.Read(fs, platform.ReadDMI(fs), &inv, source.What{})
			if got := st.GPUs.Excluded(nvidia); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if got := st.GPUs.Excluded(amd); got != no {
				t.Errorf("a driver without such files: %v", got)
			}
			if (tt.problem == "") != (len(st.Problems) == 0) || tt.problem != "" && !strings.Contains(st.Problems[0].Error(), information+": "+tt.problem) {
				t.Errorf("problems %q, want %q", st.Problems, tt.problem)
			}
		})
	}
	if got := new(platform.GPUs).Excluded(nvidia); got != unknown {
		t.Errorf("not read: %v", got)
	}
}
