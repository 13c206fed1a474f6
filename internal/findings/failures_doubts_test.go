package findings_test

import (
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

// grace is a GPU that shares memory with its CPU below a root port of its own, with ACS as
// the platform needs it. The NIC is elsewhere.
const grace = `arm
pci0008:00 numa=0
  0008:00:00.0 port 10de:22b1 acs=001d
    0008:06:00.0 gpu 10de:2941
pci0000:00 numa=0
  0000:00:00.0 port 10de:22b1 acs=001d
    0000:03:00.0 ib 15b3:1021 rdma=mlx5_0
`

// qemu is a GPU and a NIC that were passed through to a virtual machine below a switch that
// QEMU emulates. The NIC has ATS, and it is off.
const qemu = `virtual
pci0000:64 numa=0
  0000:64:00.0 port 1b36:000c acs=0000
    0000:65:00.0 switch 104c:8232
      0000:66:00.0 port 104c:8233 acs=0000
        0000:67:00.0 ib 15b3:1021 rdma=mlx5_0 ats=off
      0000:66:01.0 port 104c:8233 acs=0000
        0000:68:00.0 gpu 10de:2335
`

// doubtTexts are machines in states of verdict.Doubt, and beside them.
func doubtTexts() map[string]string {
	return map[string]string{
		"grace": grace, "grace without ACS": strings.ReplaceAll(grace, " acs=001d", " acs=0000"),
		"grace with unreadable ACS": strings.ReplaceAll(grace, " acs=001d", " acs=denied"),
		"qemu":                      qemu, "qemu with ATS": strings.Replace(qemu, "ats=off", "ats=on", 1),
		"qemu without the capability": strings.Replace(qemu, "ats=off", "ats=none", 1),
		"qemu, not readable":          strings.Replace(qemu, " ats=off", "", 1),
		"qemu on EC2":                 "dmi Amazon EC2 | p5.48xlarge\n" + qemu,
		"qemu, NIC elsewhere":         strings.Replace(qemu, "        0000:67:00.0 ib 15b3:1021 rdma=mlx5_0 ats=off\n", "", 1) + "  0000:64:01.0 port 1b36:000c acs=0000\n    0000:69:00.0 ib 15b3:1021 rdma=mlx5_0 ats=off\n",
		"real switch in a guest":      strings.NewReplacer("1b36:000c", "8086:352a", "104c:8232", "1000:c030", "104c:8233", "1000:c030").Replace(qemu),
		"TI's switch on bare metal":   strings.NewReplacer("virtual\n", "", "1b36:000c", "8086:352a").Replace(qemu),
	}
}

const cpuinfo = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu vme hypervisor"

// cpuFlags is a CPU of a virtual machine with further flags.
func cpuFlags(flags string) change { return file("proc/cpuinfo", cpuinfo+flags+"\n\n") }

func kernel(release string) change { return file("proc/sys/kernel/osrelease", release+"\n") }

// doubtFailures are those in which every prerequisite is met.
func doubtFailures() []failure {
	const (
		nvtrust  = github + "NVIDIA/nvtrust/issues/109"
		smmu     = github + "NVIDIA/nodewright-packages/pull/122"
		emulated = github + "ai-dynamo/dynamo/issues/12463"
	)
	translates := inState("iommu-translated")
	return []failure{
		{name: "a TDX guest, with peermem", from: nvtrust, machine: "guest", broken: cpuFlags(" tdx_guest"), code: "ConfidentialGuest", fixed: cpuFlags(""), fix: "ib_write_bw"},
		{name: "a TDX guest, by DMA-BUF alone", from: nvtrust, machine: "guest", broken: all(unloaded, cpuFlags(" tdx_guest")), code: "ConfidentialGuest", fixed: cpuFlags(""), fix: "transfer"},
		{name: "an SEV-SNP guest, by its CPU", from: nvtrust, machine: "guest", broken: cpuFlags(" sev sev_es sev_snp"), code: "ConfidentialGuest", fixed: cpuFlags("")},
		{name: "an SEV-SNP guest, by its device", from: nvtrust, machine: "guest", broken: file("sys/class/misc/sev-guest/dev", "10:125\n"), code: "ConfidentialGuest", fixedOn: "pair", fixed: inState("ready")},
		{name: "an SMMU in passthrough before 6.11", from: smmu, machine: "grace", broken: kernel("6.8.0-1028-generic-64k"), code: "SMMUPassthrough", fixed: translates, fix: "boot with iommu.passthrough=0"},
		{name: "an SMMU in passthrough, with a newer kernel", from: smmu, machine: "grace", broken: kernel("6.10.14"), code: "SMMUPassthrough", fixed: kernel("6.11.0-29-generic"), fix: "or use Linux 6.11"},
		{name: "an SMMU in passthrough, on NVIDIA's kernel", from: github + "NVIDIA/NV-Kernels/pull/22", machine: "grace", broken: kernel("6.8.0-1028-nvidia-64k"), code: "SMMUPassthrough", fixed: translates, fix: "see whether a CUDA program runs"},
		{name: "an SMMU in passthrough, without ACS", from: smmu, machine: "grace", broken: kernel("6.8.0-45-generic"), code: "SMMUPassthrough", fixedOn: "grace without ACS"},
		{name: "an SMMU in passthrough, ACS unreadable", from: smmu, machine: "grace with unreadable ACS", broken: kernel("6.8.0-45-generic"), code: "SMMUPassthrough", fixedOn: "grace without ACS", fix: "as root"},
		{name: "below an emulated switch, ATS off", from: emulated, machine: "qemu", code: "EmulatedSwitch", fixedOn: "qemu with ATS", fix: "enable ATS"},
		{name: "below an emulated switch, no ATS", from: emulated, machine: "qemu without the capability", code: "EmulatedSwitch", fixedOn: "qemu with ATS", fix: "enable ATS"},
		{name: "below an emulated switch, ATS unreadable", from: emulated, machine: "qemu, not readable", code: "EmulatedSwitch", fixedOn: "qemu with ATS", fix: "as root"},
		{name: "below an emulated switch, on a cloud that works", from: emulated, machine: "qemu", code: "EmulatedSwitch", fixedOn: "qemu on EC2"},
		{name: "below another emulated root port", from: emulated, machine: "qemu", code: "EmulatedSwitch", fixedOn: "qemu, NIC elsewhere"},
		{name: "below a real switch in a guest", from: emulated, machine: "qemu", code: "EmulatedSwitch", fixedOn: "real switch in a guest"},
		{name: "TI's switch on bare metal", from: emulated, machine: "qemu", code: "EmulatedSwitch", fixedOn: "TI's switch on bare metal"},
	}
}

// TestDoubts: what the states of verdict.Doubt make of readiness and of the checks.
func TestDoubts(t *testing.T) {
	snp := file("sys/devices/platform/sev-guest/uevent", "")
	for _, c := range []struct {
		name, machine string
		state         change
		ready         tristate.State
		check         string
		status        finding.Status
		code          finding.Code
	}{
		{"no confidential guest", "guest", cpuFlags(""), tristate.True, "dmabuf", finding.StatusOK, ""},
		{"TDX", "guest", cpuFlags(" tdx_guest"), tristate.Unknown, "dmabuf", finding.StatusUnknown, "ConfidentialGuest"},
		{"SEV-SNP by a device", "guest", snp, tristate.Unknown, "peermem", finding.StatusUnknown, "ConfidentialGuest"},
		{"a host that can have SEV-SNP guests", "pair", file("proc/cpuinfo", strings.Replace(cpuinfo, " hypervisor", " sev_snp", 1)+"\n\n"), tristate.True, "dmabuf", finding.StatusOK, ""},
		{"a confidential guest without drivers", "guest", all(noDriver, unloaded, cpuFlags(" tdx_guest")), tristate.False, "gpu-driver", finding.StatusFail, "GPUDriverNotLoaded"},
		{"identity before 6.11", "grace", kernel("6.8.0-45-generic"), tristate.Unknown, "iommu", finding.StatusUnknown, "SMMUPassthrough"},
		{"identity, NVIDIA's kernel", "grace", kernel("6.8.0-1028-nvidia-64k"), tristate.True, "iommu", finding.StatusWarn, "SMMUPassthrough"},
		{"identity, 6.11", "grace", kernel("6.11.0-29-generic"), tristate.True, "iommu", finding.StatusOK, ""},
		{"identity, 7.0", "grace", kernel("7.0.0"), tristate.True, "iommu", finding.StatusOK, ""},
		{"identity, garbage for a kernel", "grace", kernel("garbage"), tristate.Unknown, "iommu", finding.StatusUnknown, "SMMUPassthrough"},
		{"identity, ACS unreadable", "grace with unreadable ACS", kernel("6.8.0-45-generic"), tristate.Unknown, "iommu", finding.StatusUnknown, "SMMUPassthrough"},
		{"identity, no ACS", "grace without ACS", kernel("6.8.0-45-generic"), tristate.True, "iommu", finding.StatusOK, ""},
		{"no IOMMU", "grace", all(inState("iommu-off"), kernel("6.8.0-45-generic")), tristate.True, "iommu", finding.StatusOK, ""},
		{"translated before 6.11", "grace", all(inState("iommu-translated"), kernel("6.8.0-1028-nvidia-64k")), tristate.True, "iommu", finding.StatusOK, ""},
		{"translated before 6.11, ACS unreadable", "grace with unreadable ACS", all(inState("iommu-translated"), kernel("6.8.0-45-generic")), tristate.True, "iommu", finding.StatusOK, ""},
		{"translated beside ACS", "grace", all(inState("iommu-translated"), kernel("6.14.0")), tristate.True, "iommu", finding.StatusOK, ""},
		{"translated on x86", "pair", inState("iommu-translated"), tristate.True, "iommu", finding.StatusWarn, "IOMMUTranslated"},
		{"ATS off", "qemu", nil, tristate.Unknown, "acs", finding.StatusUnknown, "EmulatedSwitch"},
		{"no ATS", "qemu without the capability", nil, tristate.Unknown, "acs", finding.StatusUnknown, "EmulatedSwitch"},
		{"ATS unreadable", "qemu, not readable", nil, tristate.True, "acs", finding.StatusWarn, "EmulatedSwitch"},
		{"ATS on", "qemu with ATS", nil, tristate.True, "acs", finding.StatusUnknown, "ACSUnreadable"},
		{"not below one switch", "qemu, NIC elsewhere", nil, tristate.True, "acs", finding.StatusUnknown, "ACSUnreadable"},
		{"a real switch", "real switch in a guest", nil, tristate.True, "acs", finding.StatusOK, ""},
		{"bare metal", "TI's switch on bare metal", nil, tristate.True, "acs", finding.StatusOK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := doubted(t, c.machine, c.state)
			if r.Verdict.Ready != c.ready {
				t.Errorf("ready %v, want %v", r.Verdict.Ready, c.ready)
			}
			if r.Verdict.Capable != tristate.True {
				t.Errorf("capable %v", r.Verdict.Capable)
			}
			for _, f := range r.Findings {
				if f.Check == c.check && (f.Status != c.status || f.Code != c.code) {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestStorageOnGrace: GPUDirect Storage is not a reason to boot into a state without CUDA.
func TestStorageOnGrace(t *testing.T) {
	withStorage := func(s *machine.State) { s.Modules["nvidia_fs"] = "live" }
	for _, f := range doubted(t, "grace", all(inState("iommu-translated"), withStorage, kernel("6.8.0-45-generic"))).Findings {
		if f.Code == "StorageIOMMU" && !strings.HasPrefix(f.FixText(), "use Linux 6.11 or newer") {
			t.Errorf("%+v", f)
		}
	}
}
