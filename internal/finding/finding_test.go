package finding_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/verdict"
)

// TestFind: what a check says becomes its finding, with the files of its evidence, and texts
// from the machine do not act on a terminal.
func TestFind(t *testing.T) {
	var about finding.Subjects
	about.Add("a\x1b[2J", "/sys/bus/pci/devices/0000:01:00.0/driver=x")
	c := finding.Check[string]{
		Name: "example", Sources: []string{"/sys/class/infiniband"}, Facts: []kmod.Fact{kmod.FactDriver},
		Codes: []finding.Code{"NoGPU", "Unreadable"},
		Judge: func(of string) finding.Said {
			switch of {
			case "unmet":
				return finding.Unmet(verdict.NoGPU, "of %s", about).Of(about).Do("first\n", "").Do("second").Saw("/sys/class/infiniband/mlx5_0/p=1", "/b=1", "/b=1")
			case "exact":
				return finding.Unmet(verdict.NoGPU, "x").As("Exact").And(", more")
			case "unknown":
				return finding.Unknown("x").Because(verdict.Unreadable)
			case "ok":
				return finding.OK("100%%")
			}
			return finding.Said{}
		},
	}
	files := func(kmod.Fact) []string { return []string{"/a/memory_peers/nv_mem", "/b"} }
	sources := []string{"/sys/class/infiniband", "/a/memory_peers", "/b"}
	for of, want := range map[string]finding.Finding{
		"unmet": {
			Check: "example", Status: "FAIL", Reason: "NoGPU", Code: "NoGPU", Detail: "of a?[2J", Fix: []string{"first?", "second"},
			Sources:  append(sources[:3:3], "/sys/bus/pci/devices/*/driver"),
			Evidence: []string{"/sys/bus/pci/devices/0000:01:00.0/driver=x", "/sys/class/infiniband/mlx5_0/p=1", "/b=1"},
		},
		"exact":   {Check: "example", Status: "FAIL", Reason: "NoGPU", Code: "Exact", Detail: "x, more", Sources: sources},
		"unknown": {Check: "example", Status: "UNKNOWN", Reason: "Unreadable", Code: "Unreadable", Detail: "x", Sources: sources},
		"ok":      {Check: "example", Status: "OK", Detail: "100%", Sources: sources},
		"nothing": {},
	} {
		got, found := c.Find(of, files)
		if diff := cmp.Diff(want, got); diff != "" || found != (of != "nothing") {
			t.Errorf("%s: found %v (-want +got):\n%s", of, found, diff)
		}
	}
}

// TestFirstFew: a sentence names three, and counts the others.
func TestFirstFew(t *testing.T) {
	for want, list := range map[string][]string{"": nil, "a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b, c and 2 more": {"a", "b", "c", "d", "e"}} {
		if got := finding.FirstFew(list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
