package findings_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/test/machine"
)

// TestFixes: what is advised can work on the machine at hand.
func TestFixes(t *testing.T) {
	mlx4 := func(s *machine.State) { s.NICDriver = "mlx4_core" }
	passed := func(s *machine.State) { s.NICDriver = "vfio-pci" }
	holds := file("sys/module/ib_uverbs/holders/nvidia_peermem/x", "")
	notLoaded := all(proprietary, unloaded)
	for _, c := range []struct {
		name, machine string
		state         change
		check         string
		code          finding.Code
		fix, never    string
	}{
		{"nouveau has the GPUs", "", inState("nouveau"), "gpu-driver", "GPUDriverNotLoaded", "blacklist nouveau", ""},
		{"nvidia took none", "", func(s *machine.State) { s.GPUDriver = "" }, "gpu-driver", "GPUDriverNotLoaded", "NVRM", "modprobe"},
		{"nvidia took none, DMA-BUF", "", all(unloaded, func(s *machine.State) { s.GPUDriver = "" }), "dmabuf", "GPUDriverNotLoaded", "see gpu-driver", "peermem"},
		{"NICs of virtual machines", "", passed, "nic-driver", "NICDriverNotLoaded", "vfio", "modprobe"},
		{"NICs of virtual machines, and peermem", "", all(passed, holds), "modules", "", "", ""},
		{"NICs without driver, and peermem", "", all(noNIC, holds), "modules", "OFEDReloadBlocked", "modprobe -r", ""},
		{"ConnectX-3 without driver", "mlx4", noNIC, "nic-driver", "NICDriverNotLoaded", "modprobe mlx4_core", "mlx5"},
		{"ConnectX-3 without RDMA device", "mlx4", all(inState("no-rdma"), mlx4), "rdma-device", "NoRDMADevice", "modprobe mlx4_ib", "devlink"},
		{"no driver, no RDMA device", "", noNIC, "rdma-device", "NoRDMADevice", "see nic-driver", "modprobe"},
		{"ConnectX-3 has no DMA-BUF", "mlx4", all(notLoaded, mlx4), "dmabuf", "NoMLX5Device", "ConnectX-4", "open"},
		{"ConnectX-3 has no DMA-BUF instead of peermem", "mlx4", all(notLoaded, mlx4, inbox), "peermem", "NoPeerMemoryPath", "MOFED", "DMA-BUF"},
		{"no open driver for old GPUs", "old GPUs", notLoaded, "dmabuf", "PreTuring", "nvidia-peermem", "open"},
		{"nv_peer_mem alone is installed", "", all(notLoaded, symbols(true, "ib_core"), onDisk("", legacyCore)), "peermem", "PeermemNotLoaded", "modprobe nv_peer_mem", "modprobe nvidia-peermem"},
		{"a new driver Pod keeps a stub", "", all(notLoaded, driverCtr("true"), mofedIsUp, onDisk(driverRoot, stub)), "peermem", "PeermemStub", "drain this node and reboot it", "delete"},
		{"a new driver Pod keeps a module of another stack", "", all(notLoaded, driverCtr("true"), mofedIsUp, symbols(true, "ib_core"), onDisk("", forUverbs)), "peermem", "PeermemSymbolMismatch", "FORCE_REINSTALL=true", "delete"},
		{"a new driver Pod installs user space only", "", all(notLoaded, driverCtr("true"), mofedIsUp, onDisk(driverRoot, "")), "peermem", "PeermemNotInstalled", "drain this node and reboot it", "delete"},
		{"the kubelet restarts the sidecar", "", all(notLoaded, driverCtr("true"), mofedIsUp), "operators", "PeermemSidecar", "the kubelet restarts the container", "delete the Pod"},
		{"the module is in the driver container", "", all(notLoaded, driverCtr("false")), "peermem", "PeermemNotLoaded", "chroot /run/nvidia/driver modprobe nvidia-peermem", "by hand: modprobe"},
		{"a ConfigMap of module parameters has no options line", "", all(inState("mofed-4.9"), proprietary), "rdma-stack", "LegacyPeerDirect", "the line peerdirect_support=1 alone", ""},
		{"nv_peer_mem is not of the GPU driver", "", all(notLoaded, onDisk("", legacyCore)), "peermem", "PeermemSymbolMismatch", "rebuild nv_peer_mem", "dkms build"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure{}
			_, list := f.findings(t, cmp.Or(c.machine, "pair"), c.state)
			i := slices.IndexFunc(list, func(f finding.Finding) bool { return f.Check == c.check })
			if c.code == "" {
				if i >= 0 {
					t.Errorf("%+v", list[i])
				}
				return
			}
			if i < 0 {
				t.Fatalf("no %s among %+v", c.check, list)
			}
			if f := list[i]; f.Code != c.code || !strings.Contains(f.FixText(), c.fix) || c.never != "" && strings.Contains(f.FixText(), c.never) {
				t.Errorf("%+v", f)
			}
		})
	}
}
