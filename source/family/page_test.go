package family_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/family"
)

const page = "../../docs/families.md"

// TestPage: the page for users has one row for each family, in the same order, which says
// what the family's row says. Its second cell is in words and may say anything.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	known := family.Known()
	for title, want := range map[string][][]string{
		"NICs that are judged":      cells(known.NICs, nicCells),
		"NICs that are only listed": cells(known.Others, nicCells),
		"GPUs":                      cells(known.GPUs, gpuCells),
	} {
		_, section, ok := strings.Cut(string(text), "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		_, table, ruled := strings.Cut(section, "|---|\n")
		if !ok || !ruled {
			t.Errorf("%s: no section %q with a table", page, title)
			continue
		}
		table, _, _ = strings.Cut(table, "\n\n")
		var got [][]string
		for line := range strings.Lines(table) {
			line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "| "), " |")
			got = append(got, strings.Split(line, " | "))
		}
		compare(t, title, want, got)
	}
}

// compare compares the rows of a table with those of the families, by their names.
func compare(t *testing.T, title string, want, got [][]string) {
	t.Helper()
	if diff := cmp.Diff(names(want), names(got)); diff != "" {
		t.Errorf("%s, %q: the families of the rows (-want +page):\n%s", page, title, diff)
	}
	for i, row := range want {
		at := slices.IndexFunc(got, func(g []string) bool { return g[0] == row[0] })
		if at >= 0 && len(got[at]) == len(row) && got[at][1] != "" {
			row[1] = got[at][1]
		}
		if at < 0 || !slices.Equal(got[at], row) {
			t.Errorf("%s, %q: row %d must be\n| %s |", page, title, i+1, strings.Join(row, " | "))
		}
	}
}

// names are the first cells of rows.
func names(rows [][]string) []string {
	all := make([]string, len(rows))
	for i, row := range rows {
		all[i] = row[0]
	}
	return all
}

func cells[F any](families []F, of func(F) []string) [][]string {
	rows := make([][]string, len(families))
	for i, f := range families {
		rows[i] = of(f)
	}
	return rows
}

func nicCells(n *family.NIC) []string {
	peer := []string{}
	if n.PeerMemory.Core {
		peer = append(peer, "PeerDirect")
	}
	if n.PeerMemory.Module != "" {
		peer = append(peer, code(n.PeerMemory.Module))
	}
	for _, file := range n.PeerMemory.Files {
		peer = append(peer, "file "+code(file.Name))
	}
	dmabuf := []string{}
	if n.DMABuf != "" {
		dmabuf = append(dmabuf, code(n.DMABuf))
	}
	layers := n.LinkLayers
	module := []string{}
	if n.Verbs() {
		module = append(module, code(n.Module))
		if len(layers) == 0 {
			layers = []string{"InfiniBand", "Ethernet"}
		}
	}
	return []string{
		code(n.Name), "NICS IN WORDS", vendor(n.Vendor), code(n.Drivers...), all(module),
		all(dmabuf), all(peer), all(layers),
	}
}

func gpuCells(g *family.GPU) []string {
	client := g.Client.Modules
	if len(client) == 0 {
		client = g.Client.Directories
	}
	needs := []string{}
	if g.OpenFrom != 0 {
		needs = append(needs, "open kernel modules")
	}
	for _, option := range g.KernelOptions {
		needs = append(needs, code("CONFIG_"+option.Name))
	}
	if g.PCIP2PDMA {
		needs = append(needs, "one root port or a Zen CPU")
	}
	return []string{code(g.Name), "GPUS IN WORDS", vendor(g.Vendor), code(g.Driver), code(client...), all(needs)}
}

func vendor(id uint16) string { return code(fmt.Sprintf("%04x", id)) }

// code returns names as Markdown shows code.
func code(names ...string) string { return "`" + strings.Join(names, "`, `") + "`" }

// all joins what a cell lists; a list of nothing is "no".
func all(list []string) string {
	if len(list) == 0 {
		return "no"
	}
	return strings.Join(list, ", ")
}
