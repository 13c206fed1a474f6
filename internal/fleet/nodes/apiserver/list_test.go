package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/fleet/nodes/example"
	"gdr-features/internal/label"
)

// feature is a NodeFeature as an API server gives it. more is the end of the
// metadata and what follows.
func feature(node, more string) string {
	return fmt.Sprintf(`{"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": {
		"name": "gdr-features-%[1]s", "namespace": "gdr",
		"labels": {"app.kubernetes.io/managed-by": "gdr-features", "nfd.node.kubernetes.io/node-name": %[1]q}%[2]s}`, node, more)
}

// api is an API server with objects. It answers with status, if that is not 0,
// from its request number failFrom on, failing times.
type api struct {
	items             []string
	status            int
	failFrom, failing int

	requests []string // what was asked
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.requests = append(a.requests, r.URL.Path+" "+q.Get("labelSelector")+q.Get("fieldSelector")+" "+q.Get("limit")+" "+q.Get("continue"))
	w.Header().Set("Content-Type", "application/json")
	if n := len(a.requests) - 1; a.status != 0 && n >= a.failFrom && n < a.failFrom+a.failing {
		w.WriteHeader(a.status)
		reason := map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 410: "Expired", 500: "InternalError"}[a.status]
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "because", "reason": %q, "code": %d}`, reason, a.status)
		return
	}
	from, _ := strconv.Atoi(q.Get("continue"))
	to, next := len(a.items), ""
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	fmt.Fprintf(w, `{"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureList", "metadata": {"continue": %q}, "items": [%s]}`,
		next, strings.Join(a.items[from:to], ","))
}

// ask lists from the server, and gives the progress that was reported.
func (a *api) ask(t *testing.T, q Query) ([]nodes.Node, []int, error) {
	t.Helper()
	server := httptest.NewServer(a)
	defer server.Close()
	var told []int
	q.Progress = func(n int) { told = append(told, n) }
	all, err := List(t.Context(), &rest.Config{Host: server.URL}, q)
	return all, told, err
}

// fleet is that of five nodes.
func fleet() []string {
	var items []string
	for _, name := range []string{"n5", "n4", "n3", "n2", "n1"} {
		items = append(items, feature(name, "}"))
	}
	return items
}

// A fleet is read page by page and sorted.
func TestPages(t *testing.T) {
	a := api{items: fleet()}
	all, told, err := a.ask(t, Query{Namespace: "gdr", PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range all {
		names = append(names, n.Name)
	}
	if diff := cmp.Diff([]string{"n1", "n2", "n3", "n4", "n5"}, names); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{2, 4, 5}, told); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	path := "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/gdr/nodefeatures nfd.node.kubernetes.io/node-name 2 "
	if diff := cmp.Diff([]string{path, path + "2", path + "4"}, a.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// A list whose version has gone is read anew, once.
func TestExpired(t *testing.T) {
	a := api{items: fleet(), status: http.StatusGone, failFrom: 1, failing: 1}
	all, _, err := a.ask(t, Query{Namespace: "gdr", PageSize: 2})
	if err != nil || len(all) != 5 || len(a.requests) != 5 {
		t.Errorf("%d nodes, error %v, after %q", len(all), err, a.requests)
	}
	a = api{items: fleet(), status: http.StatusGone, failing: 100}
	if _, _, err := a.ask(t, Query{Namespace: "gdr"}); err == nil || len(a.requests) != 2 {
		t.Errorf("error %v after %d requests", err, len(a.requests))
	}
}

// An answer that is not a list is an error.
func TestNoList(t *testing.T) {
	for text, want := range map[string]string{
		`{"metadata": {"continue": "x"}, "items": []}`: "the same part of the list again and again",
		`<html>`:                      "is not a list of NodeFeatures",
		`{"items": [{"spec": true}]}`: "is not a list of NodeFeatures",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
		all, err := List(t.Context(), &rest.Config{Host: server.URL}, Query{})
		server.Close()
		if err == nil || all != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, error %v", text, all, err)
		}
	}
}

// A server whose continue tokens form a loop is not asked for ever.
func TestCircle(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		fmt.Fprintf(w, `{"metadata": {"continue": "%d"}, "items": []}`, requests%3)
	}))
	defer server.Close()
	_, err := List(t.Context(), &rest.Config{Host: server.URL}, Query{})
	if err == nil || !strings.Contains(err.Error(), "again and again") || requests != 4 {
		t.Errorf("error %v after %d requests", err, requests)
	}
}

// A few nodes are selected by name, many are picked from the list of all.
func TestNames(t *testing.T) {
	a := api{items: fleet()}
	all, _, err := a.ask(t, Query{Names: []string{"n2", "n4"}})
	if err != nil || len(all) != 2 || all[0].Name != "n2" || all[1].Name != "n4" {
		t.Errorf("%v, error %v", all, err)
	}
	const want = "/apis/nfd.k8s-sigs.io/v1alpha1/nodefeatures nfd.node.kubernetes.io/node-name in (n2,n4)  "
	if len(a.requests) != 1 || a.requests[0] != want {
		t.Errorf("asked %q, want %q", a.requests, want)
	}
	many := make([]string, mostNames+1)
	for i := range many {
		many[i] = fmt.Sprintf("n%d", i)
	}
	a = api{items: append(fleet(), feature("other", "}"))}
	if all, _, err := a.ask(t, Query{Names: many}); err != nil || len(all) != 5 || strings.Contains(a.requests[0], " in (") {
		t.Errorf("%d nodes, error %v, asked %q", len(all), err, a.requests)
	}
}

// What is read of an object, and of whose objects.
func TestObject(t *testing.T) {
	const fields = `, "managedFields": [
		{"manager": "kubectl", "time": "2026-05-04T11:30:00Z", "fieldsV1": {"f:spec": {}}},
		{"manager": "gdr-features", "time": "2026-05-04T11:00:00Z"}, {"manager": "gdr-features", "time": "2026-05-04T10:30:00Z"}]},
		"spec": {"labels": {"feature.node.kubernetes.io/gdr.level": "PIX", "feature.node.kubernetes.io/gdr.mofed": "a b",
			"feature.node.kubernetes.io/pci-10de.present": "true", "gdr.gpus": "8"},
		"features": {"flags": {}, "attributes": {"gdr.node": {"elements": {"gdr.level": "SYS"}},
			"gdr.state": {"elements": {"kernel": "6.8.0", "driverVersion": "570.86.15", "driverOpen": "true", "findings": "A,B"}}}, "instances": {
			"gdr.gpu": {"elements": [{"attributes": {"address": "1", "name": "A40"}}, {"attributes": {"address": "2", "name": "H100"}}, {"attributes": {"address": "3", "name": "H100", "family": "nvidia", "pcieRoot": "pci0000:10", "numaNode": "0"}}]},
			"gdr.nic": {"elements": [{"attributes": {"address": "4", "name": "CX7", "rdma": "mlx5_0", "device": "1021", "rail": "0", "state": "ACTIVE", "linkLayer": "Ethernet", "rateGbps": "400", "mtu": "4096", "mtuFrom": "netdev", "gidIndex": "3"}}, {"attributes": {"address": "4", "name": "CX7", "rdma": "mlx5_1"}}, {"attributes": {"address": "5", "name": "CX7", "rdma": "mlx5_2", "role": "excluded"}}, {"attributes": {"address": "", "rdma": "rxe0"}}]},
			"gdr.pair": {"elements": [{"attributes": {"gpu": "1", "nic": "4", "level": "PIX"}}, {"attributes": {"gpu": "2", "nic": "4"}}]}}}}`
	foreign := strings.Replace(feature("z", "}"), "gdr-features-z", "z", 1)
	a := api{items: []string{feature("a", fields), foreign, feature("b", `}, "spec": null`)}}
	got, _, err := a.ask(t, Query{})
	if err != nil {
		t.Fatal(err)
	}
	want := []nodes.Node{{
		Name: "a", Namespace: "gdr", Labels: label.Set{"gdr.level": "PIX"}, Written: time.Date(2026, 5, 4, 11, 0, 0, 0, time.UTC),
		Findings: []nodes.Finding{{Code: "A"}, {Code: "B"}},
		GPUs:     []nodes.Product{{Name: "H100", Count: 2}, {Name: "A40", Count: 1}}, NICs: []nodes.Product{{Name: "CX7", Count: 1}, {Name: "CX7", Count: 1, Role: "excluded"}},
	}, {Name: "b", Namespace: "gdr", Labels: label.Set{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, _, err = a.ask(t, Query{Hardware: true}); err != nil {
		t.Fatal(err)
	}
	want[0].Hardware = &nodes.Hardware{
		GPUs: []nodes.Function{{Address: "1", Name: "A40"}, {Address: "2", Name: "H100"}, {Address: "3", Name: "H100", Family: "nvidia", NUMANode: "0"}},
		NICs: []nodes.Function{
			{Address: "4", Name: "CX7", RDMA: "mlx5_0", Device: "1021", Rail: "0", State: "ACTIVE", Link: "Ethernet", Rate: "400", MTU: "4096", GIDIndex: "3"},
		},
		Software: &nodes.Software{Kernel: "6.8.0", Driver: "570.86.15", DriverOpen: "true"},
	}
	want[1].Hardware = &nodes.Hardware{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with hardware (-want +got):\n%s", diff)
	}
}

// A node whose NICs an agent had to leave out is not one without NICs.
func TestNICsLeftOut(t *testing.T) {
	for text, want := range map[string]bool{
		`"gdr.nic": {"elements": []}`: true, `"gdr.nic": {"elements": null}`: false, `"gdr.gpu": {"elements": []}`: false,
	} {
		a := api{items: []string{feature("a", `}, "spec": {"features": {"attributes": {"gdr.state": {"elements": {}}}, "instances": {`+text+`}}}`)}}
		got, _, err := a.ask(t, Query{Hardware: true})
		if err != nil || (got[0].Hardware.Software != nil) != want {
			t.Errorf("%s: %+v, error %v", text, got[0].Hardware, err)
		}
	}
}

// The labels of the Nodes that a selector selects are read without the Nodes themselves.
func TestNodes(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, r.URL.Path+" "+q.Get("labelSelector")+" "+q.Get("limit")+" "+q.Get("continue")+" "+r.Header.Get("Accept"))
		next := map[string]string{"": "more"}[q.Get("continue")]
		fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": %q},
			"items": [{"metadata": {"name": "n%d", "labels": {"feature.node.kubernetes.io/gdr.level": "PIX", "pool": "train"}}}]}`, next, len(asked))
	}))
	defer server.Close()
	got, err := Nodes(t.Context(), &rest.Config{Host: server.URL}, Query{PageSize: 1}, "pool=train")
	if err != nil {
		t.Fatal(err)
	}
	level := label.Set{"gdr.level": "PIX"}
	if diff := cmp.Diff(map[string]label.Set{"n1": level, "n2": level}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const form = " application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	if diff := cmp.Diff([]string{"/api/v1/nodes pool=train 1 " + form, "/api/v1/nodes pool=train 1 more" + form}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	a := api{status: 403, failing: 1}
	refused := httptest.NewServer(&a)
	defer refused.Close()
	if _, err := Nodes(t.Context(), &rest.Config{Host: refused.URL}, Query{}, "pool=train"); err == nil || !strings.Contains(err.Error(), "you may not list the Nodes; bind the ClusterRole gdr-features-nodes") {
		t.Errorf("error %v", err)
	}
}

