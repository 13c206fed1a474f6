package report_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/view"
	"gdr-features/source"
	"gdr-features/source/container"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// hostNICNearest: below the GPU's switch is a ConnectX-6 Lx, which is for the host, and the
// ConnectX-7 for the GPU is below another root port, or in another place.
const hostNICNearest = `
nodes 2
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a
    0000:16:00.0 switch 1000:c030
      0000:17:00.0 port 1000:c030
        0000:18:00.0 gpu 10de:2330
      0000:17:01.0 port 1000:c030
        0000:19:00.0 eth 15b3:101f rdma=mlx5_0
pci0000:37 numa=0
  0000:37:01.0 port 8086:352a
    0000:38:00.0 ib 15b3:1021 rdma=mlx5_1
`

// withRoles are machines on which some NICs are not for GPUs: made ones, and all of testdata.
func withRoles(t *testing.T) []*machine.Machine {
	t.Helper()
	var all []*machine.Machine
	add := func(name string, changes ...string) {
		m := parse(t, strings.NewReplacer(changes...).Replace(hostNICNearest))
		m.Name = name
		all = append(all, m)
	}
	add("the host's is nearest")
	add("and down", "rdma=mlx5_0", "rdma=mlx5_0 port=DOWN")
	add("and the other is down", "rdma=mlx5_1", "rdma=mlx5_1 port=DOWN")
	add("all are the host's", "ib 15b3:1021", "eth 15b3:101f")
	add("all are the host's, the nearest is down", "ib 15b3:1021", "eth 15b3:101f", "rdma=mlx5_0", "rdma=mlx5_0 port=DOWN")
	add("a DPU beside more adapters", "15b3:101f", "15b3:a2dc", "rdma=mlx5_1\n", "rdma=mlx5_1\n  0000:37:02.0 port 8086:352a\n    0000:39:00.0 ib 15b3:1021 rdma=mlx5_2\n")
	add("both are near", "\npci0000:37", "\n      0000:17:02.0 port 1000:c030\n        0000:1a:00.0 ib 15b3:1021 rdma=mlx5_2 port=DOWN\npci0000:37")
	add("of unknown place", "pci0000:37 numa=0", "pci0000:37")
	for _, m := range machine.All(t, machinesDir) {
		r := collect(t, m.Tree(t, state(t, "ready")), report.ForPublishing.What)
		if slices.ContainsFunc(r.Matrix.NICs, func(n topology.NIC) bool { return n.Role != "" }) {
			all = append(all, m)
		}
	}
	return all
}

// nearest is what a GPU has nearest of some NICs for GPUs, by the pairs alone. Unknown where one of
// unknown level may be nearer.
func nearest(r *report.Report, gpu int, counts func(nic int) bool) (level topology.Level, nics []int) {
	for _, p := range r.Matrix.PairsOf(gpu) {
		switch nic := &r.Matrix.NICs[p.NIC]; {
		case !forGPUs(r, nic) || !counts(p.NIC):
		case len(nics) == 0 || p.Level.Rank() < level.Rank():
			level, nics = p.Level, []int{p.NIC}
		case p.Level == level:
			nics = append(nics, p.NIC)
		}
	}
	if level == topology.Unknown { // none of them, or all: every one may be nearer than the others
		return level, nil
	}
	return level, nics
}

// forGPUs reports whether a NIC is for GPUs: one without a role, or any where each has one.
func forGPUs(r *report.Report, nic *topology.NIC) bool {
	noRole := func(n topology.NIC) bool { return n.Counts() && n.Role == "" }
	return nic.Counts() && (nic.Role == "" || !slices.ContainsFunc(r.Matrix.NICs, noRole))
}

// TestNearIsOneAnswer: the level check, explain, env, the lines for Slurm, near-port and --expect
// speak of the same NICs at the same level, those for GPUs, on every machine that has others too.
// The labels about hardware count every NIC.
func TestNearIsOneAnswer(t *testing.T) {
	t.Parallel()
	differ, down, machines := 0, 0, withRoles(t)
	for i, m := range testsize.Share(machines) {
		for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
			t.Run(m.Name+"/"+s.Name, func(t *testing.T) {
				r := collect(t, dir, source.What{Advice: true})
				seen := visible(t, &r, dir)
				worst, known := topology.Unknown, r.Matrix.Complete
				for gpu := range r.Matrix.GPUs {
					level, nics := nearest(&r, gpu, func(int) bool { return true })
					sameNear(t, &r, seen, gpu, level, nics)
					if r.Matrix.GPUs[gpu].Counts() {
						worst, known = max(worst, level), known && level != topology.Unknown
					}
				}
				if !known || r.Matrix.EligibleGPUs == 0 {
					return
				}
				sameLimits(t, &r, dir, worst)
				down += samePorts(t, &r)
				if r.Labels[label.Level] != worst.String() {
					differ++
				}
			})
		}
	}
	if !testsize.Partial() && (differ == 0 || down == 0) {
		t.Errorf("%d machines whose label says another level, %d GPUs whose near port is down: none is shown", differ, down)
	}
}

// visible are the devices that a process of a machine can use.
func visible(t *testing.T, r *report.Report, dir string) *container.Devices {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	seen := container.ReadDevices(t.Context(), fs, &r.PCI, &r.RDMA)
	return &seen
}

