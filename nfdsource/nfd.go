// Package nfdsource lets a custom nfd-worker of Node Feature Discovery compile the
// sources of this program in, next to NFD's own. The worker then publishes as raw
// features, for NodeFeatureRules:
//
//	gdr.node           attributes  every label, its name without prefix
//	gdr.state          attributes  versions and findings of the node
//	gdr.gpu            instances   NVIDIA GPUs
//	gdr.nic            instances   RDMA devices, and eligible NICs without one
//	gdr.pair           instances   every GPU with every NIC, and how near they are
//	gdr-pci.function   instances   every PCI function
//	gdr-rdma.device    instances   every RDMA device
//	gdr-rdma.port      instances   every port of every RDMA device
//	gdr-kmod.state     attributes  drivers and what they can do
//
// and the labels of source gdr as node labels. The part before the dot is the name
// of the source, which the worker adds. A fact that is not known has no
// attribute. Where the object of a node becomes too large, the worker's option
// core.noPublishFeatures leaves "gdr-pci.*" out. Nothing else should publish gdr.*
// for the same node: NFD adds up the instances of all NodeFeature objects.
//
// It is a package of its own because linking NFD's API costs a program 1.4 ms at
// every start, which is much to one that is run as a hook.
package nfdsource

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/internal/features"
	"gdr-features/internal/label"
	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
)

// readLimit is how long one discovery may read. What has not been read by then
// is unknown: a device that does not answer must not block the worker.
const readLimit = 4 * time.Second

// Options says where the machine's files lie; the zero value is the machine itself. NFD's manifests
// mount the node's /sys elsewhere: a worker in a pod sets Sysfs to hostpath.SysfsDir.Path() (NFD,
// pkg/utils/hostpath). Drivers and symbols in /proc are the node's in every pod.
type Options = host.Options

// Sources returns all sources, to be handed to source.Register before the worker runs. The first,
// gdr, is a source of labels too. nicFamilies names the families of NICs to judge by, by default
// those of family.Known. The error is an unknown name, or a directory that cannot be opened.
func Sources(o Options, nicFamilies ...string) ([]source.FeatureSource, error) {
	families := family.Known()
	if len(nicFamilies) > 0 {
		var err error
		if families, err = family.Select(nicFamilies); err != nil {
			return nil, err
		}
	}
	fs, err := host.Open(o)
	if err != nil {
		return nil, err
	}
	return sources(fs, families), nil
}

func sources(fs *host.FS, families family.Table) []source.FeatureSource {
	return []source.FeatureSource{
		&labelSource{featureSource{name: "gdr", read: readNode, fs: fs, families: families}},
		&featureSource{name: "gdr-pci", read: readPCI, fs: fs, families: families}, // NFD has a source pci of its own
		&featureSource{name: "gdr-rdma", read: readRDMA, fs: fs, families: families},
		&featureSource{name: "gdr-kmod", read: readKmod, fs: fs, families: families},
	}
}

var _ source.LabelSource = (*labelSource)(nil)

// featureSource is one source. Its methods may be called from any goroutine.
type featureSource struct {
	name string
	// read reads the machine. Problems are facts that could not be read. An error
	// says that the PCI bus cannot be read, without which nothing is known.
	read     func(context.Context, *host.FS, family.Table) (f *v1alpha1.Features, problems []error, err error)
	fs       *host.FS
	families family.Table
	last     atomic.Pointer[v1alpha1.Features] // what the last discovery found
}

// Name implements source.Source.
func (s *featureSource) Name() string { return s.name }

// Discover implements source.FeatureSource. After an error there are no features.
// Facts that could not be read are no error; they are logged at verbosity 1.
func (s *featureSource) Discover() error {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	f, problems, err := s.read(ctx, s.fs, s.families)
	if err != nil {
		s.last.Store(nil)
		return err
	}
	s.last.Store(f)
	for _, problem := range sanitize.Errors(problems) {
		klog.V(1).InfoS("fact not readable", "featureSource", s.name, "problem", problem)
	}
	return nil
}

// GetFeatures implements source.FeatureSource: what the last Discover found. The
// features are shared and must not be changed.
func (s *featureSource) GetFeatures() *v1alpha1.Features {
	if f := s.last.Load(); f != nil {
		return f
	}
	return v1alpha1.NewFeatures()
}

// labelSource is the source gdr, whose attributes are node labels too.
type labelSource struct{ featureSource }

// GetLabels implements source.LabelSource: the labels that the last Discover found, none without a
// GPU. It never fails. Names have their namespace: the worker would put that of the source before
// any other.
func (s *labelSource) GetLabels() (source.FeatureLabels, error) {
	labels := source.FeatureLabels{}
	for name, value := range s.GetFeatures().Attributes[features.Labels].Elements {
		if label.Ours(name) { // the fingerprint is no label
			labels[label.DefaultPrefix+name] = value
		}
	}
	return labels, nil
}

// Priority implements source.LabelSource. It is that of NFD's own sources: custom rules (10) and
// feature files (20) of an administrator have the last word.
func (s *labelSource) Priority() int { return 0 }
