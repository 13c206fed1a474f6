package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The output of gdr-features as a hook, which is run without arguments, becomes exactly its
// labels in NFD, on every machine. NFD has one parser for the output of hooks and for
// feature files; today it reads only feature files.
func TestHook(t *testing.T) {
	files, err := filepath.Glob(repository + "/testdata/machines/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("machines %v, error %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, dir := machine(t, name, "ready"), t.TempDir()
			want := exported(t, dir) // NFD's labels of the machine that runs the test
			maps.Copy(want, parse(t, printed(t, tree)))

			hook := exec.CommandContext(t.Context(), program("gdr-features"), "--root", tree)
			out, err := hook.Output()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "features.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "features.d", "gdr-features"), out, 0o644); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, exported(t, dir)); diff != "" {
				t.Errorf("labels (-printed +NFD):\n%s", diff)
			}
		})
	}
}

// exported returns the labels that NFD exports with the feature files in dir.
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program("nfd"), "export", "labels")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("nfd export: %v", err)
	}
	var labels map[string]string
	if err := json.Unmarshal(out, &labels); err != nil {
		t.Fatal(err)
	}
	return labels
}
