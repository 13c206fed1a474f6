package nodes

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"gdr-features/internal/label"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
)

// Style says what a table shows.
type Style struct {
	// Now is the time that ages are relative to.
	Now time.Time
	// Namespaces and Wide add columns.
	Namespaces, Wide bool
	Headers          bool
	// Columns of the terminal, 0 for none.
	Columns int
	// name is how many characters of a node's name are shown.
	name int
}

// Column is a heading and what its cells show of a T; "" is shown as a dash.
type Column[T any] struct {
	Heading string
	Cell    func(*T) string
	In      Tables
}

// Tables says in which tables a column is shown; the zero value: in all.
type Tables int

// The zero value is every table.
const (
	_ Tables = iota
	WithNamespaces
	Wide
)

func columns(s Style) []Column[Node] {
	return []Column[Node]{
		{"NAMESPACE", func(n *Node) string { return n.Namespace }, WithNamespaces},
		{"NODE", func(n *Node) string { return shorten(n.Name, s.name) }, 0},
		{"CAPABLE", func(n *Node) string { return n.state(label.Capable) }, Wide},
		{"READY", func(n *Node) string { return n.state(label.Ready) }, 0},
		{"LEVEL", of(label.Level), 0},
		{"GPUS", of(label.GPUs), Wide},
		{"NICS", of(label.NICs), Wide},
		{"MECHANISM", (*Node).mechanism, Wide},
		{"MOFED", of(label.MOFED), Wide},
		{"REASON/WARN", (*Node).why, 0},
		{"AGE", func(n *Node) string { return age(n, s.Now) }, 0},
		{"BEST", of(label.BestLevel), Wide},
		{"RATE", of(label.Rate), Wide},
		{"LINK", of(label.Link), Wide},
		{"IOMMU", of(label.IOMMU), Wide},
		{"ACS", of(label.ACS), Wide},
		{"PEERDIRECT", of(label.PeerDirect), Wide},
		{"TOPOLOGY", of(label.Topology), Wide},
		{"STORAGE", of(label.Storage), Wide},
		{"EXPECTED", of(label.Expected), Wide},
		{"GPU-PRODUCTS", func(n *Node) string { return products(n.GPUs) }, Wide},
		{"NIC-PRODUCTS", func(n *Node) string { return products(n.NICs) }, Wide},
	}
}

func of(name string) func(*Node) string {
	return func(n *Node) string { return n.Labels[name] }
}

// why is the reason of a node that is not ready, or else its first finding, and how many findings
// it has beside that: "LinkDegraded +1".
func (n *Node) why() string {
	codes := n.Codes()
	if reason := n.Labels[label.Reason]; reason != "" {
		codes = slices.Insert(codes, 0, reason)
	}
	switch len(codes) {
	case 0:
		return ""
	case 1:
		return codes[0]
	}
	return fmt.Sprintf("%s +%d", codes[0], len(codes)-1)
}

// age is the time since something last changed, in kubectl's format.
func age(n *Node, now time.Time) string {
	if n.changed().IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(n.changed()))
}

// shorten leaves out the midst of a node's name where it has more than so many characters: names
// of one cluster differ at the beginning or at the end.
func shorten(name string, most int) string {
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	return string(runes[:most/2]) + "…" + string(runes[len(runes)-(most-1)/2:])
}

