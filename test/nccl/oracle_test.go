//go:build nccl

package nccl

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/report"
	"gdr-features/topology"
)

// oracle is the program that answers with NCCL's own topology code.
func oracle(t *testing.T) string {
	t.Helper()
	program := os.Getenv("NCCL_ORACLE")
	if program == "" {
		t.Fatal("NCCL_ORACLE names no program; see test/nccl/README.md")
	}
	path, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// question is what the oracle is asked.
type question struct {
	root string // a tree with sys/ and proc/
	file string // NCCL_TOPO_FILE, as a path within root; "" for none
	// nvlink: all GPUs are on one NVSwitch.
	nvlink bool
	// socket is a network interface without PCI device, "" for none: then the
	// NICs are left out.
	socket bool
	// rates are those of the NICs that it is told of, in Mbit/s, by their indexes in the matrix;
	// nil for all of them at their own where that counts (Grace), elsewhere at one rate, since NCCL
	// breaks ties by port speed.
	rates map[int]int
}

// answer is what it says of each GPU and NIC, NCCL's level and whether it uses
// GPUDirect RDMA with its default settings ("PIX true"), or why NCCL fails.
type answer struct {
	levels map[string]string
	// local are the RDMA devices that it may use for a GPU, by the GPU's address; nil where
	// the program does not say.
	local map[string][]string
	fails string
}

// pairName names a GPU and an entry of the matrix's NICs.
func pairName(gpu string, nic *topology.NIC) string {
	return strings.TrimRight(gpu+" "+nic.Address()+" "+nic.Name(), " ")
}

// accelerators gives GPUs of class 1200 that of another GPU until the question is answered:
// NCCL knows no such GPU, and RCCL's copy of the code takes them for GPUs (src/graph/topo.cc,
// kvDictPciClass), the rest of which is the same.
func accelerators(t *testing.T, r *report.Report, q question) (restore func()) {
	t.Helper()
	const accelerator, display = "0x120000", "0x038000"
	files := []string{}
	for _, g := range r.Matrix.GPUs {
		files = append(files, "sys/bus/pci/devices/"+g.Address.String()+"/class")
	}
	if q.file != "" {
		files = append(files, q.file)
	}
	texts := map[string][]byte{}
	for _, name := range files {
		path := filepath.Join(q.root, name)
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(accelerator)) {
			continue // of NVIDIA, or spoiled by the test
		}
		texts[path] = text
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(accelerator), []byte(display)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for path, text := range texts {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

// ask returns NCCL's answer for the GPUs and NICs of a report.
func ask(t *testing.T, r *report.Report, q question) answer {
	t.Helper()
	var in strings.Builder
	fmt.Fprintf(&in, "root %s\n", q.root)
	if q.file != "" {
		fmt.Fprintf(&in, "topofile %s\n", q.file)
	}
	if q.nvlink {
		in.WriteString("nvlink\n")
	}
	for _, g := range r.Matrix.GPUs {
		sm, links := 80, 0
		if g.Coherent() {
			sm, links = 90, 10
		}
		fmt.Fprintf(&in, "gpu %v %d %d\n", g.Address, sm, links)
	}
	names := map[string]string{}
	const rate = 400000
	for i := range r.Matrix.NICs {
		n := &r.Matrix.NICs[i]
		if n.Function == nil || q.socket || q.rates != nil && q.rates[i] == 0 {
			continue
		}
		name := netName(i, n)
		names[name] = pairName("", n)
		kind, what := "ib", n.Name()
		switch dd := n.Function.DataDirect; {
		case dd != nil:
			kind, what = "path", sysPath(t, q.root, dd.String())
		case n.Function.NIC != nil && n.Function.NIC.NCCLPlugin != nil:
			kind, what = "path", sysPath(t, q.root, n.Address())
		case n.RDMA == nil:
			kind, what = "fn", n.Address()
		}
		fmt.Fprintf(&in, "net %s %s %s %d\n", name, kind, what, cmp.Or(q.rates[i], r.Matrix.InNCCL[i].Mbps, rate))
	}
	if q.socket {
		fmt.Fprintf(&in, "net bond0 path /devices/virtual/net/bond0 %d\n", rate)
	}
	defer accelerators(t, r, q)()
	cmd := exec.CommandContext(t.Context(), oracle(t))
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() < 0 {
		return answer{fails: ended.String()} // NCCL follows stale links in circles
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, in.String(), out)
	}
	return parseAnswer(string(out), names)
}

// netName is what NCCL calls a NIC, or a name that no topology file has.
func netName(i int, n *topology.NIC) string {
	switch {
	case n.RDMA == nil:
		return fmt.Sprintf("net%d", i)
	case n.Function.DataDirect != nil:
		return n.Name() + "_dma"
	}
	return n.Name()
}

func parseAnswer(out string, names map[string]string) answer {
	a := answer{levels: map[string]string{}}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		switch {
		case len(words) > 5 && words[0] == "pair":
			name := words[1] + names[words[2]]
			if _, twice := a.levels[name]; !twice { // NCCL goes by the first of two nodes of one NIC
				a.levels[name] = fmt.Sprint(words[3], " ", words[5] != "Disabled")
			}
		case len(words) > 2 && words[0] == "local":
			nic := strings.Fields(names[words[2]])
			if a.local == nil {
				a.local = map[string][]string{}
			}
			a.local[words[1]] = append(a.local[words[1]], nic[len(nic)-1])
		case len(words) > 1 && words[0] == "fails":
			a.fails = strings.TrimSpace(strings.TrimPrefix(line, "fails"))
		}
	}
	return a
}

// sysPath is a function's path below /sys.
func sysPath(t *testing.T, root, address string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(root, "sys/bus/pci/devices", address))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(path, filepath.Join(root, "sys"))
}

// addBuses makes the links of /sys/class/pci_bus, through which NCCL finds a
// function.
func addBuses(t *testing.T, root string) {
	t.Helper()
	devices := filepath.Join(root, "sys/bus/pci/devices")
	entries, err := os.ReadDir(devices)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path, err := filepath.EvalSymlinks(filepath.Join(devices, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		bus := e.Name()[:strings.LastIndexByte(e.Name(), ':')]
		dir := filepath.Join(filepath.Dir(path), "pci_bus", bus)
		link := filepath.Join(root, "sys/class/pci_bus", bus)
		if _, err := os.Lstat(link); err == nil {
			continue
		}
		to, err := filepath.Rel(filepath.Dir(link), dir)
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(link), 0o755)
		}
		if err == nil {
			err = os.Symlink(to, link)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// said returns our own answer in the same words.
func said(r *report.Report) map[string]string {
	levels := map[string]string{}
	for _, p := range r.Matrix.Pairs {
		n := &r.Matrix.NICs[p.NIC]
		if n.Function != nil {
			levels[pairName(r.Matrix.GPUs[p.GPU].Address.String(), n)] = fmt.Sprint(p.NCCL, " ", p.Default)
		}
	}
	return levels
}

// left says why a pair is not compared, "" where it is.
func left(n *topology.NIC) string {
	if n.RDMA != nil && n.RDMA.Auxiliary {
		return "auxiliary device"
	}
	return ""
}
