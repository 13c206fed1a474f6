// Package bounds_test holds the page about inputs against the code.
package bounds_test

import (
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPage: SECURITY.md has the bounds of each input as they are in the code.
func TestPage(t *testing.T) {
	page := read(t, "SECURITY.md")
	for _, b := range []struct{ file, name, input, unit string }{
		{"source/kmod/kallsyms.go", "maxKallsyms", "`/sys`", "`/proc/kallsyms` N MiB"},
		{"source/kmod/kconfig.go", "maxKernelConfig", "`/sys`", "a kernel configuration N MiB"},
		{"host/host.go", "maxLine", "`/sys`", "a line N bytes"},
		{"internal/rooms/snapshot/text.go", "maxText", "a snapshot", "N MiB"},
		{"internal/rooms/snapshot/text.go", "maxAnswers", "a snapshot", "N answers"},
		{"internal/rooms/snapshot/text.go", "maxNames", "a snapshot", "N names"},
		{"internal/rooms/snapshot/text.go", "maxPairs", "a snapshot", "N pairs"},
		{"topology/nccl/file.go", "MaxFile", "`--topology-file`", "file of N MiB"},
		{"topology/nccl/file.go", "maxElements", "`--topology-file`", "N elements"},
		{"topology/nccl/file.go", "maxNested", "`--topology-file`", "N levels"},
		{"internal/yamlfile/yamlfile.go", "MaxSize", "`--expect`", "file of N KiB"},
		{"internal/fleet/image/tree.go", "mostBytes", "an image", "N MiB read"},
		{"internal/fleet/image/tree.go", "mostSteps", "an image", "N parts"},
		{"internal/fleet/image/tree.go", "mostEntries", "an image", "N names"},
		{"internal/fleet/image/library.go", "mostSections", "an image", "N sections"},
		{"internal/fleet/image/library.go", "mostSection", "an image", "N MiB of a section"},
		{"internal/fleet/image/loader.go", "mostCached", "an image", "N entries"},
		{"internal/fleet/image/verbs.go", "mostProviders", "an image", "N providers"},
		{"internal/fleet/joblog/lines.go", "longest", "a job's log", "N KiB of a line"},
		{"internal/fleet/joblog/joblog.go", "limit", "a job's log", "N MiB of what"},
		{"cmd/gdr-features/envcheck.go", "maxGiven", "`env --check", "file of N MiB"},
		{"cmd/gdr-features/envcheck.go", "maxGiven", "the folder that `proof` reads", "one of N MiB"},
		{"cmd/gdr-features/proof.go", "maxOutputs", "the folder that `proof` reads", "N files"},
		{"cmd/gdr-features/proof.go", "maxOutputBytes", "the folder that `proof` reads", "N MiB in all"},
		{"cmd/kubectl-gdr/run.go", "maxKubeconfig", "a kubeconfig of `kubectl", "file of N MiB"},
		{"cmd/gdr-features-agent/access.go", "maxAccess", "a kubeconfig of the agent", "file of N MiB"},
		{"internal/publish/nodefeature/bounds.go", "maxToken", "a kubeconfig of the agent", "file of N MiB"},
		{"internal/publish/nodefeature/bounds.go", "maxAnswer", "answers of the API server to the agent", "at N MiB"},
		{"internal/fleet/nodes/apiserver/bounds.go", "maxObject", "answers of the API server to `kubectl", "an object N MiB"},
		{"internal/fleet/nodes/apiserver/bounds.go", "maxList", "answers of the API server to `kubectl", "a list N MiB"},
		{"internal/fleet/nodes/apiserver/bounds.go", "maxPages", "answers of the API server to `kubectl", "N pages"},
		{"internal/fleet/nodes/apiserver/bounds.go", "maxObjects", "answers of the API server to `kubectl", "N objects"},
		{"internal/fleet/nodes/apiserver/bounds.go", "maxToken", "answers of the API server to `kubectl", "token of N KiB"},
		{"internal/fleet/nodes/apiserver/bounds.go", "maxName", "answers of the API server to `kubectl", "names of N characters"},
		{"cmd/gdr-features-agent/serve.go", "maxConnections", "HTTP", "N connections"},
		{"cmd/gdr-features-agent/serve.go", "maxHeader", "HTTP", "headers of N KiB"},
		{"internal/monitor/monitor.go", "maxScrapes", "HTTP", "N scrapes"},
		{"internal/uevent/uevent.go", "maxMessage", "kernel uevents", "N KiB a message"},
	} {
		size := value(t, b.file, b.name)
		switch {
		case strings.Contains(b.unit, "MiB"):
			size >>= 20
		case strings.Contains(b.unit, "KiB"):
			size >>= 10
		}
		want := strings.Replace(b.unit, "N", strconv.FormatInt(size, 10), 1)
		if line := row(page, b.input); !regexp.MustCompile(`(^|[ ;])` + regexp.QuoteMeta(want)).MatchString(line) {
			t.Errorf("%s, %s: the row lacks %q: %s", b.file, b.name, want, line)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// value is that of a constant.
func value(t *testing.T, file, name string) int64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s*(?:const )?` + name + ` *= *([^/\n]+)`).FindStringSubmatch(read(t, file))
	if m == nil {
		t.Fatalf("%s has no constant %s", file, name)
	}
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, m[1])
	if err != nil {
		t.Fatal(err)
	}
	size, _ := constant.Int64Val(v.Value)
	return size
}

// row is that of a table which begins with a text.
func row(page, input string) string {
	_, row, _ := strings.Cut(page, "\n| "+input)
	row, _, _ = strings.Cut(row, "\n")
	return row
}
