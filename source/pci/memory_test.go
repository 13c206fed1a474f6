package pci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/source/pci"
)

// bars is the file resource of a function with memory BARs of these sizes in MiB; 0 for
// none.
func bars(sizes ...uint64) string {
	var text strings.Builder
	for i := range 13 {
		if i < len(sizes) && sizes[i] > 0 {
			fmt.Fprintf(&text, "0x%016x 0x%016x 0x%016x\n", 1<<40, 1<<40+sizes[i]<<20-1, 0x14220c)
		} else {
			text.WriteString("0x0000000000000000 0x0000000000000000 0x0000000000000000\n")
		}
	}
	return text.String()
}

// TestMemory: how much of a GPU's memory PCI reaches, by the files of its function.
func TestMemory(t *testing.T) {
	const (
		gib   = 1 << 30
		unset = "0x0000000000000000 0x0000003fffffffff 0x000000002014220c\n" // no address was free
		ports = "0x0000000000003000 0x000000000000307f 0x0000000000040101\n"
		total = "206141652992\n"
	)
	amd := func(files map[string]string) map[string]string {
		if files["mem_info_vram_total"] == "" {
			files["mem_info_vram_total"] = total
		}
		return files
	}
	for name, tc := range map[string]struct {
		device  string
		files   map[string]string
		want    *pci.Memory
		problem string // part of the only one
	}{
		"MI300X": {"120000 1002:74a1", amd(map[string]string{"resource": bars(256<<10, 0, 2)}), &pci.Memory{Total: 206141652992, Visible: 256 * gib}, ""},
		"MI300X with a small BAR": {
			"120000 1002:74a1", amd(map[string]string{"resource": bars(256, 0, 2), "resource0_resize": "000000000007ff00\n"}),
			&pci.Memory{Total: 206141652992, Visible: 256 << 20, Sizes: 0x7ff00}, "",
		},
		"MI300X whose BAR has no address": {
			"120000 1002:74a1", amd(map[string]string{"resource": unset + bars(0, 2)}), &pci.Memory{Total: 206141652992}, "",
		},
		"MI300X without driver":               {"120000 1002:74a1", map[string]string{"resource": bars(256)}, nil, ""},
		"MI300X whose size is no number":      {"120000 1002:74a1", amd(map[string]string{"mem_info_vram_total": "much\n"}), nil, `/mem_info_vram_total: "much" is not a number`},
		"MI300A shares memory with its CPU":   {"120000 1002:74a0", amd(map[string]string{"resource": bars(1)}), nil, ""},
		"A40, BAR 0 has 32 bits":              {"gpu 10de:2235", map[string]string{"resource": bars(16, 64<<10, 0, 32)}, &pci.Memory{BAR: 1, Visible: 64 * gib}, ""},
		"H100, BAR 0 has 64 bits":             {"gpu 10de:2330", map[string]string{"resource": bars(16, 0, 128<<10, 0, 32)}, &pci.Memory{BAR: 2, Visible: 128 * gib}, ""},
		"H100 with ports of the same machine": {"gpu 10de:2330", map[string]string{"resource": bars(16)[:57] + ports + bars(128<<10, 0, 32)}, &pci.Memory{BAR: 2, Visible: 128 * gib}, ""},
		"T4":                                  {"gpu 10de:1eb8", map[string]string{"resource": bars(16, 256, 0, 32), "resource1_resize": "0000000000007fc0\n"}, &pci.Memory{BAR: 1, Visible: 256 << 20, Sizes: 0x7fc0}, ""},
		"T4 with garbage for sizes": {
			"gpu 10de:1eb8", map[string]string{"resource": bars(16, 256), "resource1_resize": "?\n"}, &pci.Memory{BAR: 1, Visible: 256 << 20}, `/resource1_resize: "?" is not a number`,
		},
		"a GPU without a BAR":          {"gpu 10de:1eb8", map[string]string{"resource": bars(16)}, &pci.Memory{BAR: 1}, ""},
		"GH200 shares memory":          {"gpu 10de:2342", map[string]string{"resource": bars(16, 0, 256)}, nil, ""},
		"no file":                      {"gpu 10de:2330", nil, nil, ""},
		"a file of fewer lines":        {"gpu 10de:2330", map[string]string{"resource": bars(16)[:57]}, nil, "/resource: 1 lines are too few"},
		"a file with something else":   {"gpu 10de:2330", map[string]string{"resource": "x\n" + bars(16)}, nil, `/resource: "x" is not a BAR`},
		"a file with other numbers":    {"gpu 10de:2330", map[string]string{"resource": "0x1 0x2 0xg\n" + bars(16)}, nil, `/resource: "0x1 0x2 0xg" is not a BAR`},
		"an end before the start":      {"gpu 10de:2330", map[string]string{"resource": "0x2 0x1 0x200\n" + bars()}, &pci.Memory{BAR: 1}, ""},
		"a file that is not a text":    {"gpu 10de:2330", map[string]string{"resource": strings.Repeat("\x00\xff\n", 20)}, nil, "/resource: "},
		"a file of more than 4 KiB":    {"gpu 10de:2330", map[string]string{"resource": strings.Repeat(bars(16), 9)}, nil, "/resource"},
		"a NIC is not a GPU":           {"ib 15b3:1021", map[string]string{"resource": bars(32)}, nil, ""},
		"a GeForce is read as well":    {"gpu 10de:2684", map[string]string{"resource": bars(16, 32<<10)}, &pci.Memory{BAR: 1, Visible: 32 * gib}, ""},
		"an empty file is not a table": {"gpu 10de:2330", map[string]string{"resource": ""}, nil, "/resource"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, "pci0000:10 numa=0\n  0000:13:00.0 "+tc.device+"\n")
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, devices+"0000:13:00.0", file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			inv := scan(t, dir, source.What{Advice: true})
			if diff := cmp.Diff(tc.want, inv.Functions[0].Memory); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := len(inv.Problems); n > 1 || (n == 1) != (tc.problem != "") || n == 1 && !strings.Contains(inv.Problems[0].Error(), tc.problem) {
				t.Errorf("problems %v, want %q", inv.Problems, tc.problem)
			}
			if inv := scan(t, dir, source.What{Details: true}); inv.Functions[0].Memory != nil {
				t.Errorf("not asked for: %+v", inv.Functions[0].Memory)
			}
		})
	}
}

// TestLargest: the largest size that a BAR can be given, as the kernel counts.
func TestLargest(t *testing.T) {
	for _, tc := range []struct {
		sizes, size uint64
		number      int
	}{{0, 0, 0}, {0x1c0, 256 << 20, 8}, {1, 1 << 20, 0}, {1 << 43, 1 << 63, 43}, {1 << 44, 0, 0}, {1 << 63, 0, 0}} {
		if size, number := (&pci.Memory{Sizes: tc.sizes}).Largest(); size != tc.size || number != tc.number {
			t.Errorf("%x: %d, %d; want %d, %d", tc.sizes, size, number, tc.size, tc.number)
		}
	}
}
