// Package install tests what `make install` puts where.
package install

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInstall: every program, page and completion is installed in its place and
// works there.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("hack/check.sh long runs it: it compiles all programs once more, without the race detector")
	}
	dir := t.TempDir()
	sh := func(command string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "bash", "-c", "set -eu; "+command)
		c.Env = append(os.Environ(), "DIR="+dir, "PATH="+dir+"/opt/gdr/bin:"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	sh(`umask 077; make -C ../.. install DESTDIR="$DIR" PREFIX=/opt/gdr`)

	modes := map[string]fs.FileMode{}
	root := filepath.Join(dir, "opt/gdr")
	if err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(path) // of what a link names
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		modes[name] = info.Mode()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{
		"bin/gdr-features": 0o755, "bin/gdr-features-agent": 0o755, "bin/kubectl-gdr": 0o755, "bin/kubectl_complete-gdr": 0o755,
		"share/bash-completion/completions/gdr-features": 0o644, "share/zsh/site-functions/_gdr-features": 0o644,
		"share/fish/vendor_completions.d/gdr-features.fish": 0o644,
		"share/man/man1/kubectl-gdr.1":                      0o644,
		"share/man/man1/gdr-features-agent.1":               0o644,
	}
	pages, err := filepath.Glob("../../man/*.1")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %q, error %v", pages, err)
	}
	for _, page := range pages {
		want["share/man/man1/"+filepath.Base(page)] = 0o644
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("installed (-want +got):\n%s", diff)
	}

	for command, want := range map[string]string{
		"gdr-features version":                         "gdr-features ",
		"gdr-features-agent version":                   "gdr-features-agent ",
		"gdr-features run --no-such-flag 2>&1 || :":    "unknown flag: --no-such-flag",
		"gdr-features nodes --chunk-size=-1 2>&1 || :": "--chunk-size: must be 0 or more", // kubectl-gdr says so
		"gdr-features run --config /no/such 2>&1 ||:":  "--config: open /no/such",         // and gdr-features-agent
		"kubectl_complete-gdr --ready ''":              "unknown\n",
		// As bash-completion loads it, and asks.
		`. "$DIR/opt/gdr/share/bash-completion/completions/gdr-features"; complete -p gdr-features`: "__start_gdr-features gdr-features",
	} {
		if got := sh(command); !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in %s", command, want, got)
		}
	}
	for file := range modes {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || !strings.Contains(string(text), "gdr") {
			t.Errorf("%s: error %v, %d bytes", file, err, len(text))
		}
	}
}
