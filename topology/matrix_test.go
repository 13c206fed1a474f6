package topology_test

import (
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
)

// machinesDir holds the descriptions of real and of made-up machines.
const machinesDir = "../testdata/machines"

// collect reads a machine in a state from a tree on disk, as a command would.
func collect(t *testing.T, m *machine.Machine, s machine.State, file *nccl.File) report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: m.Tree(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return report.Collect(t.Context(), fs, report.Options{What: report.ForTopo.What, TopologyFile: file})
}

// reports are those of machines with everything in place, by name. Several tests read every
// machine, and none changes its report.
var reports = map[string]*report.Report{}

// ready reads a machine with everything in place, once for all tests.
func ready(t *testing.T, m *machine.Machine) *report.Report {
	t.Helper()
	if reports[m.Name] == nil {
		r := collect(t, m, m.Ready(), nil)
		reports[m.Name] = &r
	}
	return reports[m.Name]
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
