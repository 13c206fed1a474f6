package findings_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// remedy is a fix that check prints, by words of it. What is a file, a module or a parameter of
// the kernel can be applied to a test machine.
type remedy struct {
	words string // a regular expression
	apply func(m *machine.Machine, s *machine.State, fix string)
	// worse are codes of warnings that it may bring, which say what it costs.
	worse []finding.Code
}

func module(name string) func(*machine.Machine, *machine.State, string) {
	return func(_ *machine.Machine, s *machine.State, _ string) {
		s.Modules = with(s.Modules, name, "live")
	}
}

func with(of map[string]string, key, value string) map[string]string {
	all := map[string]string{key: value}
	for k, v := range of {
		if k != key {
			all[k] = v
		}
	}
	return all
}

func inKernel(c change) func(*machine.Machine, *machine.State, string) {
	return func(_ *machine.Machine, s *machine.State, _ string) { c(s) }
}

func booted(group, line string) func(*machine.Machine, *machine.State, string) {
	return inKernel(all(func(s *machine.State) { s.IOMMU = group }, file("proc/cmdline", line+"\n")))
}

// withoutRedirect clears the redirect bits of the bridges that the fix names, or of all.
func withoutRedirect(m *machine.Machine, _ *machine.State, fix string) {
	m.Functions = slices.Clone(m.Functions)
	for i, f := range m.Functions {
		if f.Attrs["acs"] != "" && (strings.Contains(fix, f.Address) || !strings.Contains(fix, "setpci")) {
			m.Functions[i].Attrs = with(f.Attrs, "acs", "0001")
		}
	}
}

func override(version, value string) func(*machine.Machine, *machine.State, string) {
	return func(m *machine.Machine, s *machine.State, _ string) {
		m.Override = ""
		topoCheck(cmp.Or(version, s.NVIDIA), value)(s)
	}
}

// remedies are those that are applied. The first that matches counts.
var remedies = []remedy{
	{words: `^(by hand: |then |)(chroot /run/nvidia/driver )?modprobe nvidia-peermem`, apply: module("nvidia_peermem"), worse: []finding.Code{"MemoryPeersMissing"}},
	{words: `^modprobe nv_peer_mem`, apply: module("nv_peer_mem"), worse: []finding.Code{"MemoryPeersMissing"}},
	{words: `^set driver.rdma.enabled=true`, apply: module("nvidia_peermem"), worse: []finding.Code{"MemoryPeersMissing"}},
	{words: `boot with iommu=pt`, apply: booted("identity", "iommu=pt")},
	{words: `^boot with iommu.passthrough=1`, apply: booted("identity", "iommu.passthrough=1")},
	{words: `boot with iommu.passthrough=0`, apply: booted("DMA-FQ", "iommu.passthrough=0")},
	{words: `^(or )?use Linux 6.11 or newer`, apply: inKernel(kernel("6.11.0-29-generic"))},
	{words: `ECAP_ACS|disable_acs_redir`, apply: withoutRedirect},
	{words: `^sysctl -w kernel.numa_balancing=0`, apply: inKernel(file(numaBalancing, "0\n"))},
	{words: `^remove NVreg_GrdmaPciTopoCheckOverride=2`, apply: override("", "0")},
	{words: `R580 with NVreg_GrdmaPciTopoCheckOverride=1`, apply: override("580.173.02", "1")},
	{words: `^set options nvidia NVreg_GrdmaPciTopoCheckOverride=1`, apply: override("", "1")},
	{words: `^(or do without: the|install the) open kernel modules( \(GPU| of the GPU driver with DMA-BUF|$)`, apply: inKernel(func(s *machine.State) { s.Open = true }), worse: []finding.Code{"EFADMABufOff"}},
	{words: `^modprobe mlx5_core|^bind such a NIC to mlx5_core|drivers/mlx5_core/bind`, apply: func(m *machine.Machine, s *machine.State, _ string) {
		s.NICDriver = cmp.Or(s.NICDriver, machine.Own)
		boundAll(m, "none")
	}, worse: []finding.Code{"NICWithoutRDMA"}},
	{words: `^modprobe mlx5_ib`, apply: inKernel(func(s *machine.State) { s.NoRDMA = false })},
	{words: `^modprobe nvidia, or wait`, apply: inKernel(func(s *machine.State) {
		s.GPUDriver, s.NVIDIA, s.Open = machine.Own, cmp.Or(s.NVIDIA, "570.86.15"), true
	})},
	{words: `^(then |)modprobe efa_nv_peermem|^or install the EFA installer's packages efa and efa-nv-peermem`, apply: func(_ *machine.Machine, s *machine.State, _ string) {
		s.Attributes = with(s.Attributes, "p2p", "NVIDIA peermem\n")
	}, worse: []finding.Code{"EFAPeermemUnproven", "EFADriverTooOldForR580"}},
	{words: `peerdirect_support=1 in /etc/modprobe.d`, apply: inKernel(file("sys/module/nvidia_peermem/parameters/peerdirect_support", "1\n"))},
	{words: `^or put GPU and NIC into one IOMMU group|^put GPU and NIC into one IOMMU group`, apply: func(m *machine.Machine, _ *machine.State, _ string) { setAttr(m, "group", "1") }},
	{words: `^take the UUIDs of these GPUs out`, apply: inKernel(model("NVIDIA H100"))},
}

