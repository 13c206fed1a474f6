package nccl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// placed returns a function below some bridges of a root bus.
func placed(f *pci.Function, numa int, bridges ...pci.Address) *pci.Function {
	f.RootBus, f.Bridges, f.RootNUMA, f.NearNUMA = "pci0000:00", bridges, numa, numa
	return f
}

func ratedBy(file *File, gpus, nics []*pci.Function) *Ratings {
	inv := &pci.Inventory{}
	for _, f := range append(append([]*pci.Function{}, gpus...), nics...) {
		inv.Functions = append(inv.Functions, *f)
	}
	slices.SortFunc(inv.Functions, func(a, b pci.Function) int { return a.Address.Compare(b.Address) })
	at := make([]NIC, len(nics))
	for i, n := range nics {
		at[i] = NIC{Function: n, At: GetPCIPath(inv, n)}
	}
	m := Machine{PCI: inv, File: file, GPUs: gpus}
	return m.Rate(at)
}

// TestOddPaths: an address that occurs in its own path, which no kernel writes, only
// ends the path up.
func TestOddPaths(t *testing.T) {
	a, b := at(t, "0000:02:00.0"), at(t, "0000:01:00.0")
	for _, bridges := range [][]pci.Address{{a, b}, {a, b, a, b}, {b, b, b, b}, {a, a, b, b, a}} {
		done := make(chan bool)
		go func() {
			ratedBy(nil, []*pci.Function{placed(gpu(t, "0000:02:00.0"), 0, bridges...)}, []*pci.Function{placed(nic(t, "0000:04:00.0"), 0, bridges...)})
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("no end below %v", bridges)
		}
	}
}

// TestFirstCPUUnknown: if the first GPU's place cannot be read, the CPU of a NIC
// without function 00.0 is unknown.
func TestFirstCPUUnknown(t *testing.T) {
	first, second := gpu(t, "0000:05:00.0"), placed(gpu(t, "0000:83:00.0"), 1)
	lost := placed(nic(t, "0000:84:01.0"), 1)
	if r := ratedBy(nil, []*pci.Function{first, second}, []*pci.Function{lost}); r.Path(second, GetPCIPath(&pci.Inventory{}, lost)) != Unknown {
		t.Errorf("%v with the first GPU's place unknown", r.paths)
	}
	placed(first, 1)
	if r := ratedBy(nil, []*pci.Function{first, second}, []*pci.Function{lost}); r.Path(second, GetPCIPath(&pci.Inventory{}, lost)) != PHB {
		t.Errorf("%v with it known", r.paths)
	}
}

// TestPluginNIC: a NIC that NCCL uses by a plugin has its own place, where NCCL's IB
// transport looks for function 00.0 of its bus, and takes the first CPU without one.
func TestPluginNIC(t *testing.T) {
	near, far := placed(gpu(t, "0000:90:1c.0"), 1), placed(gpu(t, "0000:10:1c.0"), 0)
	for _, tt := range []struct {
		name           string
		vendor, device uint16
		families       family.Table
		near, far      Path
	}{
		{"EFA", 0x1d0f, 0xefa0, family.Known(), PHB, SYS},
		{"EFA where it does not count", 0x1d0f, 0xefa0, family.Table{Others: family.Known().NICs}, PHB, SYS},
		{"ConnectX", 0x15b3, 0x1021, family.Known(), SYS, PHB},
	} {
		n := placed(nic(t, "0000:90:1b.0"), 1)
		n.Vendor, n.Device, n.Class = tt.vendor, tt.device, 0x020000
		n.Classify(tt.families)
		r := ratedBy(nil, []*pci.Function{far, near}, []*pci.Function{n})
		at := GetPCIPath(&pci.Inventory{}, n)
		if got, other := r.Path(near, at), r.Path(far, at); got != tt.near || other != tt.far {
			t.Errorf("%s: %v and %v, want %v and %v", tt.name, got, other, tt.near, tt.far)
		}
		file := parse(t, `<system><cpu><pci busid="0000:90:00.0"/></cpu></system>`)
		if found := file.Find(n) != nil; found != (tt.name == "ConnectX") {
			t.Errorf("%s: found as function 0 of its bus: %v", tt.name, found)
		}
	}
}