// What the cluster has beside the NodeFeatures is asked for once each; what cannot be read is named.
func TestCluster(t *testing.T) {
	answers := map[string]string{
		"/apis/apps/v1/namespaces/gdr/daemonsets": `{"items": [{"status": {"numberReady": 1, "desiredNumberScheduled": 2}}, {"status": {"numberReady": 3, "desiredNumberScheduled": 3}}]}`,
		"/api/v1/namespaces/gdr/pods": `{"items": [{"spec": {"nodeName": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null}]}},
			{"spec": {"nodeName": "b"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, {"spec": {}}]}`,
		"/api/v1/nodes": `{"items": null, "metadata": {}}`,
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.URL.Query().Get("labelSelector"))
		if answers[r.URL.Path] == "" {
			http.NotFound(w, r)
		}
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	defer server.Close()
	got, err := Cluster(t.Context(), &rest.Config{Host: server.URL}, Query{Namespace: "gdr"}, "")
	want := nodes.Cluster{Agents: &nodes.Agents{Ready: 4, Wanted: 5}, Pods: map[string]bool{"a": true, "b": false}, Labels: map[string]label.Set{}, AllNodes: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	const ours = " app.kubernetes.io/name=gdr-features"
	if diff := cmp.Diff([]string{"/apis/apps/v1/namespaces/gdr/daemonsets" + ours, "/api/v1/namespaces/gdr/pods" + ours, "/api/v1/nodes "}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	clear(answers)
	got, err = Cluster(t.Context(), &rest.Config{Host: server.URL}, Query{Namespace: "gdr"}, "")
	if err != nil || len(got.NotRead) != 3 || got.Agents != nil || got.Pods != nil || got.Labels != nil {
		t.Errorf("%+v, error %v", got, err)
	}
	if _, err = Cluster(t.Context(), &rest.Config{Host: server.URL}, Query{Namespace: "gdr"}, "pool=train"); err == nil {
		t.Error("Nodes of a selector that cannot be read are no error")
	}
}

// What an example is filled in from is one word each; anything else is as if it was not there.
func TestExampleHostile(t *testing.T) {
	long := strings.Repeat("x", maxPlain+1)
	nodes := `{"items": [{"metadata": {"name": "a", "labels": {"feature.node.kubernetes.io/gdr.level": "PIX", "pool": "train"}},
		"spec": {"taints": [{"key": "pool", "value": "train", "effect": "NoSchedule"}, {"key": "gpu", "effect": "NoExecute"}, {"key": "k\u009b", "effect": "e"},
			{"key": "k", "value": "v\nw", "effect": "e"}, {"key": "k", "value": "v", "effect": "e}"}, {"key": "", "effect": "e"}, {"key": "k", "value": "` + long + `", "effect": "e"}]},
		"status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "128", "hugepages-1Gi": "4", "x.kubernetes.io/y": "1", "rdma/none": "0",
			"rdma/a: 1\n": "1", "rdma/\u001b[2J": "1", "rdma/ä": "1", "rdma/a b": "1", "rdma/` + long + `": "1", "rdma/a:": "1", "#/a": "1"}}},
		{"metadata": {"name": "b c"}}, {"metadata": {"name": ""}}, {"metadata": {"name": "` + strings.Repeat("x", maxName+1) + `"}}, {"metadata": {"name": "\n"}}]}`
	many := make([]string, 2*maxResources)
	for i := range many {
		many[i] = fmt.Sprintf(`"rdma/%04d": "1"`, i)
	}
	for _, tt := range []struct {
		name, nodes, image, network string
		want                        example.Cluster
	}{
		{
			"odd texts", nodes, `a\nb`, `r\u009b`,
			example.Cluster{
				Nodes: []example.Node{{
					Name: "a", Labels: label.Set{"gdr.level": "PIX"}, Allocatable: map[string]string{"nvidia.com/gpu": "8"},
					Taints: []example.Taint{{Key: "pool", Value: "train", Effect: "NoSchedule"}, {Key: "gpu", Effect: "NoExecute"}},
				}},
				Networks: []example.Network{{Name: "ib"}},
			},
		},
		{
			"usual ones", `{"items": [{"metadata": {"name": "a.example.com"}, "status": {"allocatable": {"vpc.amazonaws.com/efa": "32"}}}]}`,
			"registry.example.com:5000/a_b/gdr-features:v1@sha256:00ff", "openshift.io/mlnx_ib",
			example.Cluster{
				Nodes:    []example.Node{{Name: "a.example.com", Labels: label.Set{}, Allocatable: map[string]string{"vpc.amazonaws.com/efa": "32"}}},
				Networks: []example.Network{{Name: "ib", Resource: "openshift.io/mlnx_ib"}},
				Image:    "registry.example.com:5000/a_b/gdr-features:v1@sha256:00ff",
			},
		},
		{
			"a long image", `{"items": []}`, long, long,
			example.Cluster{Networks: []example.Network{{Name: "ib"}}},
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch path := r.URL.Path; {
			case path == "/api/v1/nodes":
				fmt.Fprint(w, tt.nodes)
			case strings.HasSuffix(path, "/network-attachment-definitions"):
				fmt.Fprintf(w, `{"items": [{"metadata": {"name": "ib", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "%s"}}}, {"metadata": {"name": "a,b"}}]}`, tt.network)
			default:
				fmt.Fprintf(w, `{"items": [{"spec": {"template": {"spec": {"containers": [{"image": "%s"}]}}}}]}`, tt.image)
			}
		}))
		got, err := Example(t.Context(), &rest.Config{Host: server.URL}, Query{}, "", "default")
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", tt.name, err, diff)
		}
		server.Close()
	}
	refused := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no\nimage: evil\u009b", "reason": "Forbidden", "code": 403}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			fmt.Fprintf(w, `{"items": [{"metadata": {"name": "a"}, "spec": {"taints": [%s{"key": "k", "effect": "e"}]}, "status": {"allocatable": {%s}}}]}`,
				strings.Repeat(`{"key": "k", "effect": "e"},`, 2*maxTaints), strings.Join(many, ","))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, refused)
	}))
	defer server.Close()
	got, err := Example(t.Context(), &rest.Config{Host: server.URL}, Query{}, "", "default")
	if err != nil || len(got.Nodes[0].Allocatable) != maxResources || len(got.Nodes[0].Taints) != maxTaints {
		t.Errorf("%d resources, %d taints, error %v", len(got.Nodes[0].Allocatable), len(got.Nodes[0].Taints), err)
	}
	if said := strings.Join(got.Unread, "|"); !strings.Contains(said, "no?image: evil?") {
		t.Errorf("unread: %q", said)
	}
}

