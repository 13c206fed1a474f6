package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"gdr-features/internal/label"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/rooms/picture"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/test/testsize"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
)

// FuzzDamage breaks files, links and directories of a machine and then asks for
// everything: no panic, no hang, valid output, and no "true" whose evidence is
// not in the tree.
func FuzzDamage(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(3))
	}
	f.Add(uint64(290), uint8(124)) // an id in other letters
	f.Fuzz(func(t *testing.T, seed uint64, wounds uint8) { damaged(t, seed, int(wounds)%40+1) })
}

// TestDamage is the fuzz target over a fixed range.
func TestDamage(t *testing.T) {
	t.Parallel()
	for seed := range testsize.Inputs(600) {
		damaged(t, seed, int(seed%12)+1)
	}
}

func damaged(t *testing.T, seed uint64, wounds int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	kind, dir := kindOf(t, seed, random)
	for range wounds {
		wound(dir, random)
	}
	for _, facts := range []source.What{{}, report.ForCheck.What, report.ForTopo.What} {
		done := make(chan report.Report, 1)
		go func() { done <- collect(t, dir, facts) }()
		select {
		case r := <-done:
			if why := objections(dir, &r, &kind); why != "" {
				t.Fatalf("seed %d, %d wounds: %s", seed, wounds, why)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("seed %d, %d wounds: no end", seed, wounds)
		}
	}
}

// wound breaks one thing.
func wound(dir string, random *rand.Rand) {
	var paths []string
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			paths = append(paths, path)
		}
		return nil
	})
	if len(paths) == 0 {
		return
	}
	path, other := paths[random.IntN(len(paths))], paths[random.IntN(len(paths))]
	replace := func(with func()) { _ = os.RemoveAll(path); with() }
	switch random.IntN(13) {
	case 0:
		_ = os.RemoveAll(path)
	case 1:
		_ = os.Truncate(path, 0)
	case 2:
		replace(func() { _ = os.WriteFile(path, garbage(random, 300), 0o644) })
	case 3:
		replace(func() { _ = syscall.Mkfifo(path, 0o644) })
	case 4:
		replace(func() { _ = os.Symlink(filepath.Base(path), path) }) // a loop
	case 5:
		replace(func() { _ = os.Symlink("nowhere", path) })
	case 6:
		replace(func() { _ = os.Symlink(strings.Repeat("../", 20)+"etc/passwd", path) })
	case 7:
		replace(func() { _ = os.MkdirAll(filepath.Join(path, "0000:00:00.0"), 0o755) })
	case 8:
		replace(func() { _ = os.WriteFile(path, bytes.Repeat([]byte("a"), 1<<20), 0o644) })
	case 9:
		if text, err := regular(other); err == nil {
			replace(func() { _ = os.WriteFile(path, []byte(text), 0o644) })
		}
	case 10:
		if rel, err := filepath.Rel(filepath.Dir(path), other); err == nil {
			replace(func() { _ = os.Symlink(rel, path) })
		}
	case 11:
		if text, err := regular(path); err == nil && text != "" {
			b := []byte(text)
			b[random.IntN(len(b))] ^= byte(1 << random.IntN(8))
			_ = os.WriteFile(path, b, 0o644)
		}
	case 12:
		if text, err := regular(path); err == nil {
			at := random.IntN(len(text) + 1)
			_ = os.WriteFile(path, []byte(text[:at]+"\x1b[2J"+text[at:]), 0o644)
		}
	}
}

func garbage(random *rand.Rand, most int) []byte {
	b := make([]byte, random.IntN(most))
	for i := range b {
		b[i] = byte(random.IntN(256))
	}
	return b
}

