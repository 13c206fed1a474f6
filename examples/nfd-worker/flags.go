package main

import (
	"flag"
	"fmt"
	"os"

	"sigs.k8s.io/node-feature-discovery/pkg/features"
	worker "sigs.k8s.io/node-feature-discovery/pkg/nfd-worker"
	"sigs.k8s.io/node-feature-discovery/pkg/utils"
	klogutils "sigs.k8s.io/node-feature-discovery/pkg/utils/klog"
)

// program is what NFD calls its worker.
const program = "nfd-worker"

// parse reads the command line and ends the process where it is wrong. The flags
// and their texts are those of NFD 0.19 (cmd/nfd-worker/main.go, Apache-2.0),
// which cannot be imported; a test compares them.
func parse(osArgs []string) (args *worker.Args, printVersion bool) {
	flags := flag.NewFlagSet(program, flag.ExitOnError)
	flags.BoolVar(&printVersion, "version", false, "Print version and exit.")
	features.NFDMutableFeatureGate.AddFlag(flags)
	args, overrides := initFlags(flags)
	_ = flags.Parse(osArgs) // ends the process itself
	if flags.NArg() > 0 {
		fmt.Fprintf(flags.Output(), "unknown command line argument: %s\n", flags.Arg(0))
		flags.Usage()
		os.Exit(2)
	}
	flags.Visit(func(f *flag.Flag) { override(&args.Overrides, overrides, f.Name) })
	return args, printVersion
}

// override takes over a flag that was given and that the configuration file knows
// too.
func override(to, from *worker.ConfigOverrideArgs, name string) {
	switch name {
	case "no-publish":
		to.NoPublish = from.NoPublish
	case "feature-sources":
		to.FeatureSources = from.FeatureSources
	case "label-sources":
		to.LabelSources = from.LabelSources
	case "no-publish-features":
		to.NoPublishFeatures = from.NoPublishFeatures
	case "no-owner-refs":
		to.NoOwnerRefs = from.NoOwnerRefs
	case "owner-refs":
		to.OwnerRefs = from.OwnerRefs
	}
}

func initFlags(flags *flag.FlagSet) (*worker.Args, *worker.ConfigOverrideArgs) {
	args := &worker.Args{}
	flags.StringVar(&args.ConfigFile, "config", "/etc/kubernetes/node-feature-discovery/nfd-worker.conf",
		"Config file to use.")
	flags.StringVar(&args.Kubeconfig, "kubeconfig", "",
		"Kubeconfig to use")
	flags.BoolVar(&args.Oneshot, "oneshot", false,
		"Do not publish feature labels")
	flags.IntVar(&args.Port, "port", 8080,
		"Port on which to metrics and healthz endpoints are served")
	flags.StringVar(&args.Options, "options", "",
		"Specify config options from command line. Config options are specified "+
			"in the same format as in the config file (i.e. json or yaml). These options")
	args.Klog = klogutils.InitKlogFlags(flags)

	overrides := &worker.ConfigOverrideArgs{
		FeatureSources:    &utils.StringSliceVal{},
		LabelSources:      &utils.StringSliceVal{},
		NoPublishFeatures: &utils.StringSliceVal{},
		OwnerRefs:         &worker.OwnerRefSources{"pod", "ds"},
	}
	overrides.NoPublish = flags.Bool("no-publish", false,
		"Do not publish discovered features, disable connection to nfd-master and don't create NodeFeature object.")
	overrides.NoOwnerRefs = flags.Bool("no-owner-refs", false,
		"Do not set owner references for NodeFeature object (deprecated: use -owner-refs=).")
	flags.Var(overrides.OwnerRefs, "owner-refs",
		"Comma separated list of NodeFeature owner reference sources: node, pod, ds. An empty value disables owner references.")
	flags.Var(overrides.FeatureSources, "feature-sources",
		"Comma separated list of feature sources. Special value 'all' enables all sources. "+
			"Prefix the source name with '-' to disable it.")
	flags.Var(overrides.LabelSources, "label-sources",
		"Comma separated list of label sources. Special value 'all' enables all sources. "+
			"Prefix the source name with '-' to disable it.")
	flags.Var(overrides.NoPublishFeatures, "no-publish-features",
		"Comma separated list of feature keys to discover but omit from the published "+
			"NodeFeature object (e.g. 'pci.device'). Suffix a key with '*' for a prefix "+
			"match (e.g. 'pci.*'). Reduces object size; only use for features that no "+
			"NodeFeatureRule or NodeFeatureGroup consumes.")
	return args, overrides
}