// Whoever removes the label that names the agent as the author does not hide the node.
func TestManagedByRemoved(t *testing.T) {
	a := api{items: []string{strings.Replace(feature("a", "}"), `"app.kubernetes.io/managed-by": "gdr-features", `, "", 1)}}
	if got, _, err := a.ask(t, Query{}); err != nil || len(got) != 1 {
		t.Errorf("%v, error %v", got, err)
	}
	if strings.Contains(a.requests[0], "managed-by") {
		t.Errorf("asked %q", a.requests)
	}
}

// Findings and the journal.
func TestFindings(t *testing.T) {
	item := func(check, status, code string) string {
		return fmt.Sprintf(`{"attributes": {"check": %q, "status": %q, "code": %q}}`, check, status, code)
	}
	found := `"gdr.finding": {"elements": [` + strings.Join([]string{
		item("link", "WARN", "LinkDegraded"), item("port", "OK", "X"), item("peermem", "FAIL", "PeermemNotLoaded"), item("x", "WARN", "no code"), item("y", "UNKNOWN", "Unreadable"),
	}, ",") + `]}`
	spec := func(instances string) string {
		return `, "annotations": {"gdr-features/journal": "[{\"time\":\"2026-05-04T11:00:00Z\",\"name\":\"b\"},{\"time\":\"2026-05-04T10:00:00Z\",\"name\":\"a\"}]"}},
			"spec": {"features": {"attributes": {"gdr.state": {"elements": {"findings": "A,B"}}}, "instances": {` + instances + `}}}`
	}
	for instances, want := range map[string][]nodes.Finding{
		found:                             {{Check: "peermem", Status: "FAIL", Code: "PeermemNotLoaded"}, {Check: "link", Status: "WARN", Code: "LinkDegraded"}},
		`"gdr.finding": {"elements": []}`: nil, // an agent that has found nothing
		"":                                {{Code: "A"}, {Code: "B"}},
	} {
		a := api{items: []string{feature("a", spec(instances))}}
		got, _, err := a.ask(t, Query{})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if diff := cmp.Diff(want, got[0].Findings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", instances, diff)
		}
		if c := got[0].Changes; len(c) != 2 || c[0].Name != "a" || c[1].Name != "b" {
			t.Errorf("changes %+v", c)
		}
	}
	a := api{items: []string{feature("a", `, "annotations": {"gdr-features/journal": "{"}}`)}}
	if got, _, err := a.ask(t, Query{}); err != nil || got[0].JournalError == nil {
		t.Errorf("a broken journal: %+v, error %v", got, err)
	}
}

