// Package nfd is the face of the sources towards Node Feature Discovery: it lets
// a custom nfd-worker compile them in, next to NFD's own. The worker then
// publishes as raw features, for NodeFeatureRules:
//
//	gdr.node           attributes  every label, its name without prefix
//	gdr.gpu            instances   NVIDIA GPUs
//	gdr.nic            instances   RDMA devices, and eligible adapters without one
//	gdr.pair           instances   every GPU with every NIC, and how near they are
//	gdr-pci.function   instances   every PCI function
//	gdr-rdma.device    instances   every RDMA device
//	gdr-rdma.port      instances   every port of every RDMA device
//	gdr-kmod.state     attributes  drivers and what they can do
//
// and the labels of source gdr as node labels. What precedes the dot is the name
// of the source, which the worker adds. A fact that is not known has no
// attribute. Where the object of a node becomes too large, the worker's option
// core.noPublishFeatures leaves "gdr-pci.*" out. Nobody else should publish gdr.*
// for the same node: NFD adds the instances of all NodeFeature objects up.
//
// It is a package of its own because linking NFD's API costs a program 1.4 ms at
// every start, which is much to one that is run as a hook.
package nfdsource

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/source/pci"
)

// readLimit is how long one discovery may read. What has not been read by then
// is unknown: a sick device must not hold the worker up.
const readLimit = 4 * time.Second

// Options says where the machine's files lie. The zero value is the machine
// itself. NFD's own manifests mount the node's /sys elsewhere, so a worker in a
// pod sets Sysfs to hostpath.SysfsDir.Path() (NFD, pkg/utils/hostpath); drivers
// and symbols in /proc are the node's in every pod.
type Options = host.Options

// Sources gives all sources, to be handed to source.Register one by one before
// the worker runs. The error tells that a directory cannot be opened.
func Sources(o Options) ([]source.FeatureSource, error) {
	fs, err := host.Open(o)
	if err != nil {
		return nil, err
	}
	return []source.FeatureSource{NewNode(fs), NewPCI(fs), NewRDMA(fs), NewKmod(fs)}, nil
}

// base is what every source has: its name, the machine's files, and what the
// last discovery found. Its methods may be called from any goroutine.
type base struct {
	name string
	fs   *host.FS
	last atomic.Pointer[v1alpha1.Features]
}

// Name implements source.Source.
func (b *base) Name() string { return b.name }

// GetFeatures gives what the last Discover found, nothing before the first and
// after one that failed. The features are shared: nobody may change them.
func (b *base) GetFeatures() *v1alpha1.Features {
	if f := b.last.Load(); f != nil {
		return f
	}
	return v1alpha1.NewFeatures()
}

// keep takes over what a discovery found. Facts that could not be read are no
// failure and are logged at verbosity 1.
func (b *base) keep(f *v1alpha1.Features, problems []error) {
	b.last.Store(f)
	for _, problem := range problems {
		klog.V(1).InfoS("fact not readable", "featureSource", b.name, "problem", problem)
	}
}

// failed forgets what was found before and gives err back.
func (b *base) failed(err error) error {
	b.last.Store(nil)
	return err
}

// scanPCI reads the PCI bus. Without it there is nothing to tell.
func scanPCI(ctx context.Context, fs *host.FS, detail pci.Detail) (pci.Inventory, error) {
	inv, err := deadline.Start(func() (pci.Inventory, error) { return pci.Scan(fs, detail) })(ctx)
	if errors.Is(err, deadline.ErrTimeout) {
		err = fmt.Errorf("PCI bus: %w", err)
	}
	return inv, err
}
