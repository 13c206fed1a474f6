package kmod

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecidingLines(t *testing.T) {
	long := strings.Repeat("y", maxLine+1)
	for _, tt := range []struct {
		name, table, want string
		ended             bool
	}{
		{"empty", "", "", true},
		{"no table", "\x7fELF\n0000000000000000 t ib_umem_dmabuf_get\n", "\x7fELF\n", true},
		{"no table, and long", long, long[:64], true},
		{
			"the first line and what decides",
			"0000000000000000 A first\n0000000000000000 t vfs_read\n0000000000000000 t ib_umem_dmabuf_get\t[ib_uverbs]\n",
			"0000000000000000 A first\n0000000000000000 t ib_umem_dmabuf_get\t[ib_uverbs]\n", true,
		},
		{"addresses", "ffffffff81000000 T _text\nc0de1234 t ib_umem_dmabuf_get\n", "ffffffffffffffff T _text\nffffffff t ib_umem_dmabuf_get\n", true},
		{"a last line without newline", "00000000 A first\n00000000 t ib_umem_dmabuf_get", "00000000 A first\n00000000 t ib_umem_dmabuf_get", true},
		{"a line that was not read to its end", "00000000 A first\n00000000 t ib_umem_dmabuf_get", "00000000 A first\n", false},
		{"an endless line", "00000000 A first\n" + long, "00000000 A first\n" + strings.Repeat("x", maxLine+1), false},
		{"a long first line", "00000000 A " + long + "\n", strings.Repeat("x", maxLine+1), true},
		{"a long line", "00000000 A first\n" + long + "\n00000000 t ib_umem_dmabuf_get\n", "00000000 A first\n" + strings.Repeat("x", maxLine+1), true},
		{"a long last line", "00000000 A first\n" + long, "00000000 A first\n" + strings.Repeat("x", maxLine+1), true},
		{
			"the same symbol again", strings.Repeat("00000000 t ib_umem_dmabuf_get\n", 1e5) + "00000000 t ib_umem_dmabuf_get\t[m]\n",
			"00000000 t ib_umem_dmabuf_get\n", true,
		},
	} {
		if diff := cmp.Diff(tt.want, string(DecidingLines([]byte(tt.table), tt.ended))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// FuzzDecidingLines: the lines that are kept lead to what the whole table leads to,
// however many bytes a read of it gives.
func FuzzDecidingLines(f *testing.F) {
	f.Add("ffffffff81000000 T _text\nc0de1234 t ib_umem_dmabuf_get\t[ib_uverbs]\n", true, uint16(1<<15))
	f.Add("00000000 T a\n00000000 r __ksymtab_ib_register_peer_memory_client\t[ib_core]\n00000000 t ib_register_peer_memory_client.cold\t[x]", true, uint16(7))
	f.Add("00000000 T a\n00000000 t ib_umem_dmabuf_get\n"+strings.Repeat("y", maxLine+1), true, uint16(4000))
	f.Add("00000000 T a\n"+strings.Repeat("y", maxLine+1)+"\n00000000 t ib_umem_dmabuf_get\n", true, uint16(64<<10-1))
	f.Add("garbage\nib_umem_dmabuf_get", false, uint16(0))
	all := [len(wanted)]bool{true, true, true}
	f.Fuzz(func(t *testing.T, table string, ended bool, most uint16) {
		search := func(text []byte, most int) (found [len(wanted)]hit, end bool, err error) {
			from := bytes.NewReader(text)
			return searchSymbols(func(buf []byte) (int, error) {
				n, _ := from.Read(buf[:min(most, len(buf))])
				if n == 0 && !ended {
					return 0, errBroken
				}
				return n, nil
			}, all)
		}
		// Less than the first line is no beginning of a table.
		first, _, _ := strings.Cut(table, "\n")
		found, end, err := search([]byte(table), max(1+int(most), len(first)))
		gotFound, gotEnd, gotErr := search(DecidingLines([]byte(table), ended), 1<<20)
		if found != gotFound || end != gotEnd || !errors.Is(gotErr, err) || (err == nil) != (gotErr == nil) {
			t.Errorf("%v, %v, %v; of the whole table %v, %v, %v", gotFound, gotEnd, gotErr, found, end, err)
		}
	})
}

var errBroken = errors.New("broken")

func TestFirstProcessor(t *testing.T) {
	const first = "processor\t: 0\nflags\t\t: fpu\n"
	for _, text := range []string{first, first + "\n", first + "\nprocessor\t: 1\n\n"} {
		if got := string(FirstProcessor([]byte(text))); got != first {
			t.Errorf("%q of %q", got, text)
		}
	}
}

func TestDecidingModules(t *testing.T) {
	const first, peer = "kernel/a.ko: kernel/b.ko\n", "updates/nvidia-peermem.ko.zst: updates/nvidia.ko.zst\n"
	for _, tt := range []struct{ dep, want string }{
		{first + "kernel/b.ko:\n" + peer + "kernel/c.ko:\n" + "peer", first + peer + "peer"},
		{peer + first, peer},
		{strings.Repeat("x", 1000), strings.Repeat("x", 255) + "\n"},
		{strings.Repeat("x", 1000) + ":\n" + peer, strings.Repeat("x", 255) + "\n" + peer},
	} {
		if diff := cmp.Diff(tt.want, string(DecidingModules([]byte(tt.dep)))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// FuzzDecidingModules: the lines that are kept tell of the same modules.
func FuzzDecidingModules(f *testing.F) {
	f.Add("kernel/a.ko: kernel/b.ko\nupdates/nvidia-peermem.ko.zst: updates/nvidia.ko.zst\n")
	f.Add(strings.Repeat("kernel/", 100) + ".ko:\nextra/nv_peer_mem.ko: kernel/ib_core.ko")
	f.Fuzz(func(t *testing.T, dep string) {
		kept := string(DecidingModules([]byte(dep)))
		if kept == "" {
			t.Errorf("nothing is left of %q", dep)
		}
		for _, module := range [...]string{"nvidia_peermem", "nv_peer_mem"} {
			want, listed := needsOf(dep, module)
			got, ok := needsOf(kept, module)
			if ok != listed || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v; of the whole %q, %v", module, got, ok, want, listed)
			}
		}
	})
}

func TestDecidingWords(t *testing.T) {
	for _, tt := range []struct{ cmdline, want string }{
		{"BOOT_IMAGE=/vmlinuz root=UUID=6f1b0c9e intel_iommu=on iommu=pt password=secret", "... intel_iommu=on iommu=pt ...\n"},
		{"quiet\n", "...\n"},
		{"root=/dev/iommu iommu.passthrough=1\n", "... iommu.passthrough=1\n"},
	} {
		if got := string(DecidingWords([]byte(tt.cmdline))); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
