//go:build release

// Package release tests what `make release` has built: that another build gives the same
// bytes, that everything is in it, that its bills of materials are complete, and that it
// can be pushed to a registry and pulled again. build.sh builds what it needs.
package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/machine"
)

// The release built in another directory, with COLD=1 from an empty build cache, has the same files
// with the same content.
func TestSameBytes(t *testing.T) {
	sums := [2]map[string]string{}
	for i, directory := range []string{one, two} {
		files, err := os.ReadDir(directory)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files, error %v", len(files), err)
		}
		sums[i] = map[string]string{}
		for _, f := range files {
			body, err := os.ReadFile(filepath.Join(directory, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			sums[i][f.Name()] = fmt.Sprintf("%x", sha256.Sum256(body))
		}
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("the builds differ (-one +two):\n%s", diff)
	}
}

// sha256sum accepts SHA256SUMS, which has every other file but its signature.
func TestSums(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	c.Dir = one
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	files, err := os.ReadDir(one)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(artifact(t, "SHA256SUMS"), []byte("\n")); lines != len(files)-2 {
		t.Errorf("%d lines for %d files", lines, len(files))
	}
}

// platforms of each product; the node's programs run on Linux alone.
var platforms = map[string][]string{
	"gdr-features": {"linux-amd64", "linux-arm64"},
	"kubectl-gdr":  {"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64", "windows-arm64"},
}

// each runs a test for each archive of programs.
func each(t *testing.T, test func(t *testing.T, product, platform, name string)) {
	for product, all := range platforms {
		for _, platform := range all {
			name := product + "-" + version + "-" + platform
			t.Run(name, func(t *testing.T) { test(t, product, platform, name) })
		}
	}
}

// programs of an archive by name.
func programs(t *testing.T, platform, name string) map[string]member {
	suffix, file := "", name+".tar.gz"
	if strings.HasPrefix(platform, "windows") {
		suffix, file = ".exe", name+".zip"
	}
	found := map[string]member{}
	for path, m := range unpack(t, file) {
		if base := strings.TrimPrefix(path, "bin/"); slices.Contains([]string{"gdr-features", "gdr-features-agent", "kubectl-gdr"}, strings.TrimSuffix(base, suffix)) && strings.HasSuffix(base, suffix) {
			found[base] = m
		}
	}
	if len(found) == 0 {
		t.Fatalf("no program in %s", file)
	}
	return found
}

// Each archive has the files that it should, with the right modes.
func TestArchives(t *testing.T) {
	pages, err := filepath.Glob("../../man/*.1")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %q, error %v", pages, err)
	}
	var documents []string
	for _, tree := range []string{"docs", "deploy"} {
		err := fs.WalkDir(os.DirFS("../.."), tree, func(file string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(file) != ".go" {
				documents = append(documents, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(documents) < 100 {
		t.Fatalf("only %d documents", len(documents))
	}
	each(t, func(t *testing.T, product, platform, name string) {
		want := map[string]fs.FileMode{"LICENSE": 0o644, "THIRD-PARTY-LICENSES": 0o644, "README.md": 0o644, "CHANGELOG.md": 0o644}
		archive := name + ".tar.gz"
		switch {
		case product == "gdr-features":
			for _, program := range []string{"gdr-features", "gdr-features-agent", "kubectl-gdr", "kubectl_complete-gdr"} {
				want["bin/"+program] = 0o755
			}
			for _, page := range pages {
				want["share/man/man1/"+filepath.Base(page)] = 0o644
			}
			for _, link := range []string{"kubectl-gdr.1", "gdr-features-agent.1"} {
				want["share/man/man1/"+link] = fs.ModeSymlink | 0o777
			}
			for _, document := range append(documents, "SECURITY.md") {
				want[document] = 0o644
			}
			for _, completion := range []string{"bash-completion/completions/gdr-features", "zsh/site-functions/_gdr-features", "fish/vendor_completions.d/gdr-features.fish"} {
				want["share/"+completion] = 0o644
			}
		case strings.HasPrefix(platform, "windows"):
			archive = name + ".zip"
			want["kubectl-gdr.exe"], want["kubectl_complete-gdr.cmd"] = 0o755, 0o644
		default:
			want["kubectl-gdr"], want["kubectl_complete-gdr"] = 0o755, 0o755
		}
		if product == "kubectl-gdr" {
			want["reader.yaml"] = 0o644
		}
		got := map[string]fs.FileMode{}
		for path, m := range unpack(t, archive) {
			got[path] = m.mode
			if len(m.body) == 0 && m.link == "" {
				t.Errorf("%s is empty", path)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	})
}

// info returns the build information of a program.
func info(t *testing.T, m member) *buildinfo.BuildInfo {
	t.Helper()
	found, err := buildinfo.Read(bytes.NewReader(m.body))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Every program is for its platform, and was built the same way wherever that was.
func TestPrograms(t *testing.T) {
	each(t, func(t *testing.T, _, platform, name string) {
		system, arch, _ := strings.Cut(platform, "-")
		for program, m := range programs(t, platform, name) {
			settings := map[string]string{}
			for _, s := range info(t, m).Settings {
				settings[s.Key] = s.Value
			}
			for key, want := range map[string]string{"GOOS": system, "GOARCH": arch, "CGO_ENABLED": "0", "-trimpath": "true", "vcs.revision": ""} {
				if settings[key] != want {
					t.Errorf("%s: %s is %q, want %q", program, key, settings[key], want)
				}
			}
			if here, err := os.Getwd(); err != nil || bytes.Contains(m.body, []byte(filepath.Dir(filepath.Dir(here)))) {
				t.Errorf("%s names the directory it was built in, error %v", program, err)
			}
		}
	})
}

// starts are the commands that programs of Linux are started with here: arm64's run in QEMU.
var starts = map[string][]string{"linux-amd64": {"env"}, "linux-arm64": {"qemu-aarch64"}}

// The programs for Linux run, and what gdr-features prints of a machine is what it prints
// elsewhere.
func TestRun(t *testing.T) {
	const example = "oke-gb200-v3"
	if _, err := exec.LookPath("qemu-aarch64"); err != nil {
		t.Fatalf("%v: on Debian, apt-get install --no-install-recommends qemu-user", err)
	}
	tree := t.TempDir()
	if err := machine.LayOut("../../testdata/machines/"+example+".txt", "ready", tree); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../testdata/golden/" + example + "/labels.txt")
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, _, platform, name string) {
		if starts[platform] == nil {
			return
		}
		for program, m := range programs(t, platform, name) {
			file := filepath.Join(t.TempDir(), program)
			if err := os.WriteFile(file, m.body, 0o755); err != nil {
				t.Fatal(err)
			}
			prints := func(args ...string) string {
				t.Helper()
				start := slices.Concat(starts[platform], []string{file}, args)
				out, err := exec.CommandContext(t.Context(), start[0], start[1:]...).CombinedOutput()
				if err != nil {
					t.Errorf("%q: %v\n%s", start, err, out)
				}
				return string(out)
			}
			asked := map[string]string{"gdr-features": "version", "kubectl-gdr": "--version", "gdr-features-agent": "version"}[program]
			if out := prints(asked); !strings.Contains(out, version) {
				t.Errorf("%s says %s", program, out)
			}
			if program != "gdr-features" {
				continue
			}
			if diff := cmp.Diff(string(want), prints("labels", "--root="+tree)); diff != "" {
				t.Errorf("labels (-golden +%s):\n%s", platform, diff)
			}
		}
	})
}

// The SBOM of the image has the programs of both platforms, and these are those of the
// archives.
func TestImage(t *testing.T) {
	layout := untar(t, artifact(t, "gdr-features-"+version+"-image.tar"))
	b := readBOM(t, "gdr-features-"+version+"-image.cdx.json")
	blob := func(digest string) []byte {
		return layout["./blobs/"+strings.Replace(digest, ":", "/", 1)].body
	}
	type descriptor struct {
		Digest   string
		Platform struct{ OS, Architecture string }
	}
	var index struct{ Manifests []descriptor }
	decode(t, layout["./index.json"].body, &index)
	if hash := b.Metadata.Component.Hashes[0].Content; "sha256:"+hash != index.Manifests[0].Digest {
		t.Errorf("the SBOM is for %s, not %s", hash, index.Manifests[0].Digest)
	}
	var list struct{ Manifests []descriptor }
	decode(t, blob(index.Manifests[0].Digest), &list)
	if len(list.Manifests) != 2 {
		t.Errorf("%d platforms", len(list.Manifests))
	}
	for _, d := range list.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		decode(t, blob(d.Digest), &manifest)
		var config struct {
			Config struct{ Labels map[string]string }
		}
		decode(t, blob(manifest.Config.Digest), &config)
		for label, want := range map[string]string{
			"title": "gdr-features", "version": version, "revision": commit(t),
			"source": "https://example.com/gdr-features", "licenses": "Apache-2.0", "created": "2026-01-01T00:00:00Z",
		} {
			if got := config.Config.Labels["org.opencontainers.image."+label]; got != want {
				t.Errorf("label %s is %q, want %q", label, got, want)
			}
		}
		platform := d.Platform.OS + "-" + d.Platform.Architecture
		archived := programs(t, platform, "gdr-features-"+version+"-"+platform)
		files := map[string]member{}
		for _, layer := range manifest.Layers {
			plain, _ := gunzip(t, blob(layer.Digest))
			maps.Copy(files, untar(t, plain))
		}
		for _, program := range []string{"gdr-features", "gdr-features-agent"} {
			checkProgram(t, b, platform+"/"+program, files[program])
			if !bytes.Equal(files[program].body, archived[program].body) {
				t.Errorf("%s: %s differs between image and archive", platform, program)
			}
		}
	}
}

// commit returns the commit that the release was built from.
func commit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(".bin/commit")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}