// boundAll lets the state say which driver functions have that have none by themselves.
func boundAll(m *machine.Machine, driver string) {
	m.Functions = slices.Clone(m.Functions)
	for i, f := range m.Functions {
		if f.Attrs["driver"] == driver {
			m.Functions[i].Attrs = with(f.Attrs, "driver", "mlx5_core")
		}
	}
}

// setAttr sets an attribute of all GPUs and NICs.
func setAttr(m *machine.Machine, key, value string) {
	m.Functions = slices.Clone(m.Functions)
	for i, f := range m.Functions {
		if f.IsGPU() || f.IsNIC() {
			m.Functions[i].Attrs = with(f.Attrs, key, value)
		}
	}
}

// setting matches fixes that are a file, a parameter or a module: each is applied, whatever else
// it says.
var setting = regexp.MustCompile(`^(or )?(sysctl -w|modprobe|set options|boot with) `)

// notApplied are fixes that no test machine can show, by words, with the reason.
var notApplied = []struct{ words, why string }{
	{`^(or )?see |dmesg|\(see (rdma-device|nic-driver)\)|send it to the maintainers|the finding peermem explains|explain REASON|^if it says|^it says |label gpudirect.rdma.connectx selects|^a new Pod|until the module is loaded|^nvidia-smi -q|^rdma system show|^gdscheck|^GPUDirect RDMA is then up|^the BAR cannot be made larger|the kernel was booted with|^leave it on: it isolates`, "explains, and changes nothing"},
	{`measure|^prove it|^ask it for GPU memory|^see whether a CUDA|all_reduce_perf`, "a transfer, whose result is no file"},
	{`[Rr]ebuild|^install MOFED|^or install MOFED|^install and load MOFED|^or do without: the open kernel modules of the GPU driver with DMA-BUF \(Linux 6.6|install amdgpu-dkms|^use a driver image|^install the GPU driver's|^install netxtreme|^install a newer driver|^install efa|restart the RDMA drivers|reload bnxt_re|^or use the kernel's own driver|^better, move to|a ROCm program|^install the library|^if the log of the driver Pod`, "builds or replaces drivers: what results is a build's, not a file of the fix"},
	{`^(or )?use (Linux 5|a kernel that|an Instinct|a data-center|another instance|aws-ofi-nccl|NCCL|nvidia-peermem|DMA-BUF|a virtual machine)|^install (one of|a ConnectX)|^DMA-BUF needs ConnectX|^install the open kernel modules of the GPU driver, then modprobe efa`, "other hardware, another machine or another release of software"},
	{`NIC below|^or put a NIC that has no IOMMU group below|below one PCIe switch|below one root port|^put GPU and NIC below|[Rr]eseat|cold boot|check the cable|no subnet manager|firmware|bring the port|^pass a whole GPU|^put the node's own network|^put NIC and GPU`, "somebody moves, cables or configures hardware"},
	{`hypervisor|on the hypervisor|enable ATS`, "the hypervisor's owner does it"},
	{`driver\.rdma|useHostMofed|NicClusterPolicy|kubectl logs|kubelet|driver Pod|Network Operator`, "an operator does it, in the cluster"},
	{`^(or )?run (this program |it )?(as root|in |where)|^or run this program|^mount the host|RDMA namespace`, "gives this program more to read, and changes nothing"},
	{`NCCL_|UCX_|--nic-families|topology file|^correct the file|nccl-xml|register small buffers|^until then`, "a variable or an option of a program"},
	{`devlink|^to use the GPUs on this host|^bind such a GPU|end the jobs|unbind|/etc/sysctl.d|rdma_topo|^then reboot|ExcludedGpus|^enable the IOMMU|UNBOUND|turn on Above 4G`, "depends on what the machine's own tools or firmware find"},
}

