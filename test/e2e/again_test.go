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

// A Node is deleted and registered again under its name while the agent runs. The
// token of its Pod names the UID of the old Node, and the garbage collector deletes what
// belongs to that. Until a NodeFeature stays, publications are counted as failed and the
// log says why; within five seconds after that the Node has its labels, and keeps them
// when the token is renewed.
func TestRegisteredAgain(t *testing.T) {
	shared.collectGarbage(t)
	for name, away := range map[string]time.Duration{"at-once": 0, "after-a-while": 8 * time.Second} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, &shared, "again-"+name)
			tree := machine(t, "dell-xe9680-h100", "ready")
			a := n.run(t, tree, "--listen="+address(t))
			labels := labelsOf(t, tree)
			n.expect(t, labels)
			before := a.metric(t, failures)

			from := shared.auditEnd(t)
			if err := shared.admin.kube.CoreV1().Nodes().Delete(t.Context(), n.name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(away)
			made, err := shared.createNode(t.Context(), n.name)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := until(t.Context(), patience, func(ctx context.Context) error {
				if !a.said(t, "registered again?") { // NFD may have seen what is deleted then
					return errors.New("the agent does not doubt the owner")
				}
				return n.has(ctx, labels)
			}, a.process); err != nil {
				t.Fatal(err)
			}
			labelled := time.Now()
			written := writes(shared.requests(t, from, n.name))
			for _, w := range written {
				t.Log(describe(&w))
			}
			last := written[len(written)-1].StageTimestamp.Time
			t.Logf("labels %v after the Node was registered again, %v after the last write", labelled.Sub(began), labelled.Sub(last))
			if labelled.Sub(last) > 5*time.Second {
				t.Error("the Node has its labels too late")
			}
			if now := a.metric(t, failures); now <= before {
				t.Errorf("%s is %v, before %v", failures, now, before)
			}
			for _, text := range []string{"publishing fails", "deleted", "registered again?"} {
				if !a.said(t, text) {
					t.Errorf("the log does not say %q", text)
				}
			}

			// The token is renewed, as by a kubelet. No label is lost.
			missing := n.watch(t, labels)
			a.renewToken(t, made.UID)
			for _, what := range missing() {
				t.Error(what)
			}
			if err := n.has(t.Context(), labels); err != nil {
				t.Error(err)
			}
			if !a.said(t, "publishing works again") {
				t.Error("the log does not say that publishing works again")
			}
		})
	}
}

// failures is the metric that counts failed publications.
const failures = `gdr_publish_total{publisher="nodefeature",result="failed"}`

// renewToken returns the agent the token of a Pod on the Node with this UID, which is to own
// the NodeFeature from then on.
func (a *agent) renewToken(t *testing.T, uid types.UID) {
	t.Helper()
	pod, err := a.cluster.createPod(t.Context(), a.name)
	if err != nil {
		t.Fatal(err)
	}
	token, err := a.cluster.token(t.Context(), agentName, agentName, pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.dir, agentName+".token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		now, err := a.published(ctx)
		if err == nil && (len(now.OwnerReferences) != 1 || now.OwnerReferences[0].UID != uid) {
			err = fmt.Errorf("owners: %v", now.OwnerReferences)
		}
		return err
	}, a.process); err != nil {
		t.Error(err)
	}
}

// said reports whether the agent's log contains a text.
func (a *agent) said(t *testing.T, text string) bool {
	t.Helper()
	log, err := os.ReadFile(a.process.log())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(log), text)
}
