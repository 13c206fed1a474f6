package nfdsource

import (
	"context"
	"fmt"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/label/derive"
	"gdr-features/source/kmod"
)

// Kmod is the source of raw features about the drivers and what they can do,
// from /sys/module, /proc/driver/nvidia and /proc/kallsyms. Its feature is
// "state".
type Kmod struct{ base }

var _ source.FeatureSource = (*Kmod)(nil)

// NewKmod gives the source gdr-kmod.
func NewKmod(fs *host.FS) *Kmod { return &Kmod{base{name: "gdr-kmod", fs: fs}} }

// Discover reads the state of the drivers. It never fails.
func (s *Kmod) Discover() error {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	st, err := deadline.Start(func() (kmod.State, error) {
		return kmod.Scan(s.fs, kmod.Request{AllSymbols: true}), nil
	})(ctx)
	if err != nil {
		st.Problems = append(st.Problems, fmt.Errorf("modules and symbols: %w", err))
	}
	f := v1alpha1.NewFeatures()
	f.Attributes["state"] = v1alpha1.NewAttributeFeatures(drivers(&st))
	s.keep(f, st.Problems)
	return nil
}

// drivers gives the state of the drivers. Facts are "true" or "false":
//   - driverLoaded, driverOpen and driverVersion of the NVIDIA GPU driver;
//   - peermem, a peer memory client for GPU memory is registered; peermemBy, the
//     evidence; peermemModule, the state of nvidia_peermem ("live", "absent");
//   - symbolPeerMemory and symbolPeerMemoryOwner, symbolUmemDMABuf and
//     symbolMLX5DMABuf: what the running kernel can do;
//   - peerdirect and mofed, as the labels of these names; storage, nvidia-fs is
//     loaded; virtual and virtualBy, a hypervisor and the evidence.
func drivers(st *kmod.State) attrs {
	a := attrs{}
	a.state("driverLoaded", st.Driver.Loaded)
	a.state("driverOpen", st.Driver.Open)
	a.text("driverVersion", st.Driver.Version)
	a.state("peermem", st.Peermem)
	a.text("peermemBy", st.PeermemBy)
	a.text("peermemModule", string(st.PeermemModule))
	a.state("symbolPeerMemory", st.Symbols.PeerMemory)
	a.text("symbolPeerMemoryOwner", st.Symbols.PeerMemoryOwner)
	a.state("symbolUmemDMABuf", st.Symbols.UmemDMABuf)
	a.state("symbolMLX5DMABuf", st.Symbols.MLX5DMABuf)
	a.text("peerdirect", string(st.Stack.PeerDirect))
	a.text("mofed", derive.MOFED(st.Stack.MOFED))
	a.state("storage", st.Storage)
	a.state("virtual", st.Virtual)
	a.text("virtualBy", st.VirtualBy)
	return a
}
