//go:build frameworks

// Package frameworks asks the code of vLLM, SGLang, Mooncake and ModelExpress what it makes of what env
// prints. See README.md.
package frameworks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/frameworks/recorded"
	"gdr-features/test/machine"
)

const (
	machinesDir = "../../testdata/machines"
	keptDir     = "../../testdata/frameworks"
	program     = "../../bin/gdr-features"
)

// question is what ask.py reads.
type question struct {
	Root string            `json:"root"`
	File string            `json:"file"`
	GPUs []string          `json:"gpus"`
	Env  map[string]string `json:"env"`
}

// answers are those of ask.py: by the number of the GPU, what the framework says.
type answers map[string]map[string]string

// source is a directory or program that an environment variable names.
func source(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Fatalf("%s is not set; see test/frameworks/README.md", variable)
	}
	path, err := filepath.Abs(name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return path
}

// printed is what env prints on a machine.
func printed(t *testing.T, root string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, append([]string{"--root", root, "env"}, args...)...)
	out, err := c.Output()
	if err != nil && c.ProcessState.ExitCode() != 2 { // a GPU has no NIC
		t.Fatalf("%q: %v", c.Args, err)
	}
	return out
}

// gpus are the addresses of a machine's GPUs.
func gpus(t *testing.T, root string) []string {
	t.Helper()
	var d struct{ GPUs []struct{ GPU string } }
	if err := json.Unmarshal(printed(t, root, "-o", "json"), &d); err != nil {
		t.Fatal(err)
	}
	addresses := make([]string, 0, len(d.GPUs))
	for _, g := range d.GPUs {
		addresses = append(addresses, g.GPU)
	}
	return addresses
}

// start starts ask.py for a framework, and gives a function that asks it.
func start(t *testing.T, framework, sources string) func(*testing.T, question) answers {
	t.Helper()
	c := exec.CommandContext(t.Context(), "python3", "ask.py", framework, sources)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait() // a complaint is on standard error
	})
	questions, said := json.NewEncoder(in), json.NewDecoder(out)
	return func(t *testing.T, q question) answers {
		t.Helper()
		var a answers
		if err := questions.Encode(q); err != nil {
			t.Fatal(err)
		}
		if err := said.Decode(&a); err != nil {
			t.Fatalf("no answer: %v", err)
		}
		return a
	}
}

// lines writes answers as they are kept. Where a framework stops, its words are not.
func lines(t *testing.T, a answers, say func(map[string]string) string) string {
	t.Helper()
	var text strings.Builder
	for i := range len(a) {
		said := a[fmt.Sprint(i)]
		words := "stops"
		if why, ok := said["error"]; ok {
			t.Logf("GPU %d: %s", i, why)
		} else {
			words = say(said)
		}
		fmt.Fprintf(&text, "gpu %d %s\n", i, words)
	}
	return text.String()
}

// keep compares answers for every machine with those that are kept.
func keep(t *testing.T, framework string, of func(t *testing.T, root string) string) {
	t.Helper()
	var text strings.Builder
	for _, m := range machine.All(t, machinesDir) {
		t.Run(m.Name, func(t *testing.T) {
			root := m.Tree(t, m.Ready())
			hash, err := recorded.Hash(printed(t, root, "-o", "json"))
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(recorded.Heading(m.Name, hash) + of(t, root))
		})
	}
	kept := filepath.Join(keptDir, framework+".txt")
	if os.Getenv("UPDATE") != "" && !t.Failed() {
		if err := os.WriteFile(kept, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(kept)
	if diff := cmp.Diff(string(was), text.String()); err != nil || diff != "" {
		t.Errorf("%s is not what it says now (%v); UPDATE=1 writes it (-kept +now):\n%s", kept, err, diff)
	}
}

// variables asks about what is printed for a framework; given is "" where that is nothing, and
// env says why.
func variables(t *testing.T, framework, root string) (q question, given string) {
	t.Helper()
	q = question{Root: root, GPUs: gpus(t, root), Env: map[string]string{}}
	for line := range strings.Lines(string(printed(t, root, "--for", framework, "-o", "dotenv"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name[0] != '#' {
			q.Env[name] = value
			given += "given " + line
		}
	}
	return q, given
}

func TestVLLM(t *testing.T) {
	ask := start(t, "vllm", source(t, "VLLM_SRC"))
	keep(t, "vllm", func(t *testing.T, root string) string {
		q, given := variables(t, "vllm", root)
		if given == "" {
			return ""
		}
		return given + lines(t, ask(t, q), func(said map[string]string) string {
			var set []string
			for _, name := range slices.Sorted(maps.Keys(said)) {
				set = append(set, name+"="+said[name])
			}
			return strings.Join(set, " ")
		})
	})
}

func TestModelExpress(t *testing.T) {
	ask := start(t, "modelexpress", source(t, "MODELEXPRESS_SRC"))
	keep(t, "modelexpress", func(t *testing.T, root string) string {
		q, given := variables(t, "modelexpress", root)
		if given == "" {
			return ""
		}
		return given + lines(t, ask(t, q), func(said map[string]string) string { return said["devices"] })
	})
}

func TestSGLang(t *testing.T) {
	ask := start(t, "sglang", source(t, "SGLANG_SRC"))
	keep(t, "sglang", func(t *testing.T, root string) string {
		text := printed(t, root, "--for", "sglang", "-o", "file")
		q := question{Root: root, GPUs: gpus(t, root), File: "/map.json"}
		if err := os.WriteFile(filepath.Join(root, q.File), text, 0o644); err != nil {
			t.Fatal(err)
		}
		return "given " + compact(t, text) + lines(t, ask(t, q), func(said map[string]string) string { return said["devices"] })
	})
}

func TestMooncake(t *testing.T) {
	parser := source(t, "MOONCAKE_PARSER")
	keep(t, "mooncake", func(t *testing.T, root string) string {
		text := printed(t, root, "--for", "mooncake", "-o", "file")
		c := exec.CommandContext(t.Context(), parser)
		c.Stdin = bytes.NewReader(text)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		said := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		slices.Sort(said)
		return "given " + compact(t, text) + strings.TrimLeft(strings.Join(said, "\n")+"\n", "\n")
	})
}

// compact writes JSON in one line.
func compact(t *testing.T, text []byte) string {
	t.Helper()
	var line bytes.Buffer
	if err := json.Compact(&line, bytes.TrimSpace(text)); err != nil {
		t.Fatal(err)
	}
	return line.String() + "\n"
}
