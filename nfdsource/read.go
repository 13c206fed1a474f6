package nfdsource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/features"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/pci/names"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
)

// readNode reads and judges the whole machine.
func readNode(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	r := report.Collect(ctx, fs, report.Options{What: report.ForPublishing.What, Families: families})
	if !r.PCIRead {
		return nil, nil, errors.Join(r.Problems...)
	}
	f := features.Node(&r, "")
	f.Attributes[features.Labels] = features.LabelsOf(&r, r.Labels)
	return f, r.Problems, nil
}

// readPCI reads the PCI functions and their tree, from /sys/bus/pci/devices. Names from the
// machine's pci.ids take precedence over our own.
func readPCI(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	inv, err := scanPCI(ctx, fs, families, source.What{Details: true})
	if err != nil {
		return nil, nil, err
	}
	listed := names.Read(ctx, fs)
	f := v1alpha1.NewFeatures()
	f.Instances["function"] = features.Instances(inv.Functions, func(fn *pci.Function) features.Attrs {
		a := function(fn)
		a.Text("name", listed[fn.Address])
		return a
	})
	return f, inv.Problems, nil
}

// readRDMA reads the RDMA devices, from /sys/class/infiniband. Which ports must be
// left alone is known from the PCI bus.
func readRDMA(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	functions, err := scanPCI(ctx, fs, families, source.What{})
	if err != nil {
		return nil, nil, err
	}
	inv, err := deadline.Async(func() (rdma.Inventory, error) {
		return rdma.Scan(ctx, fs, &functions, source.What{Advice: true, Details: true}), nil
	})(ctx)
	if err != nil {
		inv.Problems = append(inv.Problems, fmt.Errorf("RDMA devices: %w", err))
	}
	f := v1alpha1.NewFeatures()
	f.Instances["device"] = features.Instances(inv.Devices, device)
	f.Instances["port"] = ports(inv.Devices)
	return f, inv.Problems, nil
}

// readKmod reads the drivers and what they can do, from /sys/module,
// /proc/driver/nvidia and /proc/kallsyms. It never fails.
func readKmod(ctx context.Context, fs *host.FS, families family.Table) (*v1alpha1.Features, []error, error) {
	type states struct {
		kmod   kmod.State
		system platform.State
	}
	got, err := deadline.Async(func() (states, error) {
		var functions pci.Inventory // whatever is there, all families are read
		system := platform.Read(fs, platform.ReadDMI(fs), &functions, source.What{})
		return states{kmod.Scan(fs, &functions, families, source.What{}), system}, nil
	})(ctx)
	problems := slices.Concat(got.kmod.Problems, got.system.Problems)
	if err != nil {
		problems = []error{fmt.Errorf("modules and symbols: %w", err)}
	}
	f := v1alpha1.NewFeatures()
	f.Attributes["state"] = v1alpha1.NewAttributeFeatures(drivers(&got.kmod, &got.system, families))
	return f, problems, nil
}

func scanPCI(ctx context.Context, fs *host.FS, families family.Table, what source.What) (pci.Inventory, error) {
	inv, err := deadline.Async(func() (pci.Inventory, error) { return pci.Scan(fs, families, what) })(ctx)
	if errors.Is(err, deadline.ErrTimeout) {
		err = fmt.Errorf("PCI bus: %w", err)
	}
	return inv, err
}
