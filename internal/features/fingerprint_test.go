package features_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/features"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

// replaced is a file of a machine with a part of its text replaced.
type replaced struct{ file, old, new string }

// changed is the text of a file with a change; a file that was not there has the new text alone.
func changed(text string, c replaced) string {
	if c.old == "" {
		return c.new
	}
	return strings.ReplaceAll(text, c.old, c.new)
}

// TestFingerprint: the same machine has the same fingerprint at each reading, whatever flaps on it,
// and another one when one part of what a result rests on changes.
func TestFingerprint(t *testing.T) {
	text, err := os.ReadFile("../../testdata/machines/bluefield3-l40s.txt")
	if err != nil {
		t.Fatal(err)
	}
	wired := func(text string) *machine.Machine {
		m, err := machine.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := wired(string(text))
	of := func(changes ...replaced) string {
		dir := m.Tree(t, m.Ready())
		for _, c := range changes {
			file := filepath.Join(dir, c.file)
			text, err := os.ReadFile(file)
			if c.old == "" {
				err = os.MkdirAll(filepath.Dir(file), 0o755)
				text = []byte(c.new)
			}
			if err != nil || !strings.Contains(string(text), c.old) {
				t.Fatalf("%s: %v, no %q in %q", c.file, err, c.old, text)
			}
			if err := os.WriteFile(file, []byte(changed(string(text), c)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		fs, err := host.Open(host.Options{Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer fs.Close()
		r := report.Collect(t.Context(), fs, report.ForPublishing)
		return features.Fingerprint(&r)
	}
	const (
		functions = "sys/bus/pci/devices/"
		gpu, nic  = functions + "0000:18:00.0/", functions + "0000:1b:00.0/"
		slot      = functions + "0000:19:00.0/" // the card's own end of its link
		rdma      = "sys/class/infiniband/rocep27s0f0/"
	)
	first := of()
	if len(first) != 16 {
		t.Fatalf("%q", first)
	}
	for name, c := range map[string]replaced{
		"nothing":                 {rdma + "fw_ver", "28", "28"},
		"an idle GPU's link":      {gpu + "current_link_speed", "32.0", "2.5"},
		"the state of a port":     {rdma + "ports/1/rate", "Gb", "Gb "},
		"the way that ports wait": {rdma + "ports/1/phys_state", "LinkUp", "Linkup"},
	} {
		if got := of(c); got != first {
			t.Errorf("%s: changed", name)
		}
	}
	seen := map[string]string{first: "nothing"}
	for name, c := range map[string]replaced{
		"kernel":              {"proc/sys/kernel/osrelease", "", "6.8.0-45-generic\n"},
		"GPU driver":          {"proc/driver/nvidia/version", "570.86.15", "570.86.16"},
		"RDMA stack":          {"sys/module/mlx5_core/version", "24.10", "24.11"},
		"firmware of a NIC":   {rdma + "fw_ver", "28.42", "28.43"},
		"model of a GPU":      {gpu + "modalias", "000026B9", "000026BA"},
		"model of a NIC":      {nic + "modalias", "A2DC", "A2DF"},
		"model of a bridge":   {slot + "modalias", "197B", "197C"},
		"width of a link":     {slot + "current_link_width", "16", "8"},
		"width it could have": {slot + "max_link_width", "16", "8"},
		"speed of a NIC":      {slot + "current_link_speed", "32.0", "16.0"},
		"speed it could have": {slot + "max_link_speed", "32.0", "16.0"},
		"ACS of a bridge":     {functions + "0000:1a:00.0/config", "\x5f\x00\x0c\x00", "\x5f\x00\x00\x00"},
		"driver parameter":    {"proc/driver/nvidia/params", "", "RegistryDwords: \"PeerMappingOverride=1\"\n"},
		"its value":           {"proc/driver/nvidia/params", "", "RegistryDwords: \"PeerMappingOverride=2\"\n"},
		"IOMMU":               {gpu + "iommu_group/type", "identity", "DMA-FQ"},
		"peer memory client":  {"sys/module/nvidia_peermem/initstate", "live", "going"},
		"DMA-BUF":             {"proc/kallsyms", "ib_umem_dmabuf_get", "ib_umem_dmabuf_gone"},
	} {
		got := of(c)
		if same, ok := seen[got]; ok {
			t.Errorf("%s: the same fingerprint as %s", name, same)
		}
		seen[got] = name
	}
	m = wired(strings.Replace(string(text), "0000:18:00.0 gpu", "0000:18:01.0 gpu", 1))
	if same, ok := seen[of()]; ok {
		t.Errorf("address of a GPU: the same fingerprint as %s", same)
	}
}
