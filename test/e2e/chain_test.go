package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// chainNode is a node whose agent publishes when it is told to.
type chainNode struct {
	*agent
	*testing.T
	kubeconfig string
}

func (n *chainNode) publish(state string) {
	n.Helper()
	n.tree = machine(n.T, "dell-xe9680-h100", state)
	n.command(n.T, "--once")
}

// master restarts nfd-master with options, or stops it.
func (n *chainNode) master(options string) {
	n.Helper()
	err := n.cluster.master.stop()
	if err == nil && options != "" {
		n.cluster.master, err = n.cluster.startNFD(n.Context(), "nfd-master", n.cluster.dir, "control-plane", "-config=", "-options="+options)
	}
	if err != nil {
		n.Fatal(err)
	}
}

// shows waits until kubectl gdr begins with lines.
func (n *chainNode) shows(lines string) {
	n.Helper()
	want := regexp.MustCompile(`\A` + lines)
	if err := until(n.Context(), patience, func(context.Context) error {
		out, errs, status := shell(n.T, n.kubeconfig, "kubectl gdr")
		if status != 0 || errs != "" || !want.MatchString(out) {
			return fmt.Errorf("status %d, no %s in\n%s%s", status, lines, out, errs)
		}
		return nil
	}); err != nil {
		n.Error(err)
	}
}

func (n *chainNode) edit(patch string) {
	n.Helper()
	features := n.cluster.admin.nfd.NfdV1alpha1().NodeFeatures(agentName)
	if _, err := features.Patch(n.Context(), feature(n.name).Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		n.Fatal(err)
	}
}

// TestChain breaks what is between the agents and the labels of Nodes, link by link; kubectl gdr names
// the link. Node Feature Discovery is the real one, with the settings that keep labels back.
func TestChain(t *testing.T) {
	slow(t)
	c := ownCluster(t, "chain", "", (*cluster).start)
	kubeconfig, err := c.kubeconfig(c.dir, "admin", c.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	n := &chainNode{newNode(t, c, "chain-a").prepare(t, ""), t, kubeconfig}
	n.publish("no-drivers")
	status := []byte(`{"status": {"numberReady": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": 1, "numberMisscheduled": 0}}`)
	if _, err := c.admin.kube.AppsV1().DaemonSets(agentName).Patch(t.Context(), agentName, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	ready := []byte(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	if _, err := c.admin.kube.CoreV1().Pods(agentName).Patch(t.Context(), n.pod.Name, types.MergePatchType, ready, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	n.shows(`chain: 1 of 2 agents ready, no Node differs\n  agents:  not ready on control-plane\n\nNODE `)

	n.master(`{"restrictions": {"allowOverwrite": false}}`)
	n.publish("ready")
	n.shows(`chain: 1 of 2 agents ready, 1 Node differs \(\d+ s\)
  agents:  not ready on control-plane
  differs: chain-a \(gpudirect.rdma is false, published true\)
  likely:  (Node Feature Discovery needs a few seconds|changed by hand, nfd-master does not run, or allowOverwrite is false)
`)
	began := time.Now()
	if out, errs, status := shell(t, kubeconfig, "kubectl gdr --wait 2s chain-a"); status != 2 || !strings.Contains(errs, "waiting for chain-a (gpudirect.rdma is false on the Node)\n") {
		t.Errorf("--wait where the label does not come: status %d\n%s%s", status, out, errs)
	} else {
		t.Logf("--wait 2s took %v", time.Since(began).Round(time.Millisecond))
	}
	// With allowOverwrite false NFD does not note which labels it has added, and would leave them behind.
	n.master(`{}`)
	n.shows(`chain: 1 of 2 agents ready, no Node differs\n`)
	n.master(`{"restrictions": {"disableLabels": true}}`)
	n.shows(`chain: .* 1 Node differs \(\d+ s\)\n  agents:  not ready on control-plane\n  differs: chain-a \(gpudirect.rdma is absent, published true\)\n  likely:  `)
	n.master(`{"denyLabelNs": ["*.kubernetes.io"]}`)
	n.shows(`chain: .* 1 Node differs \(\d+ s\)\n  agents:  not ready on control-plane\n  differs: chain-a \(gpudirect.rdma is absent, published true\)\n  likely:  `)
	time.Sleep(15 * time.Second) // after which it is no more what NFD needs
	n.shows(`chain: .*\n  agents:  not ready on control-plane\n.*\n  likely:  nfd-master does not run, or its configuration keeps the labels back\n`)
	waited := make(chan string, 1)
	go func() {
		out, errs, status := shell(t, kubeconfig, "kubectl gdr --wait 1m")
		waited <- fmt.Sprint(status, " ", errs, out)
	}()
	n.master(`{}`)
	n.shows(`chain: 1 of 2 agents ready, no Node differs\n`)
	if got := <-waited; !strings.HasPrefix(got, "2 ") || !strings.Contains(got, "but 1 of 2 agents have published nothing") {
		t.Errorf("--wait for an agent that has published nothing: %s", got)
	}
	if out, errs, status := shell(t, kubeconfig, "kubectl gdr --wait 1m chain-a"); status != 0 || errs != "" || !strings.Contains(out, "1 node, 1 ready\n") {
		t.Errorf("--wait for a ready node: status %d\n%s%s", status, out, errs)
	}
	testJournal(n)

	if err := c.admin.kube.CoreV1().Pods(agentName).Delete(t.Context(), n.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil && !errors.IsNotFound(err) {
		t.Fatal(err)
	}
	const without = `\n  agents:  not ready on chain-a, control-plane\n  without: chain-a\n`
	n.shows(`chain: 1 of 2 agents ready, no Node differs, 1 NodeFeature without agent` + without + `\n`)

	// A label of ours that no agent has published, as kubelet's --node-labels sets it.
	other := &node{cluster: c, name: "control-plane"}
	other.patch(t, `{"metadata": {"labels": {"`+prefix+`gpudirect.rdma.capable": "true"}}}`)
	n.shows(`chain: 1 of 2 agents ready, no Node differs, 1 NodeFeature without agent,\n       labels without an agent's NodeFeature on 1 Node` + without +
		`  labels:  control-plane \(gpudirect.rdma.capable is true, published none\)\n  likely:  left by a NodeFeature that is gone, or set in another way\n`)
	other.patch(t, `{"metadata": {"labels": {"`+prefix+`gpudirect.rdma.capable": null}}}`)
	n.shows(`chain: 1 of 2 agents ready, no Node differs, 1 NodeFeature without agent` + without + `\n`)
}

// testJournal prints a journal, and shows the node though somebody has changed its object.
func testJournal(n *chainNode) {
	n.Helper()
	if out, errs, status := shell(n.T, n.kubeconfig, "kubectl gdr history chain-b"); status != 1 || out != "" || !strings.Contains(errs, "no agent has published a NodeFeature of chain-b") {
		n.Errorf("no object: status %d\n%s%s", status, out, errs)
	}
	at := time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)
	n.edit(`{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}, "annotations": {"gdr-features/journal": "[{\"time\":\"` + at + `\",\"name\":\"gdr.rate\",\"old\":\"400\",\"new\":\"100\"}]"}}}`)
	out, errs, status := shell(n.T, n.kubeconfig, "kubectl gdr history chain-a")
	want := "WHEN      TIME                   WHAT       OLD   NEW\n2 h ago   " + at + "   gdr.rate   400   100\n"
	if status != 0 || errs != "" || out != want {
		n.Errorf("history: status %d\n%s%s, want\n%s", status, out, errs, want)
	}
	n.shows(`chain: .*\n  agents:  not ready on control-plane\n\nNODE      READY   LEVEL   REASON/WARN   AGE\nchain-a   true    PIX     -             120m\n`)
	if out, errs, _ := shell(n.T, n.kubeconfig, "kubectl-gdr __complete history ''"); !strings.HasPrefix(out, "chain-a\n") {
		n.Errorf("completes %s%s", out, errs)
	}
	n.edit(`{"metadata": {"annotations": {"gdr-features/journal": "{"}}}`)
	fails(n.T, n.kubeconfig, "kubectl gdr history chain-a", "the journal of chain-a cannot be read")
}
