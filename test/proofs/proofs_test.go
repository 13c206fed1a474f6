// Package proofs_test holds what we say of a node against a transfer to GPU memory that was
// measured there.
package proofs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/proof"
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
	const (
		node      = "testdata/made-up/node1"
		dmabuf    = "out/0000-13-00.0_mlx5_0_dmabuf."
		peermem   = "out/0000-13-00.0_mlx5_0_peermem."
		undecided = "the transfers prove nothing"
	)
	if got := contradictions(t, node); len(got) > 0 {
		t.Fatal(got)
	}
	for name, c := range map[string]struct {
		change changes // of files by the beginning of their names
		want   string  // "" for none
	}{
		"another level": {changes{"about.txt": replace("PIX", "NODE")}, "level of 0000:13:00.0 and mlx5_0: PIX, and published was NODE"},
		"no such NIC":   {changes{"about.txt": replace("mlx5_0", "mlx5_7")}, "level of 0000:13:00.0 and mlx5_7: none, and published was PIX"},
		"no source":     {changes{"about.txt": replace("source", "from")}, "about.txt has no source"},
		"one torn file": {changes{dmabuf + "s.out": torn}, ""}, // the other way is proven
		"torn files":    {changes{dmabuf + "s.out": torn, peermem + "c.out": torn}, undecided},
		"no baseline":   {changes{"out/mlx5_0_host.": remove}, undecided},
		"no commands":   {changes{dmabuf + "c.cmd": remove, peermem + "c.cmd": remove}, undecided},
		"no output":     {changes{"out/": remove}, "out: "},
		"no snapshot":   {changes{"snapshot.txt": remove}, "snapshot.txt: no such file"},
		"memory that cannot be registered": {
			changes{peermem + "s.out": registers, peermem + "s.err": refused, peermem + "s.rc": replace("0", "1")},
			"peermem is true, and the transfer of 0000:13:00.0 over mlx5_0 failed: the NIC cannot register",
		},
		"slow, which is no contradiction": {changes{dmabuf: slow}, ""},
		"not ready, and measured": {changes{"snapshot.txt": func(text string) string {
			return regexp.MustCompile(`(?m)^.*/sys/module/nvidia/.*\n`).ReplaceAllString(strings.ReplaceAll(text, "bus/pci/drivers/nvidia", "bus/pci/drivers/vfio-pci"), "")
		}}, "ready is false, and the transfer of 0000:13:00.0 over mlx5_0 passed"},
		"no DMA-BUF, and measured": {
			changes{"snapshot.txt": replace("Open Kernel Module", "Kernel Module")},
			"dmabuf is false, and the transfer of 0000:13:00.0 over mlx5_0 passed",
		},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(node)); err != nil {
			t.Fatal(err)
		}
		c.change.apply(t, dir)
		if got := strings.Join(contradictions(t, dir), "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// changes are what is done to the texts of files whose names begin so.
type changes map[string]func(text string) string

func (c changes) apply(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		now := string(text)
		for name, change := range c {
			if strings.HasPrefix(path, filepath.Join(dir, name)) {
				now = change(now)
			}
		}
		if now == gone {
			return os.Remove(path)
		}
		return os.WriteFile(path, []byte(now), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

const gone = "\x00"

func remove(string) string { return gone }

func torn(text string) string { return text[:len(text)*9/10] }

func slow(text string) string {
	return regexp.MustCompile(`188\.00(\s+)0\.358\d+`).ReplaceAllString(text, "9.40${1}0.017929")
}

func refused(string) string { return "Couldn't allocate MR with error=14\n" }

func registers(text string) string { before, _, _ := strings.Cut(text, "----"); return before }

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
	node, err := snapshot.Open(host.Options{Root: filepath.Join(dir, "snapshot.txt")})
	if err != nil {
		return []string{err.Error()}
	}
	defer node.Close()
	measured, err := read(filepath.Join(dir, "out"))
	if err != nil {
		return []string{err.Error()}
	}
	r := report.Collect(t.Context(), node, report.ForCheck)
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	ways := map[proof.Way]tristate.State{proof.DMABuf: r.Verdict.DMABuf, proof.Peermem: r.Verdict.Peermem}
	decided := false
	for _, l := range measured.Lines {
		if l.Way == proof.Host || l.State == tristate.Unknown {
			continue
		}
		decided = true
		of := "the transfer of " + l.GPU + " over " + l.NIC
		switch passed := l.Gbps > 0; { // one that is slow passed: verdict does not speak of rates
		case passed && r.Verdict.Ready == tristate.False:
			say("ready is false, and %s passed", of)
		case passed && ways[l.Way] == tristate.False:
			say("%s is false, and %s passed", l.Way, of)
		case !passed && ways[l.Way] == tristate.True:
			say("%s is true, and %s failed: %s", l.Way, of, l.Why)
		}
	}
	if !decided {
		say("the transfers prove nothing")
	}
	about, _ := os.ReadFile(filepath.Join(dir, "about.txt")) // a missing file has no source
	source := false
	for line := range strings.Lines(string(about)) {
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

// read gives the folder that the script of proof plan wrote to proof read.
func read(dir string) (r proof.Result, err error) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%s: it is empty", dir)
	}
	files := make([]proof.File, len(entries))
	for i, e := range entries {
		text, failed := os.ReadFile(filepath.Join(dir, e.Name()))
		err = errors.Join(err, failed)
		files[i] = proof.File{Name: e.Name(), Text: string(text)}
	}
	return proof.Read(files, nil), err
}

func levelOf(m *topology.Matrix, gpu, nic string) string {
	for _, p := range m.Pairs {
		if m.GPUs[p.GPU].Address.String() == gpu && m.NICs[p.NIC].Name() == nic {
			return p.Level.String()
		}
	}
	return "none"
}
