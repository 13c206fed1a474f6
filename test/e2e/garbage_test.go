package e2e

import (
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// collectGarbage runs the garbage collector of kube-controller-manager until the test ends:
// it deletes objects whose owner does not exist.
func (c *cluster) collectGarbage(t *testing.T) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), klog.Logger{}) // logs nothing
	client, err := metadata.NewForConfig(c.admin.config)
	if err != nil {
		t.Fatal(err)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(c.admin.config)
	if err != nil {
		t.Fatal(err)
	}
	typed, untyped := informers.NewSharedInformerFactory(c.admin.kube, 0), metadatainformer.NewSharedInformerFactory(client, 0)
	started := make(chan struct{})
	close(started)
	collector, err := garbagecollector.NewGarbageCollector(ctx, c.admin.kube, client, c.admin.mapper,
		garbagecollector.DefaultIgnoredResources(), informerfactory.NewInformerFactory(typed, untyped), started)
	if err != nil {
		t.Fatal(err)
	}
	go collector.Run(ctx, 2, 30*time.Second)
	go collector.Sync(ctx, discover, 30*time.Second)
}
