package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
)

// README.md is what helm-docs makes of README.md.gotmpl and of the comments in values.yaml.
func TestReadme(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "tool", "helm-docs", "--log-level=warning", "--dry-run",
		"--chart-search-root="+dir, "--template-files=README.md.gotmpl", "--sort-values-order=file")
	cmd.Stderr = os.Stderr
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "README.md")
	if update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		diff, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(string(got)), B: difflib.SplitLines(string(want)), Context: 1})
		t.Errorf("%s is not what UPDATE=1 hack/check.sh chart writes:\n%s", path, diff)
	}
}
