package kmod

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gdr-features/tristate"
)

func TestScanSymbols(t *testing.T) {
	line := func(name string) string { return "0000000000000000 t " + name + "\n" }
	tests := []struct {
		name     string
		text     string // absent for no file
		want     Symbols
		problems []string
	}{
		{
			"all", line(peer+"\t[ib_core]") + line(umem+"\t[ib_uverbs]") + line(mlx5+"\t[mlx5_ib]"),
			Symbols{peer: {tristate.True, "ib_core"}, umem: {tristate.True, "ib_uverbs"}, mlx5: {tristate.True, "mlx5_ib"}},
			nil,
		},
		{"one", line("x") + line(umem+"\t[ib_uverbs]"), Symbols{peer: {Found: tristate.False}, umem: {tristate.True, "ib_uverbs"}, mlx5: {Found: tristate.False}}, nil},
		{"another", line(mlx5), Symbols{peer: {Found: tristate.False}, umem: {Found: tristate.False}, mlx5: {Found: tristate.True}}, nil},
		{"none", line("x"), Symbols{peer: {Found: tristate.False}, umem: {Found: tristate.False}, mlx5: {Found: tristate.False}}, nil},
		{"no file", absent, nil, []string{"open /proc/kallsyms: no such file"}},
		{"empty", "", Symbols{}, []string{"/proc/kallsyms: file is empty"}},
		{"a FIFO", isFIFO, Symbols{}, []string{"/proc/kallsyms: file is empty"}},
		{"a directory", isDir, Symbols{}, []string{"/proc/kallsyms: read /proc/kallsyms: is a directory"}},
		{"a loop", isLoop, Symbols{}, []string{"open /proc/kallsyms: too many levels of symbolic links"}},
		{"garbage", "garbage\n", Symbols{}, []string{"/proc/kallsyms: not a symbol table"}},
		{
			"a table that turns into garbage",
			line(umem+"\t[ib_uverbs]") + strings.Repeat("x", 1<<17),
			Symbols{umem: {tristate.True, "ib_uverbs"}},
			[]string{"/proc/kallsyms: not a symbol table"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, map[string]string{kallsyms: tt.text})
			if diff := cmp.Diff(tt.want, st.Symbols, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("symbols (-want +got):\n%s", diff)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}

// The table is not read to its end when all symbols are found.
func TestSearchSymbolsStops(t *testing.T) {
	line := func(name string) string { return "0000000000000000 t " + name + "\n" }
	read := 0
	rest := inChunks(line(umem)+line(mlx5)+strings.Repeat(line("x"), 1<<13), 1<<10)
	if _, err := search(func(buf []byte) (int, error) { read++; return rest(buf) }, umem, mlx5); err != nil || read > 1 {
		t.Errorf("read on: %d reads, error %v", read, err)
	}
}

// A reader that gives nothing and no error is not asked for ever.
func TestSearchSymbolsNoProgress(t *testing.T) {
	table := io.MultiReader(strings.NewReader("0000000000000000 t filler\n"), idle{})
	if _, err := searchSymbols(table, all); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }
