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
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

// information is the driver's file about the GPU of NVIDIA in machineText.
const information = "proc/driver/nvidia/gpus/0000:11:00.0/information"

const machineText = `
pci0000:10 numa=0
  0000:11:00.0 gpu 10de:2330
  0000:12:00.0 accel 1002:74a1
`

// TestExcluded: only the driver's own words say that it excludes a GPU, or that it does not.
func TestExcluded(t *testing.T) {
	const yes, no, unknown = tristate.True, tristate.False, tristate.Unknown
	nvidia, amd := pci.Address{Bus: 0x11}, pci.Address{Bus: 0x12}
	m, err := machine.Parse(machineText)
	if err != nil {
		t.Fatal(err)
	}
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
			dir := m.Tree(t, m.Ready())
			m.Container(t, dir, []int{0, 1})
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

// FuzzParseInformation: a number of a node is one that can be written into a path and read
// back, and the text made of the result gives the same result.
func FuzzParseInformation(f *testing.F) {
	f.Add([]byte("Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-1\nDevice Minor: \t 3\n"))
	f.Add([]byte("Device Minor: -1\nDevice Minor: 65536\nGPU UUID:\n:\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n := platform.ParseInformation(text); n.Minor < -1 || n.Minor > 65535 || strings.Contains(n.UUID+n.Model, "\n") {
			t.Errorf("%+v", n)
		}
	})
}
