package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// seen are nodes of a fleet, by name, which TestNodes compares, among those of all other
// tests.
var seen = map[string]struct{ machine, state string }{
	"seen-a": {"dell-xe9680-h100", "ready"},
	"seen-b": {"dell-xe9680-h100", "closed-no-peermem"},
	"seen-c": {"a40-8gpu-2cx7-nccl1343", "dmabuf-only"},
	"seen-d": {"geforce-4x4090", "ready"},
	"seen-e": {"dell-xe9680-h100", "closed-no-peermem"},
	"seen-f": {"epyc-3gpu-phb-nccltests320", "closed-peermem"},
	"seen-g": {"dgx-a100-nps4", "kallsyms-missing"},
}

// seenTable is the table of them.
const seenTable = `NODE     READY     LEVEL   REASON/WARN            AGE
seen-a   true      PIX     -                      ...
seen-b   false     PIX     PeermemNotLoaded +1    ...
seen-c   true      NODE    GPUWithoutNearNIC +1   ...
seen-d   false     -       GPUUnsupported         ...
seen-e   false     PIX     PeermemNotLoaded +1    ...
seen-f   true      NODE    GPUWithoutNearNIC +2   ...
seen-g   unknown   PXB     Unreadable +1          ...
`

const seenSummary = `7 nodes, 3 ready (2 with warnings), 3 not ready, 1 unknown
     2 PeermemNotLoaded
     1 GPUUnsupported
     1 Unreadable
     2 BeyondNCCLDefault (ready)
     2 GPUWithoutNearNIC (ready)
     1 MemoryPeersMissing (ready)
`

// seenWide are the names and what -o wide adds.
const seenWide = `seen-a | PIX | 400 | mixed | passthrough | clear | current | physical | false | - | 8x H100 SXM5 80GB | 8x ConnectX-7, 4x ConnectX-6 Dx
seen-b | PIX | 400 | mixed | passthrough | clear | current | physical | false | - | 8x H100 SXM5 80GB | 8x ConnectX-7, 4x ConnectX-6 Dx
seen-c | PIX | 400 | infiniband | passthrough | clear | current | physical | false | - | 8x A40 | 2x ConnectX-7
seen-d | - | - | infiniband | passthrough | - | current | physical | false | - | 4x GeForce RTX 4090 | 1x ConnectX-6
seen-e | PIX | 400 | mixed | passthrough | clear | current | physical | false | - | 8x H100 SXM5 80GB | 8x ConnectX-7, 4x ConnectX-6 Dx
seen-f | PHB | 25 | ethernet | passthrough | clear | current | physical | false | - | 2x RTX A6000, 1x A100 PCIe 40GB | 2x ConnectX-4 Lx
seen-g | PXB | 200 | infiniband | passthrough | clear | - | physical | false | - | 8x A100 SXM4 40GB | 11x ConnectX-6`

