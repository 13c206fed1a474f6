//go:build release

package release

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bom is what we read of a bill of materials.
type bom struct {
	SpecVersion string
	Metadata    struct {
		Timestamp string
		Component component
	}
	Components   []component
	Dependencies []struct {
		Ref       string
		DependsOn []string
	}
}

type component struct {
	Ref                 string `json:"bom-ref"`
	Type, Name, Version string
	PURL                string
	Hashes              []struct{ Alg, Content string }
	Licenses            []struct{ License struct{ ID string } }
}

func readBOM(t *testing.T, name string) bom {
	t.Helper()
	var b bom
	if err := json.Unmarshal(artifact(t, name), &b); err != nil {
		t.Fatal(err)
	}
	if b.Metadata.Timestamp != "2026-01-01T00:00:00Z" {
		t.Errorf("%s: from %s", name, b.Metadata.Timestamp)
	}
	refs := map[string]bool{b.Metadata.Component.Ref: true}
	for _, c := range b.Components {
		if refs[c.Ref] || len(c.Licenses) == 0 || c.Licenses[0].License.ID == "" {
			t.Errorf("%s: %s is there twice, or without license", name, c.Ref)
		}
		refs[c.Ref] = true
	}
	for _, d := range b.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !refs[ref] {
				t.Errorf("%s: %s is no component", name, ref)
			}
		}
	}
	return b
}

// checkProgram compares a program with its component in a bill of materials: its checksum,
// and the modules that `go version -m` shows.
func checkProgram(t *testing.T, b bom, ref string, m member) {
	t.Helper()
	i := slices.IndexFunc(b.Components, func(c component) bool { return c.Ref == ref })
	if i < 0 {
		t.Fatalf("no component %s", ref)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(m.body)); len(b.Components[i].Hashes) != 1 || b.Components[i].Hashes[0].Content != sum {
		t.Errorf("%s: checksums %v, not %s", ref, b.Components[i].Hashes, sum)
	}
	built := info(t, m)
	want := []string{"pkg:golang/stdlib@" + strings.TrimPrefix(built.GoVersion, "go")}
	for _, d := range built.Deps {
		want = append(want, "pkg:golang/"+d.Path+"@"+d.Version)
	}
	slices.Sort(want)
	for _, d := range b.Dependencies {
		if d.Ref == ref {
			if diff := cmp.Diff(want, d.DependsOn); diff != "" {
				t.Errorf("%s: modules (-go version -m, +SBOM):\n%s", ref, diff)
			}
			return
		}
	}
	t.Errorf("%s depends on nothing", ref)
}

// The bill of materials of an archive has every program and every module in it, and the
// texts of all licenses lie beside the programs.
func TestBillsOfMaterials(t *testing.T) {
	each(t, func(t *testing.T, _, platform, name string) {
		b := readBOM(t, name+".cdx.json")
		found := programs(t, platform, name)
		var archive map[string]member
		if strings.HasPrefix(platform, "windows") {
			archive = unpack(t, name+".zip")
		} else {
			archive = unpack(t, name+".tar.gz")
		}
		texts := string(archive["THIRD-PARTY-LICENSES"].body)
		for program, m := range found {
			checkProgram(t, b, platform+"/"+strings.TrimSuffix(program, ".exe"), m)
			for _, d := range info(t, m).Deps {
				if strings.Count(texts, d.Path+" "+d.Version+": ") < 2 { // in the list, and above a text
					t.Errorf("no license of %s %s", d.Path, d.Version)
				}
			}
		}
		applications := slices.DeleteFunc(b.Components, func(c component) bool { return c.Type != "application" })
		if len(applications) != len(found) {
			t.Errorf("%d programs in the SBOM, %d in the archive", len(applications), len(found))
		}
	})
}
