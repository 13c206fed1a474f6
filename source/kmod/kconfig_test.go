package kmod

import (
	"bytes"
	"compress/gzip"
	"maps"
	"strings"
	"testing"

	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

var (
	p2p  = family.KernelOption{Name: "PCI_P2PDMA"}
	move = family.KernelOption{Name: "DMABUF_MOVE_NOTIFY", Always: "DMA_SHARED_BUFFER", Gone: [2]int{7, 1}}
)

const both = "CONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=y\n"

// Parts of configurations: an option that Linux 7.1 has no more, and the end of its menu.
const (
	shared = "CONFIG_PCI_P2PDMA=y\nCONFIG_DMA_SHARED_BUFFER=y\n"
	end    = EndOfDrivers + "\n"
)

func TestOptionIn(t *testing.T) {
	for _, tt := range []struct {
		name, config, release string
		p2p, move             tristate.State
	}{
		{"both", both, "", yes, yes},
		{"without the last newline", strings.TrimSpace(both), "", yes, yes},
		{"neither", "CONFIG_PCI=y\n" + end, "", no, no},
		{"neither, in a file that is cut", "CONFIG_PCI=y\n", "7.1.0", unknown, unknown},
		{"not set", "CONFIG_PCI=y\nCONFIG_DMA_SHARED_BUFFER=y\n# CONFIG_PCI_P2PDMA is not set\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\n", "", no, no},
		{"not set, and cut before the last line", shared, "6.8.0-60-generic", yes, unknown},
		{"cut in the line", shared + "# CONFIG_DMABUF_MOVE_NOTIFY is n", "6.8.0-60-generic", yes, unknown},
		{"cut in the value", "CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=", "6.8.0-60-generic", unknown, unknown},
		{"an option that is no more", shared, "7.1.0-3-amd64", yes, yes},
		{"before its first release", shared + end, "7.1-rc1", yes, yes},
		{"long since", shared, "10.0.2", yes, yes},
		{"not set by a newer kernel", shared + "# CONFIG_DMABUF_MOVE_NOTIFY is not set\n", "7.1.0", yes, no},
		{"an older kernel that does not mention it", shared + end, "7.0.9", yes, unknown},
		{"a kernel of unknown release", shared + end, "", yes, unknown},
		{"a release that is none", shared, "linux-7.1", yes, unknown},
		{"a newer kernel without DMA-BUF", "CONFIG_PCI_P2PDMA=y\n# CONFIG_DMA_SHARED_BUFFER is not set\n" + end, "7.1.0", yes, no},
		{"a module is not built in", "CONFIG_PCI_P2PDMA=m\nCONFIG_DMA_SHARED_BUFFER=y\nCONFIG_DMABUF_MOVE_NOTIFY=m\n", "", no, no},
		{"others whose names begin or end alike", "CONFIG_PCI_P2PDMA_TEST=y\nCONFIG_MY_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY2=y\n" + end, "", no, no},
		{"in a comment", "CONFIG_PCI=y\n# CONFIG_PCI_P2PDMA=y\n" + end, "", no, no},
		{"garbage", "\x00\x01\x02", "", unknown, unknown},
		{"nothing", "", "", unknown, unknown},
	} {
		if a, b := optionIn(tt.config, tt.release, p2p), optionIn(tt.config, tt.release, move); a != tt.p2p || b != tt.move {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, a, b, tt.p2p, tt.move)
		}
	}
}

// TestKernelConfig: the first place that has a configuration counts, and it is read once.
func TestKernelConfig(t *testing.T) {
	const release, packed, boot, module = "proc/sys/kernel/osrelease", "proc/config.gz", "boot/config-6.8.0-1", "lib/modules/6.8.0-1/config"
	for _, tt := range []struct {
		name     string
		files    map[string]string
		want     tristate.State
		problems []string
	}{
		{"packed", map[string]string{packed: zipped(t, both), boot: "CONFIG_PCI=y\n"}, yes, nil},
		{"in /boot", map[string]string{release: "6.8.0-1\n", boot: both, module: "CONFIG_PCI=y\n"}, yes, nil},
		{"with the modules", map[string]string{release: "6.8.0-1\n", module: both}, yes, nil},
		{"cut", map[string]string{release: "6.8.0-1\n", boot: "CONFIG_PCI=y\n"}, unknown, []string{
			"read /boot/config-6.8.0-1: no line about CONFIG_PCI_P2PDMA", "read /boot/config-6.8.0-1: no line about CONFIG_DMABUF_MOVE_NOTIFY",
		}},
		{"of another kernel", map[string]string{release: "6.8.0-2\n", boot: both}, unknown, []string{"open /lib/modules/6.8.0-2/config: no such file"}},
		{"packed and cut", map[string]string{packed: zipped(t, both)[:20], release: "6.8.0-1\n", boot: both}, yes, []string{"read /proc/config.gz: unexpected EOF"}},
		{"packed garbage", map[string]string{packed: "garbage and more", release: "6.8.0-1\n"}, unknown, []string{"read /proc/config.gz: gzip: invalid header", "open /lib/modules/6.8.0-1/config: no such file"}},
		{"packed and far too large", map[string]string{packed: zipped(t, strings.Repeat("CONFIG_X=y\n", 1<<19)), release: "6.8.0-1\n", boot: both}, yes, []string{"read /proc/config.gz: more data than expected"}},
		{"a directory", map[string]string{packed: isDir, release: "6.8.0-1\n", boot: both}, yes, []string{"read /proc/config.gz: is a directory"}},
		{"a release that is no name", map[string]string{release: "../../etc\n"}, unknown, nil},
		{"none", nil, unknown, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			functions, table := machine("amd", "mlx5")
			st := Scan(tree(t, withKernel(tt.files)), functions, table, source.What{})
			if got := st.KernelOptions; got[p2p.Name] != tt.want || got[move.Name] != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
	if st := scan(t, map[string]string{packed: zipped(t, both)}); len(st.KernelOptions) != 0 || len(st.Files[FactKernelOptions]) != 0 {
		t.Errorf("read, and nobody asked: %v %v", st.KernelOptions, st.Files[FactKernelOptions])
	}
	memory := Cache{}
	functions, table := machine("amd", "mlx5")
	first := memory.Scan(tree(t, withKernel(map[string]string{packed: zipped(t, both)})), functions, table, source.What{})
	second := memory.Scan(tree(t, withKernel(nil)), functions, table, source.What{})
	if !maps.Equal(first.KernelOptions, second.KernelOptions) || second.KernelOptions[p2p.Name] != yes || second.Files[FactKernelOptions][0] != "/"+packed {
		t.Errorf("read again: %v %v", second.KernelOptions, second.Files[FactKernelOptions])
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func FuzzKernelConfig(f *testing.F) {
	f.Add([]byte(both))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := string(data)
		if unzipped, err := Unpack(data); err == nil {
			text = string(unzipped)
		}
		for _, o := range []family.KernelOption{p2p, move} {
			if optionIn(text, "7.1.0", o) == tristate.True && !strings.Contains(text, "CONFIG_"+o.Name+"=y") && (o.Always == "" || !strings.Contains(text, "CONFIG_"+o.Always+"=y")) {
				t.Errorf("%s is not in %q", o.Name, text)
			}
		}
	})
}
