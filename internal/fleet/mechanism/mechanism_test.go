package mechanism_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gdr-features/internal/fleet/mechanism"
	"gdr-features/tristate"
)

const page = "../../../docs/mechanisms.md"

// TestPage: docs/mechanisms.md is what the rows say.
func TestPage(t *testing.T) {
	want := text()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the rows say: make golden writes it (%v)", page, err)
	}
}

func text() string {
	var b strings.Builder
	b.WriteString(`# Ways to GPU memory, by framework

<!-- Made from internal/fleet/mechanism by make golden -->

A NIC reaches GPU memory in one of two ways: by a peer memory client of the kernel (peermem: nvidia-peermem, amdkfd), or
by DMA-BUF. A node has one or both (labels ` + "`gdr.peermem` and `gdr.dmabuf`" + `), and so has each framework. If they share
none, registering GPU memory fails, or data goes through host memory. ` + "`gdr-features check --pod`" + ` compares them, by the
versions that it finds in the image ([docs/pod.md](pod.md#the-image)).

*yes*: it can. *with X*: only with this variable. *unless X*: not with this variable. *; with X yes* (or *no*): this
variable decides before the others. *unknown*: no source that says so has been read, or builds of one version differ;
nothing is judged by it. Each cell has its source below the table.

| framework | versions | peermem | DMA-BUF | beside that |
|---|---|---|---|---|
`)
	var sources []string
	cell := func(c mechanism.Cell) string {
		words := map[tristate.State]string{tristate.True: "yes", tristate.False: "no", tristate.Unknown: "unknown"}
		word := words[c.Can]
		switch {
		case c.With != "" && c.Without != "":
			word += ", with `" + c.With + "` yes, with `" + c.Without + "` no"
		case c.With != "":
			word = "with `" + c.With + "`"
		case c.Without != "":
			word = "unless `" + c.Without + "`"
		}
		if c.Forced != "" {
			word += "; with `" + c.Forced + "` " + words[c.Then]
		}
		if c.Source == "" {
			return word
		}
		for i, s := range sources {
			if s == c.Source {
				return fmt.Sprintf("%s [%d]", word, i+1)
			}
		}
		sources = append(sources, c.Source)
		return fmt.Sprintf("%s [%d]", word, len(sources))
	}
	for i := range mechanism.Rows {
		r := &mechanism.Rows[i]
		peermem, dmabuf := cell(r.Peermem), cell(r.DMABuf)
		if len(r.Through) > 0 {
			peermem, dmabuf = "as "+strings.Join(r.Through, ", "), "the same"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Framework, r.Versions(), peermem, dmabuf, r.Note)
	}
	b.WriteString("\nSources, at the commits that were read:\n\n")
	for i, s := range sources {
		fmt.Fprintf(&b, "%d. %s\n", i+1, s)
	}
	return b.String()
}

// TestRows: every cell that says something has a source, and the rows of a framework neither
// overlap nor leave a gap.
func TestRows(t *testing.T) {
	last := map[string]*mechanism.Row{}
	for i := range mechanism.Rows {
		r := &mechanism.Rows[i]
		for _, c := range []mechanism.Cell{r.Peermem, r.DMABuf} {
			if c.Can != tristate.Unknown && c.Source == "" {
				t.Errorf("%s %s: a cell without source", r.Framework, r.Versions())
			}
		}
		if before := last[r.Framework]; before != nil && before.Before != r.From {
			t.Errorf("%s: %q follows %q", r.Framework, r.From, before.Before)
		}
		last[r.Framework] = r
		for _, name := range r.Through {
			if len(mechanism.For(name, "")) == 0 {
				t.Errorf("%s goes through %s, which has no row", r.Framework, name)
			}
		}
	}
	for name, r := range last {
		if r.Before != "" {
			t.Errorf("%s: nothing from %s on", name, r.Before)
		}
	}
}

