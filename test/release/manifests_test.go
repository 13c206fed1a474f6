//go:build release

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kubeVersion is what Helm renders for: a Helm built by go install has an old default.
const kubeVersion = "--kube-version=1.35.0"

// tool runs a program that build.sh has built, and returns what it prints.
func tool(t *testing.T, environment []string, name string, args ...string) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// images returns the images that manifests name.
func images(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if image, ok := strings.CutPrefix(strings.TrimLeft(line, " -"), "image: "); ok {
			all = append(all, strings.Trim(strings.TrimSpace(image), `"`))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Helm accepts the chart, which has the version and the image of the release, and the same
// image is in install.yaml and images.txt.
func TestManifests(t *testing.T) {
	chart := filepath.Join(one, "gdr-features-"+number+".tgz")
	tool(t, nil, "helm", "lint", "--strict", chart)
	shown := tool(t, nil, "helm", "show", "chart", chart)
	for _, want := range []string{"name: gdr-features\n", "version: " + number + "\n", "appVersion: " + version + "\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	want := []string{"registry.example.com/gdr-features:" + version}
	for name, got := range map[string][]string{
		"chart":        images(tool(t, nil, "helm", "template", kubeVersion, "gdr-features", chart)),
		"install.yaml": images(string(artifact(t, "install.yaml"))),
		"images.txt":   strings.Fields(string(artifact(t, "images.txt"))),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: images %q, want %q", name, got, want)
		}
	}
}

// krew installs the plugin on every platform from the manifest and the archive that it
// names, whose checksum it compares. (It downloads nothing here.)
func TestKrew(t *testing.T) {
	manifest := string(artifact(t, "gdr.yaml"))
	for _, platform := range platforms["kubectl-gdr"] {
		t.Run(platform, func(t *testing.T) {
			system, arch, _ := strings.Cut(platform, "-")
			archive, program := "kubectl-gdr-"+version+"-"+platform+".tar.gz", "kubectl-gdr"
			if system == "windows" {
				archive, program = strings.Replace(archive, ".tar.gz", ".zip", 1), program+".exe"
			}
			if uri := "https://example.com/gdr-features/releases/download/" + version + "/" + archive; !strings.Contains(manifest, uri) {
				t.Errorf("no %s in the manifest", uri)
			}
			root := t.TempDir()
			tool(t, []string{"KREW_ROOT=" + root, "KREW_OS=" + system, "KREW_ARCH=" + arch}, "krew",
				"install", "--manifest="+filepath.Join(one, "gdr.yaml"), "--archive="+filepath.Join(one, archive))
			for _, file := range []string{program, "LICENSE", "THIRD-PARTY-LICENSES"} {
				if _, err := os.Stat(filepath.Join(root, "store/gdr", version, file)); err != nil {
					t.Error(err)
				}
			}
			if platform == "linux-amd64" {
				if want := "kubectl krew install --manifest=gdr.yaml --archive=" + archive + "\n"; documented(t, guide, "kubectl krew ") != want {
					t.Errorf("%s does not say %s", guide, want)
				}
				out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin/kubectl-gdr"), "--help").CombinedOutput()
				if err != nil || !strings.Contains(string(out), "kubectl gdr") {
					t.Errorf("%v\n%s", err, out)
				}
			}
		})
	}
}

// rpm reads the packages: name, version and architecture, the files, the configuration file,
// and what runs when it is installed and removed.
func TestRPM(t *testing.T) {
	for arch, name := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		t.Run(name, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join(one, "gdr-features-"+number+"-1."+name+".rpm"))
			if err != nil {
				t.Fatal(err)
			}
			query := func(args ...string) string {
				out, err := exec.CommandContext(t.Context(), "rpm", append([]string{"--dbpath=" + t.TempDir(), "--package", file, "--query"}, args...)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v\n%s", args, err, out)
				}
				return string(out)
			}
			if got, want := query("--queryformat", "%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE} %{BUILDTIME} %{BUILDHOST}"),
				"gdr-features 1.0.0 1 "+name+" Apache-2.0 1767225600 localhost"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got := query("--configfiles"); got != "/etc/gdr-features/config.yaml\n" {
				t.Errorf("configuration files %s", got)
			}
			scripts := query("--scripts")
			for _, want := range []string{"systemd-sysusers", "disable --now gdr-features.service", "features.d/gdr-features.features"} {
				if !strings.Contains(scripts, want) {
					t.Errorf("no %q in the scripts", want)
				}
			}
			check := exec.CommandContext(t.Context(), "rpm", "--dbpath="+t.TempDir(), "--checksig", "--nosignature", file)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			var debs []string
			for line := range strings.Lines(list(t, "gdr-features_"+number+"-1_"+arch+".deb")) {
				debs = append(debs, strings.TrimSpace(line))
			}
			var rpms []string
			for line := range strings.Lines(query("--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]")) {
				if mode, file, _ := strings.Cut(strings.TrimSpace(line), " "); mode[0] != 'd' {
					rpms = append(rpms, file)
				}
			}
			slices.Sort(debs)
			slices.Sort(rpms)
			if !slices.Equal(debs, rpms) {
				t.Errorf("files of the .deb\n%q\nfiles of the .rpm\n%q", debs, rpms)
			}
		})
	}
}

// list returns the names of the files of a Debian package, without directories.
func list(t *testing.T, name string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "bash", "-c", `set -o pipefail; dpkg-deb --fsys-tarfile "$0" | tar -tf - | sed -n 's/^\.\(.*[^/]\)$/\1/p'`, filepath.Join(one, name))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