// deadStates are published combinations in which GPUDirect RDMA fails though each fact by itself is
// right, from facts alone.
var deadStates = []struct {
	name, from string
	is         func(*report.Report) bool
}{
	{"SMMU in passthrough before 6.11 with ACS on", "NVIDIA/nodewright-packages#122", func(r *report.Report) bool {
		old := regexp.MustCompile(`^([1-5]\.|6\.([0-9]|10)\.)`).MatchString(r.Platform.Kernel) && !strings.Contains(r.Platform.Kernel, "-nvidia")
		return r.Platform.CPU.Arch == "arm64" && old && anyGPU(r, func(i int) bool {
			gpu := r.Matrix.GPUs[i]
			return gpu.Coherent() && r.Platform.IOMMU.Types[gpu.IOMMUGroup] == "identity" && r.Verdict.ACS == "redirect"
		})
	}},
	{"a confidential guest", "NVIDIA/nvtrust#109", func(r *report.Report) bool { return r.Platform.Confidential != "" }},
	{"an emulated switch without ATS", "ai-dynamo/dynamo#12463", func(r *report.Report) bool {
		return slices.ContainsFunc(r.PCI.Functions, func(f pci.Function) bool { return f.Vendor == 0x104c && f.Device == 0x8233 }) && slices.Contains(states(r), tristate.False)
	}},
	{"R595, a NIC without IOMMU group and GPU memory by PCIe alone", "NVIDIA/aicr#2459", func(r *report.Report) bool {
		return strings.HasPrefix(r.Kmod.Drivers["nvidia"].Version, "595.9") && r.Verdict.Peermem != tristate.True && r.Verdict.NIC != nil && r.Verdict.NIC.Name == "efa" &&
			anyGPU(r, func(i int) bool {
				gpu := r.Matrix.GPUs[i]
				near := gpu.Near(topology.Hardware).Functions
				return gpu.Coherent() && len(near) > 0 && near[0].IOMMUGroup < 0 && gpu.CommonBridges(near[0]) == 0
			})
	}},
}

func anyGPU(r *report.Report, is func(int) bool) bool {
	for i := range r.Matrix.GPUs {
		if r.Matrix.GPUs[i].Counts() && is(i) {
			return true
		}
	}
	return false
}

// states are what is known of the ATS of the NICs that it matters for.
func states(r *report.Report) (all []tristate.State) {
	for _, s := range r.ATS {
		all = append(all, s)
	}
	return all
}

func dead(r *report.Report) string {
	for _, d := range deadStates {
		if d.is(r) {
			return d.name + " (" + d.from + ")"
		}
	}
	return ""
}

