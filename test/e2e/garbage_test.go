package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	// It starts to collect once it has listed all objects: wait for that.
	maps, nobody := c.admin.kube.CoreV1().ConfigMaps(agentName), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "nobody"}
	garbage, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "garbage-", OwnerReferences: []metav1.OwnerReference{nobody}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		if _, err := maps.Get(ctx, garbage.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is not collected: error %w", garbage.Name, err)
		}
		return nil
	}, c.processes()...); err != nil {
		t.Fatal(err)
	}
}
