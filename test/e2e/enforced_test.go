package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The API server runs the admission plugin OwnerReferencesPermissionEnforcement, as in OpenShift: who
// may not delete an object may not change its owners. A NodeFeature that has no owner, as those made
// with Kubernetes 1.29, follows its machine, and gets its owner as soon as the role has the verb.
func TestOwnerEnforced(t *testing.T) {
	c := ownCluster(t, "enforced", "", (*cluster).start)
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests
	verbs := func(names string) {
		t.Helper()
		text := fmt.Sprintf(`[{"op": "replace", "path": "/rules/0/verbs", "value": [%s]}]`, names)
		if _, err := c.admin.kube.RbacV1().Roles(agentName).Patch(t.Context(), agentName, types.JSONPatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	verbs(`"create", "patch", "get", "list", "watch"`)
	n := newNode(t, c, "enforced")
	made := feature(n.name)
	made.Spec.Labels = map[string]string{prefix + "gpudirect.rdma": "true", prefix + "gpudirect.rdma.capable": "true"}
	if err := c.admin.write(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree)
	right := func(ctx context.Context) error { return n.has(ctx, labelsOf(t, tree)) }
	owners := func(ctx context.Context) error {
		now, err := a.published(ctx)
		if err == nil && len(now.OwnerReferences) > 0 {
			err = fmt.Errorf("owners %v", now.OwnerReferences)
		}
		return errors.Join(right(ctx), err)
	}
	begun := a.strained(t, "without the verb delete: an object without owner")
	begun.recovers(t, 10, 3, owners)
	unloaded := a.strained(t, "without the verb delete: the driver is unloaded")
	unloadPeermem(t, tree)
	unloaded.recovers(t, 4, 2, owners)
	if !a.said(t, "verb delete") {
		t.Error("the log does not say what the role lacks")
	}

	verbs(`"create", "patch", "delete", "get", "list", "watch"`)
	if err := a.process.stop(); err != nil {
		t.Fatal(err)
	}
	owned := a.strained(t, "with the verb delete: the object gets its owner")
	if err := a.process.start(); err != nil {
		t.Fatal(err)
	}
	owned.recovers(t, 10, 2, func(ctx context.Context) error { return errors.Join(right(ctx), a.owned(ctx)) })
	loaded := a.strained(t, "with the verb delete: the driver is loaded")
	load(t, tree)
	loaded.recovers(t, 4, 2, func(ctx context.Context) error { return errors.Join(right(ctx), a.owned(ctx)) })
}

// After a reboot, told by the boot's id, the NodeFeature says at once that the driver is not loaded;
// after a restart of the agent, when that has held for the settle time. What changed is in the journal.
func TestReboot(t *testing.T) {
	t.Parallel()
	const settle = 20 * time.Second
	for name, test := range map[string]struct {
		boot     string
		from, to time.Duration
	}{
		"rebooted":  {"11111111-2222-4333-8444-000000000002", 0, settle / 2},
		"restarted": {"11111111-2222-4333-8444-000000000001", settle, 5 * settle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, &shared, "boot-"+name)
			tree := machine(t, "dell-xe9680-h100", "ready")
			random := filepath.Join(tree, "proc/sys/kernel/random")
			boot := func(id string) {
				t.Helper()
				if err := errors.Join(os.MkdirAll(random, 0o755), os.WriteFile(filepath.Join(random, "boot_id"), []byte(id+"\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			boot("11111111-2222-4333-8444-000000000001")
			a := n.run(t, tree, "--settle="+settle.String())
			ready := labelsOf(t, tree)
			n.expect(t, ready)
			if err := a.process.stop(); err != nil {
				t.Fatal(err)
			}
			boot(test.boot)
			unloadPeermem(t, tree)
			labels := labelsOf(t, tree)
			if labels[prefix+"gdr.peermem"] == ready[prefix+"gdr.peermem"] {
				t.Fatal("the driver is not unloaded")
			}
			s := a.strained(t, name)
			if err := a.process.start(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			s.recovers(t, 10, 2, func(ctx context.Context) error { return a.right(ctx, labels) })
			if took := time.Since(began); took < test.from || took > test.to {
				t.Errorf("right after %v, not between %v and %v", took, test.from, test.to)
			}
			now, err := a.published(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			journal := now.Annotations[journalKey]
			t.Logf("the journal has %d bytes: %s", len(journal), journal)
			if got := now.Spec.Features.Attributes["gdr.state"].Elements["bootID"]; got != test.boot {
				t.Errorf("boot %q", got)
			}
			if !strings.Contains(journal, `"name":"gdr.peermem","old":"true","new":"false"`) {
				t.Error("the journal does not say that")
			}
		})
	}
}

func unloadPeermem(t *testing.T, tree string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(tree, "sys/module/nvidia_peermem")); err != nil {
		t.Fatal(err)
	}
}