// regular reads a regular file; a FIFO would block.
func regular(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", os.ErrInvalid
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// objections checks a report against the tree it was read from, in the simplest way.
func objections(dir string, r *report.Report, k *kind) string {
	for name, show := range map[string]func(io.Writer) error{
		"topo":    func(w io.Writer) error { return render.TopoJSON(w, r) },
		"check":   func(w io.Writer) error { return render.CheckJSON(w, r, false) },
		"labels":  func(w io.Writer) error { return render.LabelsJSON(w, r.Labels, label.DefaultPrefix) },
		"explain": func(w io.Writer) error { return render.ExplainJSON(w, r) },
	} {
		var out bytes.Buffer
		if err := show(&out); err != nil || !json.Valid(out.Bytes()) {
			return name + ": no valid JSON"
		}
	}
	for name, show := range map[string]func(io.Writer, *report.Report) error{
		"html": func(w io.Writer, r *report.Report) error { return picture.HTML(w, r, "") }, "dot": picture.Dot,
		"topo": render.Topo, "wide": render.TopoWide, "explain": render.Explain,
		"check":  func(w io.Writer, r *report.Report) error { return render.Check(w, r, true) },
		"labels": func(w io.Writer, r *report.Report) error { return render.Labels(w, r.Labels, label.DefaultPrefix) },
	} {
		var out bytes.Buffer
		if err := show(&out, r); err != nil || name == "html" && xml.Unmarshal(out.Bytes(), &struct{}{}) != nil {
			return name + ": not well-formed"
		}
		if line := unprintable(out.String()); line != "" {
			return fmt.Sprintf("%s: not to be printed: %q", name, line)
		}
	}
	if why := unexplained(r); why != "" {
		return why
	}
	for name, value := range r.Labels {
		if value == "" || value != label.Value(value) {
			return name + ": invalid value " + value
		}
	}
	evidence := k.search(dir)
	if t := r.PCI.Families(family.Known()); len(t.GPUs)+len(t.NICs) > 2 { // spoiled ids may be of any
		for _, k := range kinds {
			other := k.search(dir)
			evidence.peermem, evidence.dmabuf = evidence.peermem || other.peermem, evidence.dmabuf || other.dmabuf
		}
	}
	for _, claim := range []struct {
		name   string
		stated bool
		proven bool
	}{
		{"capable", r.Verdict.Capable == tristate.True, evidence.gpu && evidence.nic},
		{"peermem", r.Verdict.Peermem == tristate.True, evidence.peermem},
		{"dmabuf", r.Verdict.DMABuf == tristate.True, evidence.dmabuf},
		{"ready", r.Verdict.Ready == tristate.True, evidence.gpu && evidence.nic && evidence.port && (evidence.peermem || evidence.dmabuf)},
		{"label", r.Labels[label.Ready] == "true", r.Verdict.Ready == tristate.True},
	} {
		if claim.stated && !claim.proven {
			return claim.name + " without evidence"
		}
	}
	return ""
}

// unprintable returns a line that would act on a terminal.
func unprintable(text string) string {
	for line := range strings.Lines(text) {
		for _, r := range strings.TrimSuffix(line, "\n") {
			if !unicode.IsPrint(r) {
				return line
			}
		}
	}
	return ""
}

// unexplained checks every path, and the topology file.
func unexplained(r *report.Report) string {
	for _, p := range r.Matrix.Pairs {
		var out bytes.Buffer
		way := explain.PathOf(&r.Node, p.GPU, p.NIC)
		if err := render.ExplainPairJSON(&out, r, way); err != nil || !json.Valid(out.Bytes()) || way.Why == "" {
			return "explain GPU NIC: no valid JSON, or no reason"
		}
		out.Reset()
		if err := render.ExplainPair(&out, r, way); err != nil || unprintable(out.String()) != "" {
			return fmt.Sprintf("explain GPU NIC: %v, %q", err, unprintable(out.String()))
		}
	}
	if text, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU); err == nil {
		if _, err := nccl.ParseFile(text); err != nil {
			return "topo -o nccl-xml: " + err.Error()
		}
	}
	return ""
}
