package nodes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/journal"
	"gdr-features/internal/label"
)

// small is a node whose agent published labels some time ago.
func small(name string, labels label.Set, since time.Duration) Node {
	return Node{Name: name, Namespace: "gdr", Labels: labels, Written: now.Add(-since)}
}

var (
	good = label.Set{label.Ready: "true", label.Level: "PIX"}
	bad  = label.Set{label.Ready: "false", label.Reason: "GPUDriverNotLoaded", label.Level: "PIX"}
)

// many are nodes whose agents published the same an hour ago.
func many(count int, labels label.Set) (all []Node) {
	for i := range count {
		all = append(all, small(fmt.Sprintf("n%05d", i), labels, time.Hour))
	}
	return all
}

// onNodes are so many Nodes with the same labels, of the names that many gives.
func onNodes(count int, labels label.Set) map[string]label.Set {
	all := map[string]label.Set{}
	for i := range count {
		all[fmt.Sprintf("n%05d", i)] = labels
	}
	return all
}

// What the line about the chain says, and the likely cause.
func TestChain(t *testing.T) {
	agents := &Agents{Ready: 2, Wanted: 2}
	running := map[string]bool{"a": true, "b": true}
	both := []Node{small("a", good, time.Hour), small("b", bad, 340*time.Second)}
	for _, test := range []struct {
		name    string
		all     []Node
		cluster Cluster
		want    string
	}{
		{"all is well", both, Cluster{Agents: agents, Pods: running, Labels: map[string]label.Set{"a": good, "b": bad}}, "chain: 2 of 2 agents ready, no Node differs\n"},
		{
			"a driver was unloaded, and values are not overwritten", both,
			Cluster{Agents: agents, Pods: running, Labels: map[string]label.Set{"a": good, "b": {label.Ready: "true", label.Reason: "GPUDriverNotLoaded", label.Level: "PIX"}}},
			`chain: 2 of 2 agents ready, 1 Node differs (340 s)
  differs: b (gpudirect.rdma is true, published false)
  likely:  changed by hand, nfd-master does not run, or allowOverwrite is false
           (docs/oncall.md#do-the-labels-reach-the-nodes)
`,
		},
		{
			"no label comes", both,
			Cluster{Agents: &Agents{1, 2}, Pods: map[string]bool{"a": true}, Labels: map[string]label.Set{"a": {label.Expected: "true"}, "b": {}}, AllNodes: true},
			`chain: 1 of 2 agents ready, 2 Nodes differ (3600 s), 1 NodeFeature without agent
  agents:  not ready on b
  differs: a (gpudirect.rdma is absent, published true), b
  likely:  nfd-master does not run, or its configuration keeps the labels back
           (docs/oncall.md#do-the-labels-reach-the-nodes)
  without: b
`,
		},
		{
			"nothing is updated", both,
			Cluster{Agents: agents, Pods: running, Labels: map[string]label.Set{"a": good, "b": good}},
			`chain: 2 of 2 agents ready, 1 Node differs (340 s)
  differs: b (gpudirect.rdma is true, published false)
  likely:  nfd-master does not run, has restrictions, or its updates fail
           (docs/oncall.md#do-the-labels-reach-the-nodes)
`,
		},
		{
			"just now",
			[]Node{small("b", bad, 2*time.Second)},
			Cluster{Agents: agents, Pods: running, Labels: map[string]label.Set{"b": good}},
			`chain: 2 of 2 agents ready, 1 Node differs (2 s)
  differs: b (gpudirect.rdma is true, published false)
  likely:  Node Feature Discovery needs a few seconds
           (docs/oncall.md#do-the-labels-reach-the-nodes)
`,
		},
		{
			"labels of a GPU that is gone",
			[]Node{small("b", label.Set{}, -time.Minute)},
			Cluster{Labels: map[string]label.Set{"b": {label.Level: "PIX"}}},
			`chain: 1 Node differs (0 s)
  differs: b (gdr.level is PIX, published none)
  likely:  Node Feature Discovery needs a few seconds
           (docs/oncall.md#do-the-labels-reach-the-nodes)
`,
		},
		{
			"and they stay",
			[]Node{small("b", label.Set{}, time.Minute)},
			Cluster{Labels: map[string]label.Set{"b": {label.Level: "PIX"}}},
			`chain: 1 Node differs (60 s)
  differs: b (gdr.level is PIX, published none)
  likely:  nfd-master does not run, has restrictions, or its updates fail
           (docs/oncall.md#do-the-labels-reach-the-nodes)
`,
		},
		{"a Node is gone", both, Cluster{Labels: map[string]label.Set{"b": bad}}, "chain: no Node differs, 1 NodeFeature without agent\n  without: a\n"},
		{
			"an agent is not ready", both[:1],
			Cluster{Agents: &Agents{1, 2}, Pods: map[string]bool{"a": true, "b": false}, Labels: map[string]label.Set{"a": good, "b": {}, "cpu": {}}, AllNodes: true},
			"chain: 1 of 2 agents ready, no Node differs\n  agents:  not ready on b\n",
		},
		{
			"it has no Pod", both[:1],
			Cluster{Agents: &Agents{1, 2}, Pods: map[string]bool{"a": true}, Labels: map[string]label.Set{"a": good, "b": {}}, AllNodes: true},
			"chain: 1 of 2 agents ready, no Node differs\n  agents:  not ready on b\n",
		},
		{
			"it has no Pod, which may be that of another Node", both[:1],
			Cluster{Agents: &Agents{1, 2}, Pods: map[string]bool{"a": true}, Labels: map[string]label.Set{"a": good, "b": {}, "c": {}}, AllNodes: true},
			"chain: 1 of 2 agents ready, no Node differs\n",
		},
		{
			"two agents on one node", both[:1],
			Cluster{Agents: agents, Pods: map[string]bool{"a": true}, Labels: map[string]label.Set{"a": good, "cpu": {}}, AllNodes: true},
			"chain: 2 of 2 agents ready, no Node differs\n",
		},
		{
			"some Nodes alone were read", both[:1],
			Cluster{Agents: &Agents{1, 2}, Pods: map[string]bool{"a": true}, Labels: map[string]label.Set{"a": good, "b": {}}},
			"chain: 1 of 2 agents ready, no Node differs\n",
		},
		{
			"labels of a NodeFeature that is gone, and one that the kubelet has set", both,
			Cluster{Agents: agents, Pods: running, Labels: map[string]label.Set{"a": good, "b": bad, "cpu\x1b": {label.Capable: "true"}, "c": good, "none": {}}, AllNodes: true, Whole: true},
			`chain: 2 of 2 agents ready, no Node differs,
       labels without an agent's NodeFeature on 2 Nodes
  labels:  c (gpudirect.rdma is true, published none), cpu?
  likely:  left by a NodeFeature that is gone, or set in another way
           (docs/oncall.md#do-the-labels-reach-the-nodes)
`,
		},
		{
			"such labels, while NodeFeatures of a namespace alone were read", both,
			Cluster{Agents: agents, Pods: running, Labels: map[string]label.Set{"a": good, "b": bad, "c": good}, AllNodes: true},
			"chain: 2 of 2 agents ready, no Node differs\n",
		},
		{
			"such labels, of Nodes that were selected", both,
			Cluster{Agents: agents, Pods: running, Labels: map[string]label.Set{"a": good, "b": bad, "c": good}, Whole: true},
			"chain: 2 of 2 agents ready, no Node differs\n",
		},
		{
			"large counts", many(10000, good),
			Cluster{Agents: &Agents{10000, 10000}, Pods: map[string]bool{}, Labels: onNodes(20000, bad), AllNodes: true, Whole: true},
			`chain: 10000 of 10000 agents ready, 10000 Nodes differ (3600 s),
       10000 NodeFeatures without agent,
       labels without an agent's NodeFeature on 10000 Nodes
  differs: n00000 (gpudirect.rdma is false, published true), n00001,
           n00002 and 9997 more
  likely:  nfd-master does not run, has restrictions, or its updates fail
           (docs/oncall.md#do-the-labels-reach-the-nodes)
  without: n00000, n00001, n00002 and 9997 more
  labels:  n10000 (gpudirect.rdma is false, published none), n10001,
           n10002 and 9997 more
  likely:  left by a NodeFeature that is gone, or set in another way
           (docs/oncall.md#do-the-labels-reach-the-nodes)
`,
		},
		{
			"nothing may be read", both,
			Cluster{NotRead: []NotRead{{Kind: "DaemonSet", Why: "no\n\x1b[2J"}, {Kind: "Node", Why: "not that"}}},
			"chain: unknown\n  not read: DaemonSets: no??[2J\n  not read: Nodes: not that\n",
		},
	} {
		chain := test.cluster.Chain(test.all, now)
		var out strings.Builder
		if err := chain.Text(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		for line := range strings.Lines(out.String()) {
			if len(line) > 81 {
				t.Errorf("%s: %d columns: %s", test.name, len(line)-1, line)
			}
		}
	}
}

// In JSON, what could not be read is null, and what is not there is an empty list.
func TestChainJSON(t *testing.T) {
	all := []Node{small("b", bad, time.Minute)}
	for want, c := range map[string]Cluster{
		`{"agents":null,"notReady":null,"differing":null,"withoutAgent":null,"unpublished":null,"cause":"","notRead":[]}`:                         {},
		`{"agents":{"ready":0,"wanted":0},"notReady":[],"differing":[],"withoutAgent":["b"],"unpublished":null,"cause":"","notRead":[]}`:          {Agents: &Agents{}, Pods: map[string]bool{}, Labels: map[string]label.Set{"b": bad}},
		`{"agents":null,"notReady":null,"differing":[],"withoutAgent":["b"],"unpublished":null,"cause":"","notRead":[{"kind":"Pod","why":"no"}]}`: {Labels: map[string]label.Set{}, NotRead: []NotRead{{Kind: "Pod", Why: "no"}}},
		`{"agents":null,"notReady":null,"differing":[{"node":"b","seconds":60,"labels":[{"label":"gpudirect.rdma","onNode":"","published":"false"}]}],"withoutAgent":[],"unpublished":null,` +
			`"cause":"` + someCame + `","notRead":[]}`: {Labels: map[string]label.Set{"b": {label.Reason: "GPUDriverNotLoaded", label.Level: "PIX"}}},
		`{"agents":null,"notReady":null,"differing":[],"withoutAgent":[],"unpublished":[],"cause":"","notRead":[]}`: {Labels: map[string]label.Set{"b": bad, "cpu": {}}, AllNodes: true, Whole: true},
		`{"agents":null,"notReady":null,"differing":[],"withoutAgent":["b"],"unpublished":[{"node":"c","seconds":null,"labels":[{"label":"gpudirect.rdma","onNode":"true","published":""}]}],` +
			`"cause":"","notRead":[]}`: {Labels: map[string]label.Set{"c": {label.Ready: "true"}}, AllNodes: true, Whole: true},
	} {
		text, err := json.Marshal(c.Chain(all, now))
		if err != nil || string(text) != want {
			t.Errorf("%s, want %s, error %v", text, want, err)
		}
	}
}

// What --wait waits for.
func TestWaiting(t *testing.T) {
	a, b := small("a", good, time.Hour), small("b", bad, time.Hour)
	labels := map[string]label.Set{"a": good, "b": bad}
	for _, test := range []struct {
		name    string
		all     []Node
		names   []string
		filter  Filter
		cluster Cluster
		want    string
	}{
		{"all ready", []Node{a}, nil, Filter{}, Cluster{Agents: &Agents{1, 1}, Labels: labels}, ""},
		{"one is not", []Node{a, b}, nil, Filter{}, Cluster{}, "1 of 2 nodes ready, waiting for b (GPUDriverNotLoaded)"},
		{"one has no GPU", []Node{a, small("c", nil, 0)}, nil, Filter{}, Cluster{}, "1 of 2 nodes ready, waiting for c (no labels)"},
		{"the Nodes were not read in time", []Node{a}, nil, Filter{}, Cluster{NotRead: []NotRead{{Kind: "Node", Why: "busy"}}}, "1 of 1 node ready, but the Nodes could not be read: busy"},
		{"the agents were not read in time", []Node{a}, nil, Filter{}, Cluster{NotRead: []NotRead{{Kind: "DaemonSet", Why: "busy"}}}, "1 of 1 node ready, but the DaemonSets could not be read: busy"},
		{"the Nodes may not be read", []Node{a}, nil, Filter{}, Cluster{NotRead: []NotRead{{Kind: "Node", Why: "no", Denied: true}}}, ""},
		{"the label has another value", []Node{a}, nil, Filter{}, Cluster{Labels: map[string]label.Set{"a": bad}}, "0 of 1 node ready, waiting for a (gpudirect.rdma is false on the Node)"},
		{"the label is not on the Node", []Node{a}, nil, Filter{}, Cluster{Labels: map[string]label.Set{"a": {}}}, "0 of 1 node ready, waiting for a (label not on the Node)"},
		{"other agents are not there yet", []Node{a}, nil, Filter{}, Cluster{Agents: &Agents{1, 3}}, "1 of 1 node ready, but 2 of 3 agents have published nothing"},
		{
			"an object without agent stands for none",
			[]Node{a, small("left", good, time.Hour)},
			nil,
			Filter{},
			Cluster{Agents: &Agents{2, 2}, Pods: map[string]bool{"a": true, "new": true}},
			"2 of 2 nodes ready, but 1 of 2 agents have published nothing",
		},
		{"they do not matter to named nodes", []Node{a}, []string{"a"}, Filter{}, Cluster{Agents: &Agents{1, 3}}, ""},
		{"a named node has published nothing", []Node{a}, []string{"a", "z"}, Filter{}, Cluster{}, "1 of 2 nodes ready, waiting for z (nothing published)"},
		{"a selected Node has published nothing", []Node{a, b}, nil, Filter{Only: map[string]label.Set{"a": good, "z": {}}}, Cluster{Labels: labels}, "1 of 2 nodes ready, waiting for z (nothing published)"},
		{"no node", nil, nil, Filter{}, Cluster{}, "no node matches"},
	} {
		if got := test.filter.Waiting(test.all, test.names, &test.cluster); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// The journal, the newest change first.
func TestHistory(t *testing.T) {
	n := Node{Name: "a", Namespace: "gdr", Changes: []journal.Change{
		{Time: now.Add(-50 * time.Hour), Name: "gdr.rate", New: "400"},
		{Time: now.Add(-2 * time.Hour), Name: "gdr.rate", Old: "400", New: "100"},
		{Time: now.Add(-2 * time.Hour), Name: "LinkDegraded", New: "WARN"},
		{Time: now.Add(-90 * time.Second), Name: "gdr.mofed\x1b[2J", Old: "24.10-1.1.4"},
		{Time: now.Add(time.Second), Name: "LinkDegraded", Old: "WARN"},
	}}
	const want = `WHEN         TIME                   WHAT            OLD           NEW
now          2026-05-04T12:00:01Z   LinkDegraded    WARN          -
90 s ago     2026-05-04T11:58:30Z   gdr.mofed?[2J   24.10-1.1.4   -
2 h ago      2026-05-04T10:00:00Z   LinkDegraded    -             WARN
2 h ago      2026-05-04T10:00:00Z   gdr.rate        400           100
2 d ago      2026-05-02T10:00:00Z   gdr.rate        -             400
`
	var out strings.Builder
	if err := History(&out, &n, Style{Now: now, Headers: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := HistoryJSON(&out, &n); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Node    string
		Changes []map[string]string
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	first := map[string]string{"time": "2026-05-04T12:00:01Z", "name": "LinkDegraded", "old": "WARN", "new": ""}
	if diff := cmp.Diff(first, got.Changes[0]); diff != "" || got.Node != "a" || len(got.Changes) != 5 {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	for d, want := range map[time.Duration]string{
		-time.Hour: "now", time.Second: "now", 2 * time.Second: "2 s ago", 119 * time.Second: "119 s ago", 2 * time.Minute: "2 min ago", 47 * time.Hour: "47 h ago", 49 * time.Hour: "2 d ago",
	} {
		if got := ago(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
