// Command nfd-worker is NFD's worker with the sources of gdr-features beside
// NFD's own. Flags, configuration and manifests are those of NFD's worker.
package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/klog/v2"
	"sigs.k8s.io/node-feature-discovery/pkg/features"
	worker "sigs.k8s.io/node-feature-discovery/pkg/nfd-worker"
	"sigs.k8s.io/node-feature-discovery/pkg/utils/hostpath"
	"sigs.k8s.io/node-feature-discovery/pkg/version"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/nfdsource"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		klog.ErrorS(err, "nfd-worker ended")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func run(osArgs []string) error {
	if err := features.NFDMutableFeatureGate.Add(features.DefaultNFDFeatureGates); err != nil {
		return fmt.Errorf("adding feature gates: %w", err)
	}
	args, printVersion := parse(osArgs)
	if printVersion {
		_, err := fmt.Fprintln(os.Stdout, program, version.Get())
		return err
	}
	if err := register(); err != nil {
		return err
	}
	w, err := worker.NewNfdWorker(worker.WithArgs(args))
	if err != nil {
		return fmt.Errorf("making the worker: %w", err)
	}
	return w.Run()
}

// register adds our sources to those that NFD's worker brings along. Their names
// begin with gdr, as no source of NFD does: NFD panics where a name is taken.
//
// /sys is where NFD's manifests mount the node's. /proc is the container's own,
// which shows drivers and kernel symbols as the node's does;
// GDR_FEATURES_PROCFS names another. GDR_FEATURES_NIC_FAMILIES is a list of the families
// of NICs to judge nodes by.
func register() error {
	comma := func(r rune) bool { return r == ',' }
	sources, err := nfdsource.Sources(nfdsource.Options{
		Sysfs:  hostpath.SysfsDir.Path(),
		Procfs: os.Getenv("GDR_FEATURES_PROCFS"),
	}, strings.FieldsFunc(os.Getenv("GDR_FEATURES_NIC_FAMILIES"), comma)...)
	if err != nil {
		return fmt.Errorf("sources of gdr-features: %w", err)
	}
	for _, s := range sources {
		source.Register(s)
	}
	return nil
}
