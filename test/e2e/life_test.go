package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// As long as nothing changes the agent writes nothing, neither to the API server nor to the
// disk, in a minute in which it reads the machine sixty times, as often as by default in an
// hour. Its memory does not grow.
func TestIdle(t *testing.T) {
	slow(t)
	t.Parallel()
	n := newNode(t, &shared, "idle")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--publish=nodefeature,file")
	labels := labelsOf(t, tree)
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		return errors.Join(a.right(ctx, labels), second(os.Stat(n.featureFile())))
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // it may still touch the file for the worker
	from, written := shared.auditEnd(t), changed(t, n.featureFile())

	const idle = time.Minute
	before := a.process.uses(t)
	time.Sleep(idle)
	a.process.grew(t, before)
	requests := shared.requests(t, from, n.name)
	for _, w := range writes(requests) {
		t.Errorf("wrote: %s", describe(&w))
	}
	if now := changed(t, n.featureFile()); !now.Equal(written) {
		t.Errorf("the feature file was written at %v", now)
	}
	t.Logf("%d requests in %v", len(requests), idle)

	// The audit log would show a write.
	load(t, tree)
	if err := until(t.Context(), patience, func(context.Context) error {
		if n := len(writes(shared.requests(t, from, n.name))); n != 1 {
			return fmt.Errorf("%d writes after a change", n)
		}
		return nil
	}, a.process); err != nil {
		t.Error(err)
	}
}

// changed returns the time of the last change of a file.
func changed(t *testing.T, name string) time.Time {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// When the agent ends all labels stay. When it starts again it writes nothing, since it
// reads back what it has published. --cleanup removes them, and --once brings them back.
func TestStopped(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "stopped")
	n.work(t, time.Second)
	tree := machine(t, "dell-xe9680-h100", "ready")
	both := "--publish=nodefeature,file"
	a := n.run(t, tree, both)
	labels := labelsOf(t, tree)
	n.expect(t, labels)
	if err := until(t.Context(), patience, func(context.Context) error { return second(os.Stat(n.featureFile())) }); err != nil {
		t.Fatal(err)
	}

	missing := n.watch(t, labels)
	if err := a.process.restart(); err != nil {
		t.Fatal(err)
	}
	from := shared.auditEnd(t)
	time.Sleep(3 * time.Second)
	if err := a.process.stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	for _, w := range writes(shared.requests(t, from, n.name)) {
		t.Errorf("the agent that started again wrote: %s", describe(&w))
	}
	for _, what := range missing() {
		t.Error(what)
	}
	n.expect(t, labels)

	a.command(t, both, "--cleanup")
	n.expect(t, nil)
	if _, err := os.Stat(n.featureFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the feature file: %v", err)
	}
	a.command(t, both, "--once")
	n.expect(t, labels)
	from = shared.auditEnd(t)
	a.command(t, both, "--once")
	for _, w := range writes(shared.requests(t, from, n.name)) {
		t.Errorf("a second --once wrote: %s", describe(&w))
	}
}

// The NodeFeature is deleted with its Node.
func TestNodeDeleted(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "deleted")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree)
	n.expect(t, labelsOf(t, tree))
	a.deleteNode(t)
}

// deleteNode deletes the agent's Node, and waits until its NodeFeature is deleted.
func (a *agent) deleteNode(t *testing.T) {
	t.Helper()
	if err := a.process.stop(); err != nil {
		t.Fatal(err)
	}
	if err := a.cluster.admin.kube.CoreV1().Nodes().Delete(t.Context(), a.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		if _, err := a.published(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the NodeFeature is there: error %w", err)
		}
		return nil
	}, a.cluster.processes()...); err != nil {
		t.Error(err)
	}
}

// A machine without NVIDIA GPU has neither labels nor a NodeFeature.
func TestNoGPU(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "no-gpu")
	a := n.run(t, machine(t, "nic-only", "ready"))
	from := shared.auditEnd(t)
	time.Sleep(5 * time.Second)
	if _, err := a.published(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("the NodeFeature is there: error %v", err)
	}
	if err := n.has(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if w := writes(shared.requests(t, from, n.name)); len(w) > 0 {
		t.Errorf("wrote: %s", describe(&w[0]))
	}
}
