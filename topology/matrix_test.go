package topology_test

import (
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/test/machine"
	"gdr-features/test/sample"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/verdict"
)

// machinesDir holds the descriptions of real and of made-up machines.
const machinesDir = "../testdata/machines"

// withFile reads a machine with everything in place, and a topology file.
func withFile(t *testing.T, m *machine.Machine, file *nccl.File) *verdict.Node {
	t.Helper()
	return sample.Read(t, m.Tree(t, m.Ready()), file)
}

// nodes are machines with everything in place, by name. Several tests read every machine, and
// none changes it.
var nodes = map[string]*verdict.Node{}

// ready reads a machine with everything in place, once for all tests.
func ready(t *testing.T, m *machine.Machine) *verdict.Node {
	t.Helper()
	if nodes[m.Name] == nil {
		nodes[m.Name] = withFile(t, m, nil)
	}
	return nodes[m.Name]
}

func load(t *testing.T, name string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// notFromSysfs are machines whose matrix follows from no rule that reads sysfs
// alone, with what the rule gives instead.
var notFromSysfs = map[string]map[string]string{
	// GB200: nvidia-smi prints SYS also between functions of one NUMA node.
	"rhel-gb200-cdmm-off-and-on": {"NODE": "SYS"},
	"oke-gb200-v3":               {"NODE": "SYS"},
}

// TestPublishedMatrices compares every cell of every machine with the matrix
// that nvidia-smi topo -m printed there.
func TestPublishedMatrices(t *testing.T) {
	machines, cells, made := 0, 0, 0
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		if len(m.Matrix) == 0 {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			r := ready(t, m)
			got := levels(m, &r.Matrix)
			count := &made
			if strings.Contains(m.Evidence, "published matrix") {
				machines++
				count = &cells
			}
			for gpu, row := range m.Matrix {
				for nic, want := range row {
					*count++
					level, ok := got[gpu+" "+nic]
					if instead := notFromSysfs[m.Name][level]; instead != "" {
						level = instead
					}
					if !ok || !strings.Contains("|"+want+"|", "|"+level+"|") {
						t.Errorf("%s %s: %q, printed was %q", gpu, nic, level, want)
					}
				}
			}
		})
	}
	t.Logf("%d cells of %d machines, and %d that were not published", cells, machines, made)
	if cells == 0 {
		t.Error("no published cell was compared")
	}
}

// levels returns the levels by the names that the description uses.
func levels(m *machine.Machine, tm *topology.Matrix) map[string]string {
	names := map[string]string{}
	for _, f := range m.Functions {
		names[f.Address] = f.Attrs["name"]
	}
	out := map[string]string{}
	for _, p := range tm.Pairs {
		out[names[tm.GPUs[p.GPU].Address.String()]+" "+tm.NICs[p.NIC].Name()] = p.Level.String()
	}
	return out
}