// TestFileFault: what NCCL finds missing in the elements of a file when it starts.
func TestFileFault(t *testing.T) {
	g, n := placed(gpu(t, "0000:01:00.0"), 0), placed(nic(t, "0000:02:00.0"), 0)
	const text = `<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400"><pci busid="0000:01:00.0"/><pci busid="0000:02:00.0"/></pci></cpu></system>`
	for _, tt := range []struct{ name, text, want string }{
		{"complete", text, "<nil>"},
		{"no class", strings.Replace(text, ` class="0x060400"`, "", 1), `the pci element "ffff:ff:01.0" without class`},
		{"no numaid", strings.Replace(text, ` numaid="0"`, "", 1), `the cpu element "" without numaid`},
		{"no modelid", strings.Replace(text, ` numaid="0"`, ` numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6"`, 1), `the cpu element "0" without modelid`},
		{"no familyid either, so that NCCL adds both", strings.Replace(text, ` numaid="0"`, ` numaid="0" arch="x86_64" vendor="GenuineIntel"`, 1), "<nil>"},
		{"refused as a whole", strings.Replace(text, `"1"`, `"2"`, 1), "line 1: the element system has no version=\"1\", which NCCL wants"},
		{"a second system, which does not count", strings.Replace(text, "<system", `<system version="1"><cpu numaid="1"><pci busid="0000:01:00.0"/></cpu></system><system`, 1), "<nil>"},
	} {
		r := ratedBy(parse(t, tt.text), []*pci.Function{g}, []*pci.Function{n})
		if fmt.Sprint(r.Failed) != tt.want || (r.paths == nil) != (tt.want != "<nil>") {
			t.Errorf("%s: %v, paths %v; want %s", tt.name, r.Failed, r.paths, tt.want)
		}
	}
}

// TestManyCPUs: NCCL links every CPU with every other, and with a GPU and a NIC here, up to 576 links.
func TestManyCPUs(t *testing.T) {
	for _, n := range []int{maxLinks - 1, maxLinks} {
		var gpus, nics []*pci.Function
		for i := range n {
			gpus = append(gpus, placed(gpu(t, fmt.Sprintf("%04x:01:00.0", i)), i))
		}
		nics = append(nics, placed(nic(t, "0000:02:00.0"), 0))
		if r := ratedBy(nil, gpus, nics); (r.Failed == nil) != (n == maxLinks-1) {
			t.Errorf("%d CPUs: %v", n, r.Failed)
		}
	}
}

// TestOrderOfFunctions: NCCL puts a function before the first beside it with a greater bus id, and
// leaves those of the file in their order.
func TestOrderOfFunctions(t *testing.T) {
	const unsorted = `<system version="1"><cpu numaid="0"><pci busid="0000:09:00.0" class="0x020700"/><pci busid="0000:03:00.0" class="0x020700"/></cpu></system>`
	g := []*pci.Function{placed(gpu(t, "0000:05:00.0"), 0)}
	var nics []*pci.Function
	for _, address := range []string{"0000:08:00.0", "0000:03:00.0", "0000:04:00.0", "0000:09:00.0"} {
		nics = append(nics, placed(nic(t, address), 0))
	}
	for _, tt := range []struct {
		name string
		file *File
		want []string
	}{
		{"without a file", nil, []string{"0000:03:00.0", "0000:04:00.0", "0000:05:00.0", "0000:08:00.0", "0000:09:00.0"}},
		{"beside those of a file", parse(t, unsorted), []string{"0000:04:00.0", "0000:05:00.0", "0000:08:00.0", "0000:09:00.0", "0000:03:00.0"}},
	} {
		var got []string
		for _, e := range ratedBy(tt.file, g, nics).system.sub("cpu").subs {
			got = append(got, e.attr("busid"))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