// TestShared: which ways a version shares with a node.
func TestShared(t *testing.T) {
	peermem := mechanism.Ways{Peermem: tristate.True, DMABuf: tristate.False}
	dmabuf := mechanism.Ways{Peermem: tristate.False, DMABuf: tristate.True}
	forced := map[string]string{"RCCL_FORCE_ENABLE_DMABUF": "1", "NCCL_DMABUF_ENABLE": "0"}
	enabled, disabled := map[string]string{"NCCL_DMABUF_ENABLE": "1"}, map[string]string{"NCCL_DMABUF_ENABLE": "0"}
	on, off := map[string]string{"WITH_NVIDIA_PEERMEM": "True"}, map[string]string{"WITH_NVIDIA_PEERMEM": "off"}
	for _, test := range []struct {
		framework, version string
		variables          map[string]string
		node               mechanism.Ways
		want               tristate.State
		enable             string
	}{
		{"nccl", "2.12.12", nil, dmabuf, tristate.False, ""},
		{"nccl", "2.13.4-1+cuda11.7", nil, dmabuf, tristate.True, ""},
		{"nccl", "2.30.7", nil, peermem, tristate.True, ""},
		{"rccl", "2.21.5", nil, dmabuf, tristate.False, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.21.5", map[string]string{"NCCL_DMABUF_ENABLE": "1"}, dmabuf, tristate.True, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.26.6", nil, dmabuf, tristate.False, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.26.6", forced, dmabuf, tristate.False, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.27.7", nil, dmabuf, tristate.False, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.27.7", enabled, dmabuf, tristate.True, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.27.7", forced, dmabuf, tristate.True, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.27.7", forced, peermem, tristate.True, ""},
		{"rccl", "2.28.3", nil, dmabuf, tristate.Unknown, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.28.3", enabled, dmabuf, tristate.True, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.28.3", disabled, dmabuf, tristate.False, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.28.3", forced, dmabuf, tristate.True, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.28.3", nil, peermem, tristate.True, "RCCL_FORCE_ENABLE_DMABUF=0"},
		{"rccl", "2.28.3", forced, peermem, tristate.Unknown, "RCCL_FORCE_ENABLE_DMABUF=0"},
		{"rccl", "2.30.4", nil, dmabuf, tristate.True, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.30.4", disabled, dmabuf, tristate.False, "NCCL_DMABUF_ENABLE=1"},
		{"rccl", "2.30.4", nil, peermem, tristate.True, "RCCL_FORCE_ENABLE_DMABUF=0"},
		{"rccl", "2.30.4", forced, peermem, tristate.False, "RCCL_FORCE_ENABLE_DMABUF=0"},
		{"ucx", "1.23.0~rc1", nil, dmabuf, tristate.True, ""},
		{"mooncake", "0.3.10.post2", nil, dmabuf, tristate.False, ""},
		{"mooncake", "0.3.11", nil, dmabuf, tristate.True, "WITH_NVIDIA_PEERMEM=0"},
		{"mooncake", "0.3.11", nil, peermem, tristate.False, "WITH_NVIDIA_PEERMEM=1"},
		{"mooncake", "0.3.12", nil, dmabuf, tristate.False, "WITH_NVIDIA_PEERMEM=0"},
		{"mooncake", "0.3.12", off, dmabuf, tristate.True, "WITH_NVIDIA_PEERMEM=0"},
		{"mooncake", "0.3.12", off, peermem, tristate.False, "WITH_NVIDIA_PEERMEM=1"},
		{"mooncake", "0.3.12", on, peermem, tristate.True, "WITH_NVIDIA_PEERMEM=1"},
	} {
		rows := mechanism.For(test.framework, test.version)
		if len(rows) != 1 {
			t.Errorf("%s %s: %d rows", test.framework, test.version, len(rows))
			continue
		}
		if got := rows[0].Ways(test.variables).Shared(test.node); got != test.want {
			t.Errorf("%s %s %v on %+v: %v, want %v", test.framework, test.version, test.variables, test.node, got, test.want)
		}
		if got := rows[0].Enable(test.node); got != test.enable {
			t.Errorf("%s %s on %+v: enabled by %q, want %q", test.framework, test.version, test.node, got, test.enable)
		}
	}
}
