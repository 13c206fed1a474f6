package featurefile

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/source/family"
)

// NFD itself reads every label from a fresh file, and the hardware's alone from
// one whose state has expired. The directory of feature files is a variable that
// only the linker can set.
func TestNFDReads(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	const variable = "sigs.k8s.io/node-feature-discovery/source/local.featureFilesDir"
	p := newPublisher(t)
	parse := filepath.Join(t.TempDir(), "parse")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", parse, "-ldflags", "-X "+variable+"="+p.dir+"/",
		"gdr-features/nfdsource/testdata/parse")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := ready()
	for name := range nodelabel.All(family.Known()) {
		if all[name] == "" {
			all[name] = "x.-_9"
		}
	}
	tests := []struct {
		name         string
		age          time.Duration
		labels, want label.Set
	}{
		{"fresh", 0, all, all},
		{"nearly expired", stateTTL - time.Minute, all, all},
		{"expired", stateTTL + time.Minute, all, hardware(all)},
		{"no state", 1000 * time.Hour, hardware(all), hardware(all)},
		{"no hardware", 0, label.Set{label.Ready: "true"}, label.Set{label.Ready: "true"}},
		{"nothing", 0, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p.clock = time.Now().Add(-test.age)
			p.must(true, test.labels)
			out, err := exec.CommandContext(t.Context(), parse).Output()
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want.Prefixed(label.DefaultPrefix), got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			p.clock = time.Now()
			last, err := p.Last(t.Context())
			if diff := cmp.Diff(got, last.Labels.Prefixed(label.DefaultPrefix)); diff != "" || err != nil {
				t.Errorf("read back, error %v (-NFD +we):\n%s", err, diff)
			}
		})
	}
}