func products(all []Product) string {
	var parts []string
	for _, p := range all {
		part := fmt.Sprintf("%dx %s", p.Count, p.Name)
		if p.Role != "" {
			part += " (" + p.Role + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// widest is how many characters a cell may have, so that columns are not pushed apart.
const widest = 120

func fit(text string) string {
	if runes := []rune(text); len(runes) > widest {
		text = string(runes[:widest-1]) + "…"
	}
	return sanitize.Terminal(text)
}

// Table writes one line a node. On a terminal it shortens names of nodes with which lines would be
// too long.
func Table(w io.Writer, all []Node, s Style) error {
	s.name = math.MaxInt
	if s.Columns > 0 && !s.Wide {
		const shortest = 16
		var rest bytes.Buffer // of the lines
		nameless := s
		nameless.name, nameless.Headers = 1, true
		if err := Rows(&rest, columns(nameless), all, nameless); err != nil {
			return err
		}
		longest := 0
		for line := range strings.Lines(rest.String()) {
			longest = max(longest, utf8.RuneCountInString(line)-1)
		}
		s.name = max(shortest, s.Columns-longest+len("NODE"))
	}
	return Rows(w, columns(s), all, s)
}

// Few names the first of many.
func Few(all []string) string {
	const most = 3
	if len(all) <= most+1 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// Rows writes a table with one line for each of all.
func Rows[T any](w io.Writer, columns []Column[T], all []T, s Style) error {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c Column[T]) bool {
		return c.In == WithNamespaces && !s.Namespaces || c.In == Wide && !s.Wide
	})
	var out bytes.Buffer
	t := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	row := func(cell func(Column[T]) string) {
		var cells []string
		for _, c := range columns {
			cells = append(cells, cmp.Or(fit(cell(c)), "-"))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if s.Headers {
		row(func(c Column[T]) string { return c.Heading })
	}
	for i := range all {
		row(func(c Column[T]) string { return c.Cell(&all[i]) })
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Text writes the summary: the counts in one line, then one line a reason.
func (s *Summary) Text(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s, %d ready", show.Count(s.Nodes, "node"), s.Ready)
	if s.Warned > 0 {
		fmt.Fprintf(&out, " (%d with warnings)", s.Warned)
	}
	for _, more := range []struct {
		n    int
		what string
	}{{s.NotReady, "not ready"}, {s.Unknown, "unknown"}, {s.Unlabelled, "without labels"}} {
		if more.n > 0 {
			fmt.Fprintf(&out, ", %d %s", more.n, more.what)
		}
	}
	out.WriteByte('\n')
	for _, r := range s.Reasons {
		fmt.Fprintf(&out, "%6d %s\n", r.Nodes, r.Reason)
	}
	for _, r := range s.Warnings {
		fmt.Fprintf(&out, "%6d %s (ready)\n", r.Nodes, sanitize.Terminal(r.Reason))
	}
	_, err := w.Write(out.Bytes())
	return err
}

type nodeJSON struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	// States are true, false or unknown; "" on a node without labels.
	Capable string `json:"capable"`
	Ready   string `json:"ready"`
	Reason  string `json:"reason"`
	Peermem string `json:"peermem"`
	DMABuf  string `json:"dmabuf"`
	Storage string `json:"storage"`
	// Expected is also unknown where the agent runs without --expect.
	Expected string `json:"expected"`
	// The rest is "" or null where it is unknown.
	PeerDirect  string    `json:"peerdirect"`
	MOFED       string    `json:"mofed"`
	Level       string    `json:"level"`
	LevelBest   string    `json:"levelBest"`
	NCCLDefault *bool     `json:"ncclDefault"`
	GPUs        *int      `json:"gpus"`
	NICs        *int      `json:"nics"`
	DataDirect  bool      `json:"dataDirect"`
	Topology    string    `json:"topology"`
	Rate        *int      `json:"rate"`
	Link        string    `json:"link"`
	IOMMU       string    `json:"iommu"`
	ACS         string    `json:"acs"`
	GPUProducts []Product `json:"gpuProducts"`
	NICProducts []Product `json:"nicProducts"`
	// Findings are what is not as it should be, what failed first. Older agents give only codes.
	Findings []Finding `json:"findings"`
	// Changed is when a label or a finding last changed, and Written when the agent last
	// changed what it publishes.
	Changed *time.Time `json:"changed"`
	Written *time.Time `json:"written"`
}

// JSON writes the nodes, their summary and the chain.
func JSON(w io.Writer, all []Node, chain *Chain) error {
	out := struct {
		Nodes   []nodeJSON `json:"nodes"`
		Summary Summary    `json:"summary"`
		Chain   *Chain     `json:"chain"`
	}{[]nodeJSON{}, Summarize(all), chain}
	for i := range all {
		out.Nodes = append(out.Nodes, all[i].json())
	}
	return show.JSON(w, out)
}

// SummaryJSON leaves the nodes out.
func SummaryJSON(w io.Writer, s Summary, chain *Chain) error {
	return show.JSON(w, map[string]any{"summary": s, "chain": chain})
}

func (n *Node) json() nodeJSON {
	out := nodeJSON{
		Node: n.Name, Namespace: n.Namespace,
		Capable: n.state(label.Capable), Ready: n.state(label.Ready), Reason: n.Labels[label.Reason],
		Peermem: n.state(label.Peermem), DMABuf: n.state(label.DMABuf), Storage: n.state(label.Storage), Expected: n.state(label.Expected),
		PeerDirect: n.Labels[label.PeerDirect], MOFED: n.Labels[label.MOFED],
		Level: n.Labels[label.Level], LevelBest: n.Labels[label.BestLevel],
		GPUs: number(n.Labels[label.GPUs]), NICs: number(n.Labels[label.NICs]),
		DataDirect: n.Labels[label.DataDirect] == "true", Topology: n.Labels[label.Topology],
		Rate: number(n.Labels[label.Rate]), Link: n.Labels[label.Link], IOMMU: n.Labels[label.IOMMU], ACS: n.Labels[label.ACS],
		GPUProducts: append([]Product{}, n.GPUs...), NICProducts: append([]Product{}, n.NICs...),
		Findings: append([]Finding{}, n.Findings...), Written: utc(n.Written),
	}
	if len(n.Changes) > 0 {
		out.Changed = utc(n.changed())
	}
	if s := n.state(label.NCCLDefault); s == "true" || s == "false" {
		known := s == "true"
		out.NCCLDefault = &known
	}
	return out
}

// utc returns nil for a time that is not known.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// number returns nil for a text that is not a number.
func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}
