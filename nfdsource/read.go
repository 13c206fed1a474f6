package nfdsource

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/features"
	"gdr-features/internal/report"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/pci/names"
	"gdr-features/source/rdma"
)

// readNode reads and judges the whole machine.
func readNode(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	r := report.Collect(ctx, fs, report.Options{Extra: report.ForPublishing.Extra, Families: families})
	if !r.PCIRead {
		return nil, nil, errors.Join(r.Problems...)
	}
	return features.Node(&r, ""), r.Problems, nil
}

// readPCI reads the PCI functions and their tree, from /sys/bus/pci/devices.
func readPCI(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	inv, err := scanPCI(ctx, fs, families, pci.EveryFunction|pci.Capabilities)
	if err != nil {
		return nil, nil, err
	}
	return features.PCI(inv.Functions, names.Read(ctx, fs)), inv.Problems, nil
}

// readRDMA reads the RDMA devices, from /sys/class/infiniband. Which ports must be
// left alone is known from the PCI bus.
func readRDMA(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	functions, err := scanPCI(ctx, fs, families, 0)
	if err != nil {
		return nil, nil, err
	}
	inv, err := deadline.Async(func() (rdma.Inventory, error) {
		return rdma.Scan(ctx, fs, &functions, rdma.SoftwareDevices|rdma.PhysicalStates|rdma.Details), nil
	})(ctx)
	if err != nil {
		inv.Problems = append(inv.Problems, fmt.Errorf("RDMA devices: %w", err))
	}
	return features.RDMA(inv.Devices), inv.Problems, nil
}

// readKmod reads the drivers and what they can do, from /sys/module,
// /proc/driver/nvidia and /proc/kallsyms. It never fails.
func readKmod(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	state, err := deadline.Async(func() (kmod.State, error) {
		return kmod.Scan(fs, kmod.Request{Families: families}), nil
	})(ctx)
	if err != nil {
		state.Problems = append(state.Problems, fmt.Errorf("modules and symbols: %w", err))
	}
	return features.Kmod(&state, families), state.Problems, nil
}

func scanPCI(ctx context.Context, fs *host.FS, families family.Table, facts pci.Want) (pci.Inventory, error) {
	inv, err := deadline.Async(func() (pci.Inventory, error) { return pci.Scan(fs, families, facts) })(ctx)
	if errors.Is(err, deadline.ErrTimeout) {
		err = fmt.Errorf("PCI bus: %w", err)
	}
	return inv, err
}