// TestFixClosure: what check advises never leads to a worse state, nor into one that is
// published to be dead, on any machine of these tests. Every fix is in one of two tables.
func TestFixClosure(t *testing.T) {
	tried := map[string]int{}
	for _, c := range append(failures(), testsize.Share(machinesToFix(t))...) {
		if c.noTrace != "" {
			continue
		}
		c.asked = tristate.Unknown
		_, before := c.judge(t, cmp.Or(c.machine, "pair"), c.broken)
		if before.Verdict.Ready == tristate.True && dead(&before) != "" {
			t.Errorf("%s: ready in the state %s", c.name, dead(&before))
		}
		for _, f := range before.Findings {
			for _, fix := range f.Fix {
				r := remedyOf(fix)
				if r == nil {
					if reasonOf(fix) == "" || setting.MatchString(fix) {
						t.Errorf("%s: the fix of %s is in no table of those that are applied: %s", c.name, f.Code, fix)
					}
					continue
				}
				tried[string(f.Code)+": "+r.words]++
				after := c.applied(t, fix, r)
				judgeFix(t, fmt.Sprintf("%s: %s: %s", c.name, f.Code, fix), r, &before, &after)
			}
		}
	}
	for _, name := range slices.Sorted(keys(tried)) {
		t.Logf("%3d times %s", tried[name], name)
	}
	for _, r := range remedies {
		if !slices.ContainsFunc(slices.Collect(keys(tried)), func(name string) bool { return strings.HasSuffix(name, ": "+r.words) }) {
			t.Logf("never printed here: %s", r.words)
		}
	}
}

// machinesToFix are all test machines in states whose fixes change the machine.
func machinesToFix(t *testing.T) (all []failure) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(machinesDir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	old := func(s *machine.State) { inState("iommu-translated")(s); kernel("6.8.0-45-generic")(s) }
	for _, name := range files {
		name = strings.TrimSuffix(filepath.Base(name), ".txt")
		all = append(all, failure{name: name + ", translated, 6.8", machine: name, broken: old})
		if !testing.Short() {
			all = append(all, failure{name: name + ", translated", machine: name, broken: inState("iommu-translated")},
				failure{name: name + ", closed", machine: name, broken: inState("closed-no-peermem")})
		}
	}
	return all
}

func keys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func remedyOf(fix string) *remedy {
	for i := range remedies {
		if regexp.MustCompile(remedies[i].words).MatchString(fix) {
			return &remedies[i]
		}
	}
	return nil
}

func reasonOf(fix string) string {
	for _, n := range notApplied {
		if regexp.MustCompile(n.words).MatchString(fix) {
			return n.why
		}
	}
	return ""
}

// applied judges the machine of a case with a fix.
func (c *failure) applied(t *testing.T, fix string, r *remedy) report.Report {
	t.Helper()
	m, s := *text(t, cmp.Or(c.machine, "pair")), ready(t)
	if c.broken != nil {
		c.broken(&s)
	}
	r.apply(&m, &s, fix)
	return c.judged(t, m.Tree(t, s))
}

// judgeFix compares a machine before and after a fix.
func judgeFix(t *testing.T, what string, r *remedy, before, after *report.Report) {
	t.Helper()
	if rank(after.Verdict.Ready) < rank(before.Verdict.Ready) {
		t.Errorf("%s: ready was %v and is %v (%s)", what, before.Verdict.Ready, after.Verdict.Ready, after.Verdict.Reason)
	}
	if after.Verdict.Capable != before.Verdict.Capable {
		t.Errorf("%s: capable was %v and is %v", what, before.Verdict.Capable, after.Verdict.Capable)
	}
	if name := dead(after); name != "" && dead(before) != name {
		t.Errorf("%s: leads into %s", what, name)
	}
	for _, f := range after.Findings {
		known := func(old finding.Finding) bool {
			return old.Code == f.Code || old.Check == f.Check && old.Status == f.Status
		}
		if (f.Status == finding.StatusFail || f.Status == finding.StatusWarn) && !slices.ContainsFunc(before.Findings, known) && !slices.Contains(r.worse, f.Code) && !laterStep(before, f.Check) {
			t.Errorf("%s: brings %s %s: %s", what, f.Status, f.Code, f.Detail)
		}
	}
}

// laterStep: the check was not reached before, as a prerequisite before it was missing.
func laterStep(before *report.Report, _ string) bool {
	return before.Verdict.Ready == tristate.False && before.Verdict.Reason != verdict.NoPeerMemoryPath && before.Verdict.Reason != verdict.PeermemNotLoaded
}

func rank(s tristate.State) int {
	switch s {
	case tristate.True:
		return 2
	case tristate.Unknown:
		return 1
	case tristate.False:
	}
	return 0
}
