package snapshot

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology/nccl"
)

// scrubbed returns a machine with one file, as it is and as it is after scrubbing.
func scrubbed(t *testing.T, name, content string) (before, after *host.FS, text string) {
	t.Helper()
	tree := func() *Recording {
		return &Recording{answers: map[question]*answer{{name: name, kind: read}: {data: []byte(content)}}}
	}
	r := tree()
	r.Scrub()
	return tree().FS(""), r.FS(""), written(t, r)
}

// TestScrubNumbers: garbage where a number belongs stays garbage.
func TestScrubNumbers(t *testing.T) {
	const garbage = "99999999999999999999"
	for name, replaced := range map[string]bool{
		"sys/bus/pci/devices/0000:21:00.0/numa_node":      false,
		"sys/bus/pci/devices/0000:21:00.0/max_link_width": false,
		"sys/class/dmi/id/product_name":                   true,
	} {
		_, after, _ := scrubbed(t, name, garbage+"\n")
		if got, err := after.Line(name); (got != garbage) != replaced || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestScrubTooLarge: a file that is too large is not read, and only its length is kept.
func TestScrubTooLarge(t *testing.T) {
	for _, name := range []string{"proc/cmdline", "lib/modules/6.8/modules.dep", "sys/bus/pci/devices/0000:21:00.0/vpd", "x.xml"} {
		a := &answer{data: []byte(strings.Repeat("password=secret iommu=pt ", 200)[:4097]), stop: ErrNotRecorded}
		r := &Recording{answers: map[question]*answer{{name: name, kind: read}: a}}
		r.Scrub()
		if got := string(a.data); got != strings.Repeat("x", 4097) || !errors.Is(a.stop, ErrNotRecorded) {
			t.Errorf("%s: %d bytes, %v: %q", name, len(got), a.stop, got)
		}
	}
}

// TestScrubInformation: of what a driver says of a GPU the facts that decide are kept.
func TestScrubInformation(t *testing.T) {
	gpu := family.Known().GPUs[0]
	name := platform.InformationFile(gpu, pci.Address{Bus: 1})[1:]
	for _, text := range []string{"GPU Excluded:\t Yes\n", "GPU Excluded:\t No\n", "GPU Excluded:\n", "", "IRQ: 1\n"} {
		for _, model := range []string{"", "Model: \t\t NVIDIA A30-8C\n", "Model: \n"} {
			before, after, _ := scrubbed(t, name, model+text+"Device Minor: \t 2\n")
			want, _ := platform.ReadInformation(before, gpu, pci.Address{Bus: 1})
			got, err := platform.ReadInformation(after, gpu, pci.Address{Bus: 1})
			if got != want || err != nil {
				t.Errorf("%q: %+v, %v; want %+v", model+text, got, err, want)
			}
		}
	}
}

func TestSymbolLines(t *testing.T) {
	long := strings.Repeat("y", kmod.MaxLine+1)
	for _, tt := range []struct {
		name, table, want string
		ended             bool
	}{
		{"no table", "\x7fELF\n0000000000000000 t ib_umem_dmabuf_get\n", "\x7fELF\n00000000000", true},
		{"no table, and long", long, long[:16], true},
		{
			"the first line and what decides",
			"0000000000000000 A first\n0000000000000000 t vfs_read\n0000000000000000 t ib_umem_dmabuf_get\t[ib_uverbs]\n",
			"0000000000000000 A first\n0000000000000000 t ib_umem_dmabuf_get\t[ib_uverbs]\n", true,
		},
		{
			"NIC drivers' symbols",
			"00000000 A first\n00000000 t mlx5_ib_reg_user_mr_dmabuf.cold\t[mlx5_ib]\n00000000 t ib_umem_dmabuf_get_pinned\n",
			"00000000 A first\n00000000 t mlx5_ib_reg_user_mr_dmabuf.cold\t[mlx5_ib]\n", true,
		},
		{"addresses", "ffffffff81000000 T _text\nc0de1234 t ib_umem_dmabuf_get\n", "ffffffffffffffff T _text\nffffffff t ib_umem_dmabuf_get\n", true},
		{"a last line without newline", "00000000 A first\n00000000 t ib_umem_dmabuf_get", "00000000 A first\n00000000 t ib_umem_dmabuf_get", true},
		{"a line that was not read to its end", "00000000 A first\n00000000 t ib_umem_dmabuf_get", "00000000 A first\n", false},
		{"an endless line", "00000000 A first\n" + long, "00000000 A first\n" + strings.Repeat("x", kmod.MaxLine+1), false},
		{"a long first line", "00000000 A " + long + "\n", strings.Repeat("x", kmod.MaxLine+1), true},
		{"a long line", "00000000 A first\n" + long + "\n00000000 t ib_umem_dmabuf_get\n", "00000000 A first\n" + strings.Repeat("x", kmod.MaxLine+1), true},
		{
			"the same symbol again", strings.Repeat("00000000 t ib_umem_dmabuf_get\n", 1e4) + "00000000 t ib_umem_dmabuf_get\t[m]\n",
			"00000000 t ib_umem_dmabuf_get\n00000000 t ib_umem_dmabuf_get\t[m]\n", true,
		},
	} {
		if diff := cmp.Diff(tt.want, string(symbolLines([]byte(tt.table), tt.ended))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPeerLines(t *testing.T) {
	const first, peer = "kernel/a.ko: kernel/b.ko\n", "updates/nvidia-peermem.ko.zst: updates/nvidia.ko.zst\n"
	for dep, want := range map[string]string{
		first + "kernel/b.ko:\n" + peer + "kernel/c.ko:\n" + "peer": "...\n" + peer + "peer",
		peer + first:                      "...\n" + peer,
		strings.Repeat("x", 1000) + ":\n": "...\n",
	} {
		if diff := cmp.Diff(want, string(peerLines([]byte(dep)))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestOptionLines(t *testing.T) {
	const head, lines = "...\nCONFIG_...\n", "CONFIG_PCI_P2PDMA=y\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\n"
	for config, want := range map[string]string{
		"CONFIG_DEFAULT_HOSTNAME=\"node-7\"\n" + lines + "CONFIG_PCI_P2PDMA_OTHER=y\n": head + lines,
		"# garbage, CONFIG_PCI_P2PDMA=y":                                               "# garbage, CONFIG_PCI_P2PDMA=y",
		"CONFIG_X=y":                                                                   head,
		"CONFIG_X=y\n# end of Device Drivers\n# end of X\n":                            head + "# end of Device Drivers\n",
	} {
		if got := string(optionLines([]byte(config))); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := io.WriteString(w, config); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(packedOptionLines(packed.Bytes())))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Errorf("packed: %q, %v, want %q", got, err, want)
		}
	}
	if got := string(packedOptionLines([]byte("\x1f\x8bgarbage"))); got != "\x1f\x8bgarbage" {
		t.Errorf("garbage became %q", got)
	}
}

func TestIOMMUWords(t *testing.T) {
	for cmdline, want := range map[string]string{
		"BOOT_IMAGE=/vmlinuz root=UUID=6f1b0c9e intel_iommu=on iommu=pt password=secret": "... intel_iommu=on iommu=pt ...\n",
		"quiet\n":                               "...\n",
		"root=/dev/iommu iommu.passthrough=1\n": "... iommu.passthrough=1\n",
	} {
		if got := string(iommuWords([]byte(cmdline))); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

var (
	anyFunction = pci.Address{Bus: 1}
	ofFunction  = "sys/bus/pci/devices/" + anyFunction.String() + "/"
)

// resource is one of the VPD.
func resource(tag, body string) string {
	return tag + string([]byte{byte(len(body)), byte(len(body) >> 8)}) + body
}

func TestScrubVPD(t *testing.T) {
	data := resource("\x82", "Name a1b2c3d4e5f6") +
		resource("\x90", "PN\x04P-12SN\x0bS-341234567V3\x02idVA\x0eSMDL=SW_MNG:S4RV\x03\xff\xff\xff") +
		resource("\x91", "RW\x10S-341234567\x00\x00\x00XX\xff") + "\x78S-341234567"
	_, after, text := scrubbed(t, ofFunction+"vpd", data)
	want := &pci.VPD{Product: "Name 000000000003", Fields: map[string]string{"PN": "P-12", "SN": "0-000000001", "V3": "02", "VA": "SW_MNG"}}
	if diff := cmp.Diff(want, pci.ReadVPD(after, anyFunction)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if secret := fmt.Sprintf("%x", "34123"); strings.Contains(text, secret) {
		t.Errorf("%s is left:\n%s", secret, text)
	}
}

// FuzzScrubVPD: readable data stay readable, with the same keywords and texts of the
// same length, and unreadable data stay unreadable.
func FuzzScrubVPD(f *testing.F) {
	f.Add("\x82\x04\x00Name\x90\x08\x00SN\x01xRV\x01\x00\x78")
	f.Add("\x90\x05\x00VU\x02id")
	f.Add("\x82\x01")
	f.Add("\x90\x03\x00SN\x05\x0a\x0b")
	f.Fuzz(func(t *testing.T, data string) {
		before, after, _ := scrubbed(t, ofFunction+"vpd", data)
		lengths := func(vpd *pci.VPD) map[string]int {
			if vpd == nil {
				return nil
			}
			all := map[string]int{"product": len(vpd.Product)}
			for key, text := range vpd.Fields {
				if strings.Contains(text, pci.ManagementMark) {
					text = pci.ManagementMark
				}
				all[key] = len(text)
			}
			return all
		}
		if diff := cmp.Diff(lengths(pci.ReadVPD(before, anyFunction)), lengths(pci.ReadVPD(after, anyFunction))); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
}

// named is a topology file with the names of its owner.
const named = `<?xml version="1.0"?>
<!-- hostname: gpu-node-7.example.com -->
<system version="1" x:hostname = "gpu-node-7.example.com"
  serial='MT2310XZ0ABC &amp; 2'>
  <cpu numaid="0" arch="x86_64"><pci busid="0001:00:00.0" link_speed="32.0 GT/s PCIe"/>node 7</cpu>
</system>
behind it: node-7
`

func TestOverwriteTopology(t *testing.T) {
	for text, want := range map[string]string{
		named: `<?xml version="1.0"?>
<!-- xxxxxxxx: xxx-xxxx-x.xxxxxxx.xxx -->
<system version="1" x:hostname = "xxx-xxxx-x.xxxxxxx.xxx"
  serial='xxxxxxxxxxxx &amp; x'>
  <cpu numaid="0" arch="x86_64"><pci busid="0001:00:00.0" link_speed="32.0 GT/s PCIe"/>xxxx x</cpu>
</system>
xxxxxx xx: xxxx-x
`,
		"<a host='x'><b></a> node-7": "<a host='x'><b></a> xxxx-x",
	} {
		data := []byte(text)
		_ = overwriteTopology(data)
		if diff := cmp.Diff(want, string(data)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// FuzzOverwriteTopology: reading a topology file gives the same as before, errors
// included.
func FuzzOverwriteTopology(f *testing.F) {
	f.Add([]byte(named))
	f.Add([]byte("&#A"))
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY a "b">]><?p q?><a b:busid='1&amp;2'>&lt;<![CDATA[x]]></a><b>`))
	f.Add([]byte(`<system version="1"><!--a--b--><cpu numaid = '0' q="a='1'"><pci busid="0000:01:00.0" class="0x030200"/></cpu></system>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := nccl.ParseFile(data)
		_ = overwriteTopology(data)
		same, sameErr := nccl.ParseFile(data)
		if !reflect.DeepEqual(file, same) || fmt.Sprint(err) != fmt.Sprint(sameErr) {
			t.Fatalf("%v, %v; when overwritten %v, %v", file, err, same, sameErr)
		}
	})
}
