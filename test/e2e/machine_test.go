package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	repository = "../.."
	prefix     = "feature.node.kubernetes.io/"
)

// machine writes the files of a machine to a new directory and gives its name.
func machine(t *testing.T, name, state string) string {
	t.Helper()
	tree := t.TempDir()
	description := filepath.Join(repository, "testdata/machines", name+".txt")
	if out, err := exec.CommandContext(t.Context(), program("mktree"), description, tree, state).CombinedOutput(); err != nil {
		t.Fatalf("mktree: %v\n%s", err, out)
	}
	return tree
}

// printed returns what `gdr-features labels` prints on the machine in the tree.
func printed(t *testing.T, tree string) []byte {
	t.Helper()
	return printedBy(t, agentName, tree)
}

// printedBy is printed with the program of another version, by its path below .bin.
func printedBy(t *testing.T, path, tree string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(path), "labels", "--root", tree, "--log-level=error")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("gdr-features labels: %v", err)
	}
	return out
}

// parse returns the labels that `gdr-features labels` has printed.
func parse(t *testing.T, out []byte) map[string]string {
	t.Helper()
	labels := map[string]string{}
	for line := range strings.Lines(string(out)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !strings.HasPrefix(key, prefix) {
			t.Fatalf("gdr-features labels printed %q", line)
		}
		labels[key] = value
	}
	return labels
}

// labelsOf returns the labels of the machine in the tree, which must have some.
func labelsOf(t *testing.T, tree string) map[string]string {
	t.Helper()
	labels := parse(t, printed(t, tree))
	if len(labels) == 0 {
		t.Fatal("gdr-features labels printed nothing")
	}
	return labels
}

// module is a kernel module on which only the label gpudirect.storage depends.
const module = "nvidia_fs"

// load makes the module live on the machine in the tree, in one step.
func load(t *testing.T, tree string) {
	t.Helper()
	beside := filepath.Join(tree, "loading")
	if err := os.Mkdir(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(beside, "initstate"), []byte("live\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, filepath.Join(tree, "sys/module", module)); err != nil {
		t.Fatal(err)
	}
}

// unload removes the module again, in one step.
func unload(t *testing.T, tree string) {
	t.Helper()
	beside := filepath.Join(tree, "unloading")
	if err := os.Rename(filepath.Join(tree, "sys/module", module), beside); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(beside); err != nil {
		t.Fatal(err)
	}
}