// shell runs a command line with our programs, kubectl among them, as the
// administrator of a kubeconfig.
func shell(t *testing.T, kubeconfig, line string) (out, errs string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "PATH=" + filepath.Dir(program("kubectl")) + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("%s: %v", line, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// age is a cell of a table of kubectl with an age, and the spaces around it. How many there are
// after it depends on the longest age of the column.
var age = regexp.MustCompile(`(?m)(^| {3})(?:\d+[smhdy])+(?:( {3}) *|$)`)

// masked hides the ages of a table.
func masked(table string) string {
	table = regexp.MustCompile(`(?m)(^chain: .*\(|^ +"seconds": )\d+`).ReplaceAllString(table, "${1}...")
	return age.ReplaceAllString(table, "${1}...${2}")
}

func TestMasked(t *testing.T) {
	for table, want := range map[string]string{
		"a   PIX   9s\nb   -     2m5s\n":                   "a   PIX   ...\nb   -     ...\n",
		"a   24.10   9s     PIX   8x H100 SXM5 80GB\n":     "a   24.10   ...   PIX   8x H100 SXM5 80GB\n",
		"a   24.10   2m5s   PIX   8x H100 SXM5 80GB\n":     "a   24.10   ...   PIX   8x H100 SXM5 80GB\n",
		"7 nodes, 3 ready\n     2 PeermemNotLoaded\n":      "7 nodes, 3 ready\n     2 PeermemNotLoaded\n",
		`  "written": "2026-05-04T11:00:00Z",   "gpus": 8`: `  "written": "2026-05-04T11:00:00Z",   "gpus": 8`,
	} {
		if got := masked(table); got != want {
			t.Errorf("%q becomes %q, want %q", table, got, want)
		}
	}
}

// withoutChain leaves out the line about the chain, what belongs to it, and the empty line after it:
// nodes of other tests come and go.
func withoutChain(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for len(lines) > 0 && (strings.HasPrefix(lines[0], "chain: ") || strings.HasPrefix(lines[0], "  ") || lines[0] == "\n") {
		lines = lines[1:]
	}
	return strings.Join(lines, "")
}

// prints runs a command line that must succeed, once by kubectl and once by
// gdr-features, which print the same. Nodes of other tests come and go in between, so
// that it tries again where they differ.
func prints(t *testing.T, kubeconfig, args string) string {
	t.Helper()
	const tries = 5
	for try := 1; ; try++ {
		var texts []string
		for _, how := range []string{"kubectl gdr ", "gdr-features nodes "} {
			out, errs, status := shell(t, kubeconfig, how+args)
			if status != 0 || errs != "" {
				t.Fatalf("%s%s: status %d\n%s%s", how, args, status, out, errs)
			}
			texts = append(texts, masked(out))
		}
		diff := cmp.Diff(texts[0], texts[1])
		if diff != "" && try == tries {
			t.Errorf("%s (-kubectl gdr +gdr-features nodes):\n%s", args, diff)
		}
		if diff == "" || try == tries {
			return texts[0]
		}
	}
}

// fails runs a command line that must fail with one line that contains the text.
func fails(t *testing.T, kubeconfig, line, text string) {
	t.Helper()
	out, errs, status := shell(t, kubeconfig, line)
	if status != 1 || out != "" || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "gdr-features: ") || !strings.Contains(errs, text) {
		t.Errorf("%s: status %d, no %q in\n%s%s", line, status, text, out, errs)
	}
}

// asGroup writes a kubeconfig with only the rights of a group.
func asGroup(t *testing.T, group string) string {
	t.Helper()
	name, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("user: {tokenFile:"), fmt.Appendf(nil, "user: {as: somebody, as-groups: [%s], tokenFile:", group), 1)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The table of a fleet: real agents on different machines, with the rights of our reader
// role, through kubectl.
func TestNodes(t *testing.T) {
	slow(t)
	t.Parallel()
	trees := map[string]string{}
	var agents []*agent
	for name, is := range seen {
		trees[name] = machine(t, is.machine, is.state)
		agents = append(agents, newNode(t, &shared, name).run(t, trees[name]))
	}
	for _, a := range agents {
		want := labelsOf(t, a.tree)
		if err := until(t.Context(), patience, func(ctx context.Context) error { return a.right(ctx, want) }); err != nil {
			t.Fatal(err)
		}
		if err := a.process.stop(); err != nil { // other tests need the CPUs
			t.Fatal(err)
		}
	}
	kubeconfig := asGroup(t, "gpu-admins")
	fails(t, kubeconfig, "kubectl gdr", "you may not list the NodeFeatures of namespace gdr-features; bind the ClusterRole gdr-features-reader of deploy/examples/reader.yaml: nodefeatures.nfd.k8s-sigs.io is forbidden")
	const notRead = "\n  not read: Nodes: you may not list the Nodes; bind the ClusterRole gdr-features-nodes of deploy/examples/reader.yaml: nodes is forbidden"
	rights := shipped(t, "examples/reader.yaml")
	for i, part := range [][]*unstructured.Unstructured{rights[:2], rights[2:]} { // those of the namespace, those for Nodes
		if err := shared.apply(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if err := until(t.Context(), patience, func(context.Context) error {
			out, errs, status := shell(t, kubeconfig, "kubectl gdr")
			if not := strings.Count(out, notRead); status != 0 || not != 1-i || strings.Count(out, "  not read:") != not {
				return fmt.Errorf("status %d: %.300s%s", status, out, errs)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	testSeen(t, kubeconfig, trees)

	// The whole fleet, counted.
	all, _, _ := shell(t, kubeconfig, "kubectl gdr --no-headers") // the nodes of other tests come and go
	rows := strings.Split(all, "\n")
	for name := range seen {
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, name+" ") }) {
			t.Errorf("%s is not among all nodes: %q", name, rows)
		}
	}
	hack, err := filepath.Abs(repository + "/hack")
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, _ := shell(t, kubeconfig, "PATH=$PATH:"+hack+" kubectl __complete gdr --ready ''"); !strings.Contains(out, "unknown\n:4") {
		t.Errorf("kubectl completes %s%s", out, errs)
	}
	fails(t, kubeconfig, "kubectl gdr -A", "you may not list the NodeFeatures of all namespaces")
	fails(t, kubeconfig, "kubectl gdr -n default", "you may not list the NodeFeatures of namespace default")
	admin := asGroup(t, "system:masters")
	fails(t, admin, "kubectl gdr -n default", "no agent has published a NodeFeature in namespace default; is the DaemonSet running there?")
	fails(t, admin, "kubectl gdr seen-z", "no agent has published a NodeFeature of seen-z")
	if out, _, _ := shell(t, admin, "kubectl gdr -A --no-headers seen-a"); !strings.HasPrefix(out, agentName+"   seen-a   true") {
		t.Errorf("in all namespaces: %s", out)
	}
}

// testSeen compares all output formats for the nodes.
func testSeen(t *testing.T, kubeconfig string, trees map[string]string) {
	names := " " + strings.Join(slices.Sorted(maps.Keys(seen)), " ")
	for _, args := range []string{"", "--chunk-size=2", "--chunk-size=0"} {
		if diff := cmp.Diff(seenTable+"\n"+seenSummary, withoutChain(prints(t, kubeconfig, args+names))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	if diff := cmp.Diff(seenSummary, withoutChain(prints(t, kubeconfig, "--summary"+names))); diff != "" {
		t.Errorf("--summary (-want +got):\n%s", diff)
	}
	for args, want := range map[string]string{
		"--ready true":    "seen-a seen-c seen-f",
		"--ready unknown": "seen-g",
		"--ready false --reason PeermemNotLoaded":    "seen-b seen-e",
		"--reason GPUUnsupported,Unreadable":         "seen-d seen-g",
		"-l 'gdr.level in (NODE, PHB),gdr.gpus>4'":   "seen-c",
		"-l " + prefix + "gdr.level=PIX,gdr.peermem": "seen-a seen-b seen-e",
	} {
		var got []string
		for line := range strings.Lines(prints(t, kubeconfig, "--no-headers "+args+names)) {
			got = append(got, strings.Fields(line)[0])
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}

	var wide []string
	for line := range strings.Lines(prints(t, kubeconfig, "--no-headers -o wide"+names)) {
		cells := regexp.MustCompile(` {3,}`).Split(strings.TrimSpace(line), -1)
		wide = append(wide, strings.Join(append(cells[:1], cells[10:]...), " | "))
	}
	if diff := cmp.Diff(seenWide, strings.Join(wide, "\n")); diff != "" {
		t.Errorf("-o wide (-want +got):\n%s", diff)
	}
	testSeenJSON(t, prints(t, kubeconfig, "-o json"+names), trees)
}

// testSeenJSON compares the values of the JSON with what `gdr-features labels`
// prints on the machines.
func testSeenJSON(t *testing.T, text string, trees map[string]string) {
	var got struct {
		Nodes []struct {
			Node, Capable, Ready, Reason, Level, Peermem, DMABuf, MOFED string
			GPUs                                                        int
			Written                                                     time.Time
		}
		Summary struct{ Nodes, Ready int }
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Nodes) != len(seen) || got.Summary.Nodes != len(seen) || got.Summary.Ready != 3 {
		t.Fatalf("%d nodes, summary %+v", len(got.Nodes), got.Summary)
	}
	for _, n := range got.Nodes {
		want := labelsOf(t, trees[n.Node])
		for name, value := range map[string]string{
			"gpudirect.rdma.capable": n.Capable, "gpudirect.rdma": n.Ready, "gdr.reason": n.Reason, "gdr.level": n.Level,
			"gdr.peermem": n.Peermem, "gdr.dmabuf": n.DMABuf, "gdr.mofed": n.MOFED, "gdr.gpus": fmt.Sprint(n.GPUs),
		} {
			if value == "unknown" {
				value = ""
			}
			if want[prefix+name] != value {
				t.Errorf("%s: %s is %q, on the machine %q", n.Node, name, value, want[prefix+name])
			}
		}
		if age := time.Since(n.Written); age < 0 || age > 5*time.Minute {
			t.Errorf("%s: written at %v", n.Node, n.Written)
		}
	}
}

// An API server without Node Feature Discovery, and none at all.
func TestNodesWithoutNFD(t *testing.T) {
	c := ownCluster(t, "without-nfd", "", (*cluster).startAPI)
	kubeconfig, err := c.kubeconfig(c.dir, "admin", c.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	fails(t, kubeconfig, "gdr-features nodes", "the API server has no resource NodeFeature; install Node Feature Discovery 0.14 or newer")
	stranger, err := c.kubeconfig(c.dir, "stranger", "no-such-token")
	if err != nil {
		t.Fatal(err)
	}
	fails(t, stranger, "gdr-features nodes", "the API server does not accept these credentials")
	if err := c.api.stop(); err != nil {
		t.Fatal(err)
	}
	fails(t, kubeconfig, "gdr-features nodes", "cannot reach the API server; is this the right --context?")
}
