package nodes

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/journal"
	"gdr-features/internal/label"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// fleet is a node of each kind, sorted by name.
func fleet() []Node {
	set := func(pairs string) label.Set {
		s := label.Set{}
		for pair := range strings.FieldsSeq(pairs) {
			key, value, _ := strings.Cut(pair, "=")
			s[key] = value
		}
		return s
	}
	hgx := "gpudirect.rdma.capable=true gdr.level=PIX gdr.level.best=PIX gdr.gpus=8 gdr.nics=10 gdr.nccl-default=true gdr.topology=physical "
	state := "gdr.mofed=24.10-1.1.4 gdr.peerdirect=current gdr.rate=400 gdr.link=infiniband gdr.iommu=passthrough gdr.acs=clear gpudirect.storage=false gdr.expected=true "
	gpus, nics := []Product{{Name: "H100 SXM5 80GB", Count: 8}}, []Product{{Name: "ConnectX-7", Count: 8}, {Name: "BlueField-3", Count: 2, Role: "north-south"}}
	warned := []Finding{{"link", Warn, "LinkDegraded"}, {"port", Warn, "NearPortDown"}}
	failed := []Finding{{"peermem", Fail, "PeermemNotLoaded"}, {"dmabuf", Fail, "ClosedDriver"}, {"link", Warn, "LinkDegraded"}}
	changes := []journal.Change{{Time: now.Add(-48 * time.Hour), Name: "gdr.rate", New: "400"}, {Time: now.Add(-3 * time.Minute), Name: "LinkDegraded", New: "WARN"}}
	return []Node{
		{Name: "a", Namespace: "gdr", Labels: set(hgx + state + "gpudirect.rdma=true gdr.peermem=true gdr.dmabuf=true"), Written: now.Add(-30 * time.Second), GPUs: gpus, NICs: nics},
		{Name: "b", Namespace: "gdr", Labels: set(hgx + state + "gpudirect.rdma=true gdr.peermem=false gdr.dmabuf=true"), Written: now.Add(-5 * time.Hour), GPUs: gpus, NICs: nics, Findings: warned, Changes: changes},
		{Name: "c", Namespace: "gdr", Labels: set(hgx + state + "gpudirect.rdma=false gdr.reason=PeermemNotLoaded gdr.peermem=false gdr.dmabuf=false"), Written: now.Add(-100 * time.Hour), GPUs: gpus, NICs: nics, Findings: failed},
		{Name: "d", Namespace: "gdr", Labels: set("gpudirect.rdma.capable=false gpudirect.rdma=false gdr.reason=NoNIC gdr.gpus=4 gdr.nics=0 gdr.mofed=inbox"), GPUs: []Product{{Name: "A40", Count: 4}}},
		{Name: "e", Namespace: "gdr", Labels: set("gdr.reason=Unreadable"), Written: now.Add(time.Hour)},
		{Name: "f", Namespace: "gdr", Labels: label.Set{}, Written: now.Add(-time.Minute)},
		{Name: "g", Namespace: "gdr", Labels: set("gpudirect.rdma=false gdr.reason=PeermemNotLoaded"), Written: now.Add(-time.Minute)},
	}
}

const narrowTable = `NODE   READY     LEVEL   REASON/WARN           AGE
a      true      PIX     -                     30s
b      true      PIX     LinkDegraded +1       3m
c      false     PIX     PeermemNotLoaded +2   4d4h
d      false     -       NoNIC                 -
e      unknown   -       Unreadable            <invalid>
f      -         -       -                     60s
g      false     -       PeermemNotLoaded      60s
`

// terminalTable has lines of 80 columns.
const terminalTable = `NODE                                 READY     LEVEL   REASON/WARN           AGE
ip-10-0-127-211.u…compute.internal   false     PIX     PeermemNotLoaded +2   11m
gke-prod-us-centr…ga-8f2a1c9d-x7qk   unknown   PIX     -                     17h
b                                    true      PIX     -                     -
`

