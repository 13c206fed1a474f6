package nodes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	return []Node{
		{"a", "gdr", set(hgx + state + "gpudirect.rdma=true gdr.peermem=true gdr.dmabuf=true"), now.Add(-30 * time.Second), gpus, nics, nil},
		{"b", "gdr", set(hgx + state + "gpudirect.rdma=true gdr.peermem=false gdr.dmabuf=true"), now.Add(-5 * time.Hour), gpus, nics, nil},
		{"c", "gdr", set(hgx + state + "gpudirect.rdma=false gdr.reason=PeermemNotLoaded gdr.peermem=false gdr.dmabuf=false"), now.Add(-100 * time.Hour), gpus, nics, nil},
		{"d", "gdr", set("gpudirect.rdma.capable=false gpudirect.rdma=false gdr.reason=NoNIC gdr.gpus=4 gdr.nics=0 gdr.mofed=inbox"), time.Time{}, []Product{{Name: "A40", Count: 4}}, nil, nil},
		{"e", "gdr", set("gdr.reason=Unreadable"), now.Add(time.Hour), nil, nil, nil},
		{"f", "gdr", label.Set{}, now.Add(-time.Minute), nil, nil, nil},
		{"g", "gdr", set("gpudirect.rdma=false gdr.reason=PeermemNotLoaded"), now.Add(-time.Minute), nil, nil, nil},
	}
}

const narrowTable = `NODE   CAPABLE   READY     LEVEL   GPUS   NICS   MECHANISM   MOFED         REASON             AGE
a      true      true      PIX     8      10     both        24.10-1.1.4   -                  30s
b      true      true      PIX     8      10     DMA-BUF     24.10-1.1.4   -                  5h
c      true      false     PIX     8      10     -           24.10-1.1.4   PeermemNotLoaded   4d4h
d      false     false     -       4      0      -           inbox         NoNIC              -
e      unknown   unknown   -       -      -      -           -             Unreadable         <invalid>
f      -         -         -       -      -      -           -             -                  60s
g      unknown   false     -       -      -      -           -             PeermemNotLoaded   60s
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
		{"wide", all[2:4], Style{Headers: true, Wide: true, Namespaces: true}, `NAMESPACE   NODE   CAPABLE   READY   LEVEL   GPUS   NICS   MECHANISM   MOFED         REASON             AGE    BEST   RATE   LINK         IOMMU         ACS     PEERDIRECT   TOPOLOGY   STORAGE   EXPECTED   GPU-PRODUCTS        NIC-PRODUCTS
gdr         c      true      false   PIX     8      10     -           24.10-1.1.4   PeermemNotLoaded   4d4h   PIX    400    infiniband   passthrough   clear   current      physical   false     true       8x H100 SXM5 80GB   8x ConnectX-7, 2x BlueField-3 (north-south)
gdr         d      false     false   -       4      0      -           inbox         NoNIC              -      -      -      -            -             -       -            -          -         -          4x A40              -
`},
		{"no headers", all[:1], Style{}, "a   true   true   PIX   8   10   both   24.10-1.1.4   -   30s\n"},
		{"long", []Node{{Name: strings.Repeat("é", 1<<20)}}, Style{}, strings.Repeat("é", 119) + "…   -   -   -   -   -   -   -   -   -\n"},
		{"hostile", []Node{{Name: "x\x1b[2J\ny\tz"}}, Style{}, "x?[2J?y?z   -   -   -   -   -   -   -   -   -\n"},
	} {
		test.style.Now = now
		var out strings.Builder
		if err := Table(&out, test.nodes, test.style); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestSummary(t *testing.T) {
	for want, all := range map[string][]Node{
		"7 nodes, 2 ready, 3 not ready, 1 unknown, 1 without labels\n     2 PeermemNotLoaded\n     1 NoNIC\n     1 Unreadable\n": fleet(),
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
		if ofNodes, err := f.Select(test.selector, false); ofNodes != "" || err != nil {
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
	for _, wrong := range []string{"pool=train", "gdr.level in", "=", "example.com/gdr.level=PIX", label.DefaultPrefix + "pci-15b3.present"} {
		if _, err := new(Filter).Select(wrong, false); err == nil {
			t.Errorf("selector %q is no error", wrong)
		}
	}
}

// A selector may name labels of Nodes that no agent publishes; those are for the API server.
func TestSelectNodes(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"gdr.level=PIX":                 "",
		"pool=train":                    "pool=train",
		"pool=train,gdr.level in (PIX)": label.DefaultPrefix + "gdr.level in (PIX),pool=train",
		label.DefaultPrefix + "pci-15b3.present=true":          label.DefaultPrefix + "pci-15b3.present=true",
		label.DefaultPrefix + "pci-15b3.present,gdr.level=PIX": label.DefaultPrefix + "gdr.level=PIX," + label.DefaultPrefix + "pci-15b3.present",
		"!pool," + label.DefaultPrefix + "gdr.gpus>4":          label.DefaultPrefix + "gdr.gpus>4,!pool",
	} {
		var f Filter
		got, err := f.Select(text, true)
		if err != nil || got != want {
			t.Errorf("%s: %q, error %v; want %q", text, got, err, want)
		}
		if got == "" {
			continue
		}
		f.Only = map[string]bool{"b": true, "d": true}
		if picked := f.Pick(fleet()); len(picked) != 2 || picked[0].Name != "b" || picked[1].Name != "d" {
			t.Errorf("%s: picked %v", text, picked)
		}
	}
	if _, err := new(Filter).Select("pool in", true); err == nil {
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
	known, unknown := fleet()[2], Node{Name: "x", Namespace: "gdr", Labels: label.Set{"gdr.gpus": "many"}}
	var out strings.Builder
	if err := JSON(&out, []Node{known, unknown}); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "nodes": [
    {
      "node": "c",
      "namespace": "gdr",
      "capable": "true",
      "ready": "false",
      "reason": "PeermemNotLoaded",
      "peermem": "false",
      "dmabuf": "false",
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
      "written": "2026-04-30T08:00:00Z"
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
      "written": null
    }
  ],
  "summary": {
    "nodes": 2,
    "ready": 0,
    "notReady": 1,
    "unknown": 1,
    "unlabelled": 0,
    "reasons": [
      {
        "reason": "PeermemNotLoaded",
        "nodes": 1
      }
    ]
  }
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