// sameNear compares what is said of one GPU.
func sameNear(t *testing.T, r *report.Report, seen *container.Devices, gpu int, level topology.Level, nics []int) {
	t.Helper()
	if near := explain.NearestNICs(&r.Node)[gpu]; near.Level != level || !slices.Equal(near.NICs, nics) {
		t.Errorf("GPU%d: explain has %v at %v, want %v at %v", gpu, near.NICs, near.Level, nics, level)
	}
	var slurm bytes.Buffer
	if err := render.TopoSlurm(&slurm, r, seen); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(", %v to %s", level, names(r, nics)); level != topology.Unknown && !strings.Contains(lineOf(slurm.String(), gpu), want) {
		t.Errorf("GPU%d: for Slurm %q, want %q", gpu, lineOf(slurm.String(), gpu), want)
	}
	// env takes only what has an active port, of these the fastest, and of one link layer.
	active, best := nearest(r, gpu, func(nic int) bool { return r.Matrix.NICs[nic].RDMA != nil && up(r, nic) })
	here := assign.Here{Node: &r.Node, Visible: seen}
	for _, c := range here.Assign().Choices {
		if c.Index != gpu || c.NIC == nil {
			continue
		}
		given := slices.IndexFunc(r.Matrix.NICs, func(n topology.NIC) bool { return n.Name() == c.NIC.RDMA })
		if given < 0 || !forGPUs(r, &r.Matrix.NICs[given]) {
			t.Errorf("GPU%d: env gives %s, which is not for GPUs", gpu, c.NIC.RDMA)
		}
		if active == topology.Unknown {
			continue
		}
		if c.Level != active || !slices.Contains(best, given) {
			t.Errorf("GPU%d: env gives %s at %v, want one of %s at %v", gpu, c.NIC.RDMA, c.Level, names(r, best), active)
		}
	}
}

func names(r *report.Report, nics []int) string {
	var all []string
	for _, n := range nics {
		all = append(all, view.NICName(&r.Matrix.NICs[n]))
	}
	return strings.Join(all, " ")
}

func lineOf(text string, gpu int) string {
	_, line, _ := strings.Cut(text, fmt.Sprintf("# GPU%d ", gpu))
	line, _, _ = strings.Cut(line, "\n")
	return line
}

func up(r *report.Report, nic int) bool {
	return verdict.HasActivePort(&r.Matrix.NICs[nic]) == tristate.True
}

// sameLimits compares check --level, --expect, the finding and the summary with the worst level.
func sameLimits(t *testing.T, r *report.Report, dir string, worst topology.Level) {
	t.Helper()
	for _, text := range []string{"PIX", "PXB", "PHB", "NODE", "SYS"} {
		limit, err := topology.ParseLevel(text)
		if err != nil {
			t.Fatal(err)
		}
		want := tristate.Of(worst <= limit)
		if got := r.Within(limit); got != want {
			t.Errorf("within %v: %v, want %v: the worst is at %v", limit, got, want, worst)
		}
		if got := expected(t, dir, "level: "+text); got != want {
			t.Errorf("expected level %v: %v, want %v", limit, got, want)
		}
		for _, rate := range []int{25, 400} {
			if limit != topology.PIX && limit != worst {
				continue
			}
			if got, want := expected(t, dir, fmt.Sprintf("{level: %s, nearest-rate: %d}", text, rate)), oneHasBoth(r, limit, rate); got != want {
				t.Errorf("expected level %v and rate %d: %v, want %v", limit, rate, got, want)
			}
		}
	}
	i := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Check == "level" })
	if i >= 0 && !strings.Contains(r.Findings[i].Detail, worst.String()) {
		t.Errorf("%q, want %v", r.Findings[i].Detail, worst)
	}
}

// expected is what comparing a machine with some expectations gives.
func expected(t *testing.T, dir, expectations string) tristate.State {
	t.Helper()
	if !strings.HasPrefix(expectations, "{") {
		expectations = "{" + expectations + "}"
	}
	file, err := expect.Parse([]byte("types:\n- name: any\n  match: any\n  expect: " + expectations + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	return report.Collect(t.Context(), fs, report.Options{Expect: func() (*expect.File, error) { return file, nil }}).Expected.State
}

// oneHasBoth: each eligible GPU has one NIC for GPUs within a level, none of which is nearer, with
// an active port of a rate.
func oneHasBoth(r *report.Report, limit topology.Level, rate int) tristate.State {
	for gpu := range r.Matrix.GPUs {
		if !r.Matrix.GPUs[gpu].Counts() {
			continue
		}
		level, nics := nearest(r, gpu, func(int) bool { return true })
		fast := func(nic int) bool {
			rdma := r.Matrix.NICs[nic].RDMA
			if rdma == nil {
				return false
			}
			for _, p := range rdma.Ports {
				if p.Active() && p.RateGbps == float64(rate) {
					return true
				}
			}
			return false
		}
		if level > limit || !slices.ContainsFunc(nics, fast) {
			return tristate.False
		}
	}
	return tristate.True
}

// samePorts compares NearPortDown with the ports of the nearest NICs, and counts such GPUs.
func samePorts(t *testing.T, r *report.Report) (count int) {
	t.Helper()
	for gpu := range r.Matrix.GPUs {
		level, _ := nearest(r, gpu, func(int) bool { return true })
		left, nics := nearest(r, gpu, func(nic int) bool { return up(r, nic) })
		if r.Matrix.GPUs[gpu].Counts() && len(nics) > 0 && left > level {
			count++
		}
	}
	found := slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Code == "NearPortDown" })
	if r.Verdict.Capable == tristate.True && r.Judged().Verdict.ActivePort == tristate.True && found != (count > 0) {
		t.Errorf("NearPortDown is found: %v; %d GPUs have a nearer NIC than the active ones", found, count)
	}
	return count
}