// An error says what to do.
func TestErrors(t *testing.T) {
	for status, want := range map[int]string{
		401: "does not accept these credentials; log in again",
		403: "you may not list the NodeFeatures of namespace gdr; bind the ClusterRole gdr-features-reader",
		404: "has no resource NodeFeature; install Node Feature Discovery",
		410: "list expired twice while it was read; ask for fewer nodes",
		500: "returned a temporary error; try again later",
	} {
		a := api{status: status, failing: 100}
		all, _, err := a.ask(t, Query{Namespace: "gdr"})
		if err == nil || all != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, error %v", status, all, err)
		}
	}
	a := api{status: 403, failing: 1}
	if _, _, err := a.ask(t, Query{}); err == nil || !strings.Contains(err.Error(), "of all namespaces") {
		t.Errorf("in all namespaces: error %v", err)
	}
	_, err := List(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, Query{})
	if err == nil || !strings.Contains(err.Error(), "cannot reach the API server; is this the right --context?") {
		t.Errorf("without server: %v", err)
	}
	for namespace, want := range map[string]string{"gdr": "kubectl -n gdr get daemonsets", "": "kubectl get daemonsets -A"} {
		if err := Nothing(namespace); !strings.Contains(err.Error(), want) {
			t.Errorf("nothing in %q: %v", namespace, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server := httptest.NewServer(&api{})
	defer server.Close()
	if _, err := List(ctx, &rest.Config{Host: server.URL}, Query{}); err == nil {
		t.Error("a list that was given up is no error")
	}
}

// Any object gives at most one line, without control characters.
func FuzzObject(f *testing.F) {
	f.Add(feature("a", "}"))
	f.Add(`{"metadata": {"name": "gdr-features-\n", "labels": {"nfd.node.kubernetes.io/node-name": "\n"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var all []nodes.Node
		items := &meter{from: strings.NewReader(`{"items": [` + text + `]}`), left: maxList}
		if _, err := decode(items, func(o *object) error {
			if n, ok := o.node(texts{}); ok {
				o.hardware(texts{})
				all = append(all, n)
			}
			return nil
		}); err != nil {
			return
		}
		var out strings.Builder
		if err := nodes.Table(&out, all, nodes.Style{Wide: true, Namespaces: true}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != len(all) {
			t.Errorf("%d lines for %d nodes: %q", lines, len(all), out.String())
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
			t.Errorf("control characters in %q", out.String())
		}
		if err := nodes.JSON(&out, all, nil); err != nil {
			t.Error(err)
		}
	})
}
