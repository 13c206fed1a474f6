package findings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdr-features/test/machine"
)

const evidencePage = "../../docs/evidence.md"

// TestEvidence: docs/evidence.md is what the tests are made of.
func TestEvidence(t *testing.T) {
	var page strings.Builder
	page.WriteString(evidenceHead)
	writeProofs(t, &page)
	writeStates(t, &page)
	writeMachines(t, &page)
	writeOracles(t, &page)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(evidencePage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(evidencePage)
	if err != nil || string(got) != page.String() {
		t.Errorf("%s is not what the tests have: make golden writes it (%v)", evidencePage, err)
	}
}

const evidenceHead = `# Evidence

<!-- Made from the tests by make golden -->

What gdr-features says rests on files and logs that others have published, on the sources of kernels and drivers, and on
answers of other programs. This page lists them. Each row is a test: what it says changes with the test.

## Measured on hardware

`

func writeProofs(t *testing.T, page *strings.Builder) {
	t.Helper()
	proofs, err := filepath.Glob("../../testdata/proofs/*/about.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(proofs) == 0 {
		page.WriteString(`**Nothing yet.** No developer had a node with both a GPU and an RDMA NIC: no label, level or finding has been compared
with a transfer that was measured on the same node. Nor was any of this tried on such a node: the agent over a reboot,
a driver upgrade or a port that goes down; ` + "`--probe-verbs`" + ` with a NIC that registers GPU memory; a job started with
what ` + "`env`" + ` prints; the commands that fixes name.

`)
	} else {
		page.WriteString("| node | source |\n|---|---|\n")
		for _, file := range proofs {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, source, _ := strings.Cut(string(text), "source ")
			source, _, _ = strings.Cut(source, "\n")
			fmt.Fprintf(page, "| %s | %s |\n", filepath.Base(filepath.Dir(file)), cell(source))
		}
		page.WriteString("\n")
	}
	page.WriteString("Whoever has one can [add what was measured](../CONTRIBUTING.md#adding-a-proof-from-hardware). `test/proofs` holds verdict and\nlevel against it.\n")
}

func writeStates(t *testing.T, page *strings.Builder) {
	t.Helper()
	logs, err := filepath.Glob("../fleet/joblog/testdata/logs/*")
	if err != nil || len(logs) == 0 {
		t.Fatal("no logs", err)
	}
	var published []failure
	made := 0
	for _, f := range failures() {
		if f.from == "" {
			made++
			continue
		}
		published = append(published, f)
	}
	slices.SortStableFunc(published, func(a, b failure) int { return strings.Compare(a.from, b.from) })
	fmt.Fprintf(page, `
## Published states

%d states of nodes, each with the report or the source that describes it. TestFailures (internal/findings) lays each out,
expects the finding, and expects it gone once the cause is. %d further states follow from sources alone. %d logs of jobs
are read by TestLogs (internal/fleet/joblog); the first line of each names its thread.

| what happened there | source | what check says |
|---|---|---|
`, len(published), made, len(logs))
	for _, f := range published {
		says := fmt.Sprintf("[%s](reasons/%[1]s.md)", f.code)
		if f.noTrace != "" {
			says = "nothing, as no file shows it: " + f.noTrace
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", cell(f.name), threadOf(f.from), cell(says))
	}
}

// threadOf is a link to a report, in short.
func threadOf(from string) string {
	if short, ok := strings.CutPrefix(from, github); ok {
		short = strings.NewReplacer("/issues/", "#", "/pull/", "#", "/discussions/", " discussion ").Replace(short)
		return fmt.Sprintf("[%s](%s)", short, from)
	}
	if strings.HasPrefix(from, "https://") {
		return "<" + from + ">"
	}
	return cell(from)
}

func writeMachines(t *testing.T, page *strings.Builder) {
	t.Helper()
	files, err := filepath.Glob(machinesDir + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var rows strings.Builder
	cells, pairs, made := 0, 0, 0
	for _, file := range files {
		m, err := machine.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		rated, answers := 0, "../../testdata/nccl/"+m.Name+".txt"
		if _, err := os.Stat(answers); err == nil { // not yet recorded: test/nccl/README.md
			rated = lines(t, answers, "")
		}
		pairs += rated
		if m.Evidence == "" {
			made++
			continue
		}
		here := 0
		if strings.Contains(m.Evidence, "published matrix") {
			for _, row := range m.Matrix {
				here += len(row)
			}
			cells += here
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %d | %d |\n", m.Name, cell(m.Source), m.Evidence, here, rated)
	}
	fmt.Fprintf(page, `
## Published machines

%d machines that somebody has described, with %d cells of matrices that were published beside them (mostly of
`+"`nvidia-smi topo -m`"+`), each of which TestPublishedMatrices (topology) compares with our level. Where only a part of the tree was
published, testdata/machines/NAME.txt says what was filled in. Two machines with GB200 have SYS in the published matrix
where we say NODE: nvidia-smi prints SYS there also within a NUMA node. %d machines are made up from sources.

| machine | source | evidence | cells compared | pairs rated by NCCL |
|---|---|---|---|---|
%s`, len(files)-made, cells, made, rows.String())
	fmt.Fprintf(page, "\nOver all machines, NCCL's own code has rated %d pairs.\n", pairs)
}

// writeOracles lists the programs that were asked, with the versions that other files name.
func writeOracles(t *testing.T, page *strings.Builder) {
	t.Helper()
	found := func(file, pattern string) string {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return string(m[1])
	}
	nccl, asked := 0, map[string]int{}
	answers, err := filepath.Glob("../../testdata/nccl/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range answers {
		nccl += lines(t, file, "")
	}
	for _, name := range [...]string{"vllm", "sglang", "mooncake", "modelexpress"} {
		asked[name] = lines(t, "../../testdata/frameworks/"+name+".txt", "machine ")
	}
	const frameworks = "test/frameworks/README.md"
	kubernetes := strings.Replace(found("test/dra/go.mod", `k8s.io/dynamic-resource-allocation v0(\S+)`), ".", "1.", 1)
	fmt.Fprintf(page, `
## Other programs' answers

Real code of others, which our tests start or have started.

| program | version | what it was asked | test |
|---|---|---|---|
| NCCL's topology code | %s | %d pairs: type, and whether it uses GPUDirect RDMA; by hand also random trees and topology files | TestNCCLAnswers; [test/nccl](../test/nccl/README.md) |
| vLLM | %s | the NIC of each GPU, on %d machines | TestAnswers; [test/frameworks](../test/frameworks/README.md) |
| SGLang | %s | the same, on %d | the same |
| Mooncake | %s | the same, on %d | the same |
| ModelExpress | %s | the same, on %d | the same |
| Kubernetes' allocator of devices | %s | which GPUs and NICs a claim gets | test/dra |
| kube-apiserver and scheduler | %s; [others](compatibility.md) | admission, labels, Events, a Pod's node | make e2e |
| Node Feature Discovery | %s | labels of a Node ([nfd-api](operators.md#nfd-api)); [older versions](compatibility.md) | make e2e |
| Kueue, Volcano | %s, %s | their objects are accepted as our pages have them | make e2e |
| Helm | %s, %s | to install, upgrade, roll back and test the chart | make e2e |
| cosign | %s | whether it verifies what a release signs | hack/check.sh release |
| Slurm | of the distribution | whether slurmd takes what `+"`topo -o slurm`"+` prints | hack/check.sh slurm |
| Linux | of the distribution, in QEMU | /sys and /proc as a kernel writes them | make e2e-vm |
| dynamic loader and libibverbs | of four Debians | which providers an image loads | hack/check.sh userspace |

`+"`lstopo` is measured beside us ([cost](cost.md)), and not asked for levels.\n",
		found("test/nccl/README.md", `those of NCCL ([0-9.]+[0-9])`), nccl,
		found(frameworks, `those of vLLM ([0-9a-f]+)`), asked["vllm"],
		found(frameworks, "`validate_ib_devices` of ([0-9a-f]+)"), asked["sglang"],
		found(frameworks, `Mooncake\s+([0-9a-f]+)`), asked["mooncake"],
		found(frameworks, `ModelExpress ([0-9a-f]{7,})`), asked["modelexpress"], kubernetes,
		found("test/e2e/build.sh", `gitVersion=v([0-9.]+)`),
		found("docs/compatibility.md", `(?m)^\| 0.19 \| run: v([0-9.]+)`),
		found("test/e2e/build.sh", `kueue@v([0-9.]+)`), found("test/e2e/build.sh", `volcano@v([0-9.]+)`),
		found("test/e2e/build.sh", `helm/v3/cmd/helm@v([0-9.]+)`), found("test/e2e/build.sh", `helm/v4/cmd/helm@v([0-9.]+)`),
		found("test/release/build.sh", `cosign@v([0-9.]+)`))
}

// lines counts the lines of a file that begin with a word.
func lines(t *testing.T, file, word string) (n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, word) {
			n++
		}
	}
	return n
}

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
