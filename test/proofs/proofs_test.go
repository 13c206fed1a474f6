// Package proofs_test holds what we say of a node against a transfer to GPU memory that was
// measured there.
package proofs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// TestProofs: nothing in testdata/proofs contradicts what we say of its node.
func TestProofs(t *testing.T) {
	folders := folders(t, "../../testdata/proofs")
	t.Logf("%d nodes with a measured transfer", len(folders))
	for _, dir := range folders {
		for _, wrong := range contradictions(t, dir) {
			t.Errorf("%s: %s", dir, wrong)
		}
	}
}

// TestMadeUp: a folder that was made up agrees with its node, and one in which anything is
// otherwise does not.
func TestMadeUp(t *testing.T) {
	const node = "testdata/made-up/node1"
	if got := contradictions(t, node); len(got) > 0 {
		t.Fatal(got)
	}
	for name, c := range map[string]struct {
		file    string
		change  func(text string) string
		want    string
		without string // a file that is missing
	}{
		"another level": {"about.txt", replace("NODE", "PIX"), "level of 0000:02:00.0 and mlx5_0: NODE, and published was PIX", ""},
		"no such NIC":   {"about.txt", replace("mlx5_0", "mlx5_7"), "level of 0000:02:00.0 and mlx5_7: none, and published was NODE", ""},
		"no source":     {"about.txt", replace("source", "from"), "about.txt has no source", ""},
		"a host's memory on one side": {
			"client.txt", replace("allocated GPU buffer", "allocated buffer"),
			"the transfer proves nothing", "",
		},
		"no rate":   {"server.txt", replace("65536", "x"), "the transfer proves nothing", ""},
		"no server": {"", nil, "the transfer proves nothing", "server.txt"},
		"memory that cannot be registered": {
			"server.txt", func(string) string { return "allocated GPU buffer\nCouldn't allocate MR with error=14\n" },
			"ready true, and GPU memory could not be registered", "",
		},
		"not ready, and measured": {"snapshot.txt", func(text string) string {
			return regexp.MustCompile(`(?m)^.*/sys/module/nvidia/.*\n`).ReplaceAllString(strings.ReplaceAll(text, "bus/pci/drivers/nvidia", "bus/pci/drivers/vfio-pci"), "")
		}, "ready false, and the transfer was measured", ""},
		"no DMA-BUF, and measured": {"snapshot.txt", replace("Open Kernel Module", "Kernel Module"), "DMA-BUF false, and the transfer used it", ""},
		"by peermem": {"server.txt", func(text string) string {
			return regexp.MustCompile(`(?m)^(using|Calling).*\n`).ReplaceAllString(text, "")
		}, "", ""},
	} {
		dir := t.TempDir()
		for _, file := range [...]string{"about.txt", "server.txt", "client.txt", "snapshot.txt"} {
			text, err := os.ReadFile(filepath.Join(node, file))
			if err != nil {
				t.Fatal(err)
			}
			if file == c.file {
				text = []byte(c.change(string(text)))
			}
			if file == c.without {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(contradictions(t, dir), "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func replace(what, by string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, what, by) }
}

// folders are those of a directory.
func folders(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}

// contradictions compares a folder with what we say of its snapshot.
func contradictions(t *testing.T, dir string) (all []string) {
	t.Helper()
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // a missing file proves nothing
		return string(text)
	}
	fs, err := snapshot.Open(host.Options{Root: filepath.Join(dir, "snapshot.txt")})
	if err != nil {
		return []string{err.Error()}
	}
	defer fs.Close()
	r := report.Collect(t.Context(), fs, report.ForCheck)
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch m, v := measure(read("server.txt"), read("client.txt")), r.Verdict; {
	case m.moved == tristate.Unknown:
		say("the transfer proves nothing")
	case m.moved == tristate.False && v.Ready == tristate.True:
		say("ready true, and GPU memory could not be registered")
	case m.moved == tristate.True && v.Ready == tristate.False:
		say("ready false, and the transfer was measured")
	case m.moved == tristate.True && m.dmabuf && v.DMABuf == tristate.False:
		say("DMA-BUF false, and the transfer used it")
	case m.moved == tristate.True && !m.dmabuf && v.Peermem == tristate.False:
		say("peermem false, and the transfer used it")
	}
	source := false
	for line := range strings.Lines(read("about.txt")) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "source":
			source = true
		case len(words) == 4 && words[0] == "level":
			if level := levelOf(&r.Matrix, words[1], words[2]); level != words[3] {
				say("level of %s and %s: %s, and published was %s", words[1], words[2], level, words[3])
			}
		}
	}
	if !source {
		say("about.txt has no source")
	}
	return all
}

func levelOf(m *topology.Matrix, gpu, nic string) string {
	for _, p := range m.Pairs {
		if m.GPUs[p.GPU].Address.String() == gpu && m.NICs[p.NIC].Name() == nic {
			return p.Level.String()
		}
	}
	return "none"
}

// measured is what both sides of perftest show.
type measured struct {
	moved  tristate.State // data, from GPU memory to GPU memory
	dmabuf bool           // the memory was registered by DMA-BUF on both sides, not by peermem
}

var (
	result       = regexp.MustCompile(`(?m)^ *[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]*[1-9][0-9.]*\s`)
	unregistered = regexp.MustCompile(`Couldn't allocate MR with error=(14|95)\b`)
	byDMABuf     = regexp.MustCompile(`using DMA-BUF for GPU buffer|ibv_reg_dmabuf_mr\(|ibv_reg_mr_ex with dmabuf\(`)
)

// measure reads the output of both sides. This is all that the test knows of perftest's texts.
func measure(server, client string) (m measured) {
	sides := [...]string{server, client}
	all := func(has func(text string) bool) bool { return has(sides[0]) && has(sides[1]) }
	onGPU := func(text string) bool { return strings.Contains(text, "allocated GPU buffer") }
	switch {
	case onGPU(server) && unregistered.MatchString(server), onGPU(client) && unregistered.MatchString(client):
		m.moved = tristate.False
	case all(onGPU) && all(result.MatchString):
		m.moved = tristate.True
	}
	m.dmabuf = all(byDMABuf.MatchString)
	return m
}