func TestTable(t *testing.T) {
	all := fleet()
	for _, test := range []struct {
		name  string
		nodes []Node
		style Style
		want  string
	}{
		{"narrow", all, Style{Headers: true}, narrowTable},
		{"wide", all[2:4], Style{Headers: true, Wide: true, Namespaces: true}, `NAMESPACE   NODE   CAPABLE   READY   LEVEL   GPUS   NICS   MECHANISM   MOFED         REASON/WARN           AGE    BEST   RATE   LINK         IOMMU         ACS     PEERDIRECT   TOPOLOGY   STORAGE   EXPECTED   GPU-PRODUCTS        NIC-PRODUCTS
gdr         c      true      false   PIX     8      10     -           24.10-1.1.4   PeermemNotLoaded +2   4d4h   PIX    400    infiniband   passthrough   clear   current      physical   false     true       8x H100 SXM5 80GB   8x ConnectX-7, 2x BlueField-3 (north-south)
gdr         d      false     false   -       4      0      -           inbox         NoNIC                 -      -      -      -            -             -       -            -          -         -          4x A40              -
`},
		{"no headers", all[:1], Style{}, "a   true   PIX   -   30s\n"},
		{"long", []Node{{Name: strings.Repeat("é", 1<<20)}}, Style{}, strings.Repeat("é", 119) + "…   -   -   -   -\n"},
		{"a terminal", []Node{
			{Name: "ip-10-0-127-211.us-west-2.compute.internal", Labels: all[2].Labels, Findings: all[2].Findings, Written: now.Add(-11 * time.Minute)},
			{Name: "gke-prod-us-central1-gpu-a3-mega-8f2a1c9d-x7qk", Labels: label.Set{"gdr.level": "PIX"}, Written: now.Add(-17 * time.Hour)},
			{Name: "b", Labels: all[0].Labels},
		}, Style{Columns: 80, Headers: true}, terminalTable},
		{"hostile", []Node{{Name: "x\x1b[2J\ny\tz"}}, Style{}, "x?[2J?y?z   -   -   -   -\n"},
	} {
		test.style.Now = now
		var out strings.Builder
		if err := Table(&out, test.nodes, test.style); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if wide := utf8.RuneCountInString(line) - 1; test.style.Columns > 0 && wide > test.style.Columns {
				t.Errorf("%s: %d columns: %s", test.name, wide, line)
			}
		}
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestSummary(t *testing.T) {
	for want, all := range map[string][]Node{
		"7 nodes, 2 ready (1 with warnings), 3 not ready, 1 unknown, 1 without labels\n     2 PeermemNotLoaded\n     1 NoNIC\n     1 Unreadable\n     1 LinkDegraded (ready)\n     1 NearPortDown (ready)\n": fleet(),
		"1 node, 1 ready\n":  fleet()[:1],
		"0 nodes, 0 ready\n": nil,
	} {
		s := Summarize(all)
		var out strings.Builder
		if err := s.Text(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if s.Ready+s.NotReady+s.Unknown+s.Unlabelled != s.Nodes {
			t.Errorf("does not add up: %+v", s)
		}
	}
}

func TestFilter(t *testing.T) {
	for _, test := range []struct {
		ready, reasons, selector, want string
	}{
		{"", "", "", "a b c d e f g"},
		{"true", "", "", "a b"},
		{"false", "", "", "c d g"},
		{"unknown", "", "", "e"},
		{"", "PeermemNotLoaded", "", "c g"},
		{"", "NoNIC Unreadable", "", "d e"},
		{"true", "NoNIC", "", ""},
		{"", "", "gdr.level=PIX", "a b c"},
		{"", "", label.DefaultPrefix + "gdr.level=PIX,gdr.peermem=true", "a"},
		{"", "", "gdr.level in (PIX, PXB),gdr.peermem!=true", "b c"},
		{"", "", "!gdr.gpus", "e f g"},
		{"", "", "gdr.gpus>4", "a b c"},
		{"false", "PeermemNotLoaded", "gdr.level", "c"},
	} {
		f := Filter{Ready: test.ready, Reasons: strings.Fields(test.reasons)}
		if ofNodes, err := f.Select(test.selector); ofNodes != "" || err != nil {
			t.Fatal(ofNodes, err)
		}
		var got []string
		for _, n := range f.Pick(fleet()) {
			got = append(got, n.Name)
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("ready %q, reasons %q, selector %q: %q, want %q", test.ready, test.reasons, test.selector, got, test.want)
		}
	}
	for _, wrong := range []string{"gdr.level in", "="} {
		if _, err := new(Filter).Select(wrong); err == nil {
			t.Errorf("selector %q is no error", wrong)
		}
	}
}

// Labels of ours are those that agents have published, all others are for the API server.
func TestSelectNodes(t *testing.T) {
	const train = "pool=train"
	for text, want := range map[string]struct{ ofNodes, picked string }{
		"":                              {"", "a b c d e f g"},
		"gdr.level=PIX":                 {"", "a b c"},
		train:                           {train, "b d"},
		"pool=train,gdr.level in (PIX)": {train, "b"},
		label.DefaultPrefix + "pci-15b3.present=true":                   {label.DefaultPrefix + "pci-15b3.present=true", "b d"},
		"!pool,example.com/gdr.x," + label.DefaultPrefix + "gdr.gpus>4": {"example.com/gdr.x,!pool", "b"},
	} {
		var f Filter
		ofNodes, err := f.Select(text)
		if ofNodes != "" { // what the API server would say
			f.Only = map[string]label.Set{"b": {}, "d": {}}
		}
		var got []string
		for _, n := range f.Pick(fleet()) {
			got = append(got, n.Name)
		}
		if picked := strings.Join(got, " "); err != nil || ofNodes != want.ofNodes || picked != want.picked {
			t.Errorf("%s: %q picks %q, error %v; want %q", text, ofNodes, picked, err, want)
		}
	}
	if _, err := new(Filter).Select("pool in"); err == nil {
		t.Error("a wrong selector is no error")
	}
}

func TestMissing(t *testing.T) {
	if got := Missing([]string{"z", "a", "y", "z"}, fleet()); !slices.Equal(got, []string{"y", "z"}) {
		t.Errorf("missing: %q", got)
	}
	if got := Missing(nil, nil); got != nil {
		t.Errorf("missing of none: %q", got)
	}
}

func TestSort(t *testing.T) {
	all := []Node{{Name: "b", Namespace: "x"}, {Name: "a", Namespace: "y"}, {Name: "a", Namespace: "x"}}
	Sort(all)
	want := []Node{{Name: "a", Namespace: "x"}, {Name: "a", Namespace: "y"}, {Name: "b", Namespace: "x"}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every field, as it is known and as it is not.
func TestJSON(t *testing.T) {
	known, unknown := fleet()[1], Node{Name: "x", Namespace: "gdr", Labels: label.Set{"gdr.gpus": "many"}}
	var out strings.Builder
	if err := JSON(&out, []Node{known, unknown}, nil); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "nodes": [
    {
      "node": "b",
      "namespace": "gdr",
      "capable": "true",
      "ready": "true",
      "reason": "",
      "peermem": "false",
      "dmabuf": "true",
      "storage": "false",
      "expected": "true",
      "peerdirect": "current",
      "mofed": "24.10-1.1.4",
      "level": "PIX",
      "levelBest": "PIX",
      "ncclDefault": true,
      "gpus": 8,
      "nics": 10,
      "dataDirect": false,
      "topology": "physical",
      "rate": 400,
      "link": "infiniband",
      "iommu": "passthrough",
      "acs": "clear",
      "gpuProducts": [
        {
          "name": "H100 SXM5 80GB",
          "count": 8
        }
      ],
      "nicProducts": [
        {
          "name": "ConnectX-7",
          "count": 8
        },
        {
          "name": "BlueField-3",
          "count": 2,
          "role": "north-south"
        }
      ],
      "findings": [
        {
          "check": "link",
          "status": "WARN",
          "code": "LinkDegraded"
        },
        {
          "check": "port",
          "status": "WARN",
          "code": "NearPortDown"
        }
      ],
      "changed": "2026-05-04T11:57:00Z",
      "written": "2026-05-04T07:00:00Z"
    },
    {
      "node": "x",
      "namespace": "gdr",
      "capable": "unknown",
      "ready": "unknown",
      "reason": "",
      "peermem": "unknown",
      "dmabuf": "unknown",
      "storage": "unknown",
      "expected": "unknown",
      "peerdirect": "",
      "mofed": "",
      "level": "",
      "levelBest": "",
      "ncclDefault": null,
      "gpus": null,
      "nics": null,
      "dataDirect": false,
      "topology": "",
      "rate": null,
      "link": "",
      "iommu": "",
      "acs": "",
      "gpuProducts": [],
      "nicProducts": [],
      "findings": [],
      "changed": null,
      "written": null
    }
  ],
  "summary": {
    "nodes": 2,
    "ready": 1,
    "notReady": 0,
    "unknown": 1,
    "unlabelled": 0,
    "reasons": [],
    "warned": 1,
    "warnings": [
      {
        "reason": "LinkDegraded",
        "nodes": 1
      },
      {
        "reason": "NearPortDown",
        "nodes": 1
      }
    ]
  },
  "chain": null
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
