package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// stray is a GPU and an Ethernet card that no table has.
const stray = `
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a
    0000:16:00.0 gpu 10de:2330
  0000:15:02.0 port 8086:352a
    0000:17:00.0 eth fade:0001 rdma=fade_0 driver=fade_net
`

// TestUnlisted: what makes a function a NIC that no table has, and what does not. A way that is
// proven for other NICs proves nothing.
func TestUnlisted(t *testing.T) {
	const entry = "sys/class/infiniband/fade_0"
	words := func(words ...string) string { return strings.NewReplacer(words...).Replace(stray) }
	for _, tc := range []struct {
		name, text string
		change     func(t *testing.T, dir string)
		reason     verdict.Reason
		capable    tristate.State
		kept       bool // the label, as it was published
	}{
		{"an RDMA device", stray, nil, "NICNotJudged", tristate.Unknown, false},
		{"no RDMA device", words("rdma=fade_0", ""), nil, "NoNIC", tristate.False, false},
		{"InfiniBand", words("eth fade", "ib fade", "rdma=fade_0", ""), nil, "NICNotJudged", tristate.Unknown, false},
		{"a fabric controller without a driver", words("eth fade", "020800 fade", "rdma=fade_0 driver=fade_net", "driver=none"), nil, "NICNotJudged", tristate.Unknown, false},
		{"another class, with an RDMA device", words("eth fade", "120000 fade"), nil, "NICNotJudged", tristate.Unknown, false},
		{"rxe of an old kernel, which is below the card", stray, put(entry+"/parent", "eth0\n"), "NoNIC", tristate.False, false},
		{"siw of an old kernel, which is below the card", stray, put(entry+"/node_desc", "Software iWARP stack\n"), "NoNIC", tristate.False, false},
		{"rxe", words("rdma=fade_0", ""), virtual("rxe0"), "NoNIC", tristate.False, false},
		{"an RDMA device without a place", stray, func(t *testing.T, dir string) {
			t.Helper()
			relink(t, dir, entry, "nowhere")
		}, "Unreadable", tristate.Unknown, true},
		{"RDMA devices that cannot be listed", words("rdma=fade_0", ""), put("sys/class/infiniband", "garbage\n"), "Unreadable", tristate.Unknown, true},
		{"a virtual function of a NIC that is too old", words("eth fade:0001", "ib 15b3:673c", "rdma=fade_0 driver=fade_net",
			"\n    0000:17:00.1 ib fade:0002 physfn=0000:17:00.0 rdma=fade_0 driver=fade_net"), nil, "NICUnsupported", tristate.False, false},
		{"beside a NIC that is judged", stray + "    0000:17:00.2 ib 15b3:1021 rdma=mlx5_0\n", nil, "", tristate.True, false},
		{
			"no names of an RDMA device at all, beside a NIC that is judged", stray + "    0000:17:00.2 ib 15b3:1021 rdma=mlx5_0\n",
			func(t *testing.T, dir string) {
				t.Helper()
				relink(t, dir, entry, "nowhere")
			}, "", tristate.True, false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := parse(t, tc.text).Tree(t, state(t, "ready"))
			if tc.change != nil {
				tc.change(t, dir)
			}
			r := collect(t, dir, source.What{})
			if r.Verdict.Capable != tc.capable || r.Verdict.Reason != tc.reason {
				t.Errorf("capable %v, %s, want %v, %s", r.Verdict.Capable, r.Verdict.Reason, tc.capable, tc.reason)
			}
			if r.Unknown[label.Capable] != tc.kept {
				t.Errorf("what was published is kept: %v", !tc.kept)
			}
			if tc.capable == tristate.True {
				return
			}
			if r.Verdict.Peermem != tristate.Unknown || r.Verdict.DMABuf != tristate.Unknown {
				t.Errorf("without a pair: peermem %v, dmabuf %v", r.Verdict.Peermem, r.Verdict.DMABuf)
			}
		})
	}
}

// TestUnlistedShown: programs are told what such a NIC is, and that it is not judged.
func TestUnlistedShown(t *testing.T) {
	r := collect(t, parse(t, stray).Tree(t, state(t, "ready")), source.What{Details: true})
	var out bytes.Buffer
	if err := render.TopoJSON(&out, &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"family": "other"`, `"vendor": "fade"`, `"device": "0001"`, `"note": "in no table: listed and not judged"`, `"eligible": false`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := render.Topo(&out, &r); err != nil || !strings.Contains(out.String(), "in no table") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestUnlistedExcluded: a NIC that no table has can be excluded, and there is none then.
func TestUnlistedExcluded(t *testing.T) {
	fs, err := host.Open(host.Options{Root: parse(t, stray).Tree(t, state(t, "ready"))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	exclude, err := pci.ParseExclusion([]string{"fade:0001"})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Collect(t.Context(), fs, report.Options{Exclude: exclude})
	if r.Verdict.Reason != verdict.NoNIC || len(r.Matrix.NICs) != 1 || !r.Matrix.NICs[0].Excluded() {
		t.Errorf("%s, NICs %+v", r.Verdict.Reason, r.Matrix.NICs)
	}
}

// TestEmptiedGPU: where the ids of the only GPU cannot be read there is no pair, and no way is
// published that was not.
func TestEmptiedGPU(t *testing.T) {
	for _, text := range []string{stray, strings.Replace(stray, "eth fade:0001 rdma=fade_0 driver=fade_net", "ib 15b3:1021 rdma=mlx5_0", 1)} {
		dir := parse(t, text).Tree(t, state(t, "ready"))
		for _, file := range []string{"modalias", "vendor", "device", "class"} {
			put("sys/bus/pci/devices/0000:16:00.0/"+file, "")(t, dir)
		}
		r := collect(t, dir, source.What{})
		if r.Verdict.Peermem != tristate.Unknown || r.Verdict.DMABuf != tristate.Unknown || r.Verdict.Ready == tristate.True || r.Verdict.Capable == tristate.True {
			t.Errorf("%s: peermem %v, dmabuf %v, ready %v, capable %v", text, r.Verdict.Peermem, r.Verdict.DMABuf, r.Verdict.Ready, r.Verdict.Capable)
		}
	}
}

// put returns a change of a tree that writes a file, in the place of whatever is there.
func put(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// virtual returns a change that adds an RDMA device of software.
func virtual(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		put("sys/devices/virtual/infiniband/"+name+"/node_type", "1: CA\n")(t, dir)
		relink(t, dir, "sys/class/infiniband/"+name, "../../devices/virtual/infiniband/"+name)
	}
}

func relink(t *testing.T, dir, name, to string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}
