package alike

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/nodes"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
)

// row is a line of the table: nodes that differ from the majority in the same way.
type row struct {
	fact, here, most string
	job              bool
	nodes            []string
}

// Text writes for each kind which nodes differ and in what, and at the end how many.
func Text(w io.Writer, r *Result, s nodes.Style) error {
	var out bytes.Buffer
	for i := range r.Kinds {
		k := &r.Kinds[i]
		if s.Headers {
			fmt.Fprintln(&out, sanitize.Terminal(k.title()))
		}
		if err := k.table(&out, s); err != nil {
			return err
		}
		if s.Headers {
			out.WriteString(k.unknown() + "\n")
		}
	}
	if s.Headers {
		out.WriteString(r.summary())
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (k *Kind) table(w io.Writer, s nodes.Style) error {
	switch {
	case len(k.Differences) == 0:
		return nil
	case s.Wide:
		return nodes.Rows(w, wideColumns(s), k.Differences, s.Headers)
	}
	return nodes.Rows(w, columns, k.rows(s.Namespaces), s.Headers)
}

var columns = []nodes.Column[row]{
	{Heading: "FACT", Cell: func(r *row) string { return r.fact }},
	{Heading: "JOB", Cell: func(r *row) string { return yes(r.job) }},
	{Heading: "HERE", Cell: func(r *row) string { return r.here }},
	{Heading: "MOST", Cell: func(r *row) string { return r.most }},
	{Heading: "NODES", Cell: func(r *row) string { return few(r.nodes) }},
}

func wideColumns(s nodes.Style) []nodes.Column[Difference] {
	var all []nodes.Column[Difference]
	if s.Namespaces {
		all = append(all, nodes.Column[Difference]{Heading: "NAMESPACE", Cell: func(d *Difference) string { return d.Namespace }})
	}
	return append(all,
		nodes.Column[Difference]{Heading: "NODE", Cell: func(d *Difference) string { return d.Node }},
		nodes.Column[Difference]{Heading: "FACT", Cell: func(d *Difference) string { return d.Fact }},
		nodes.Column[Difference]{Heading: "JOB", Cell: func(d *Difference) string { return yes(d.Job) }},
		nodes.Column[Difference]{Heading: "RAIL", Cell: func(d *Difference) string {
			if d.Rail < 0 {
				return ""
			}
			return strconv.Itoa(d.Rail)
		}},
		nodes.Column[Difference]{Heading: "NIC", Cell: func(d *Difference) string { return d.RDMA }},
		nodes.Column[Difference]{Heading: "ADDRESS", Cell: func(d *Difference) string { return d.Address }},
		nodes.Column[Difference]{Heading: "HERE", Cell: func(d *Difference) string { return d.here() }},
		nodes.Column[Difference]{Heading: "MOST", Cell: func(d *Difference) string { return d.most() }},
	)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func (d *Difference) here() string {
	if d.Detail == "" {
		return d.Here
	}
	return d.Here + ", " + d.Detail
}

func (d *Difference) most() string { return fmt.Sprintf("%s (%d of %d)", d.Most, d.With, d.Of) }

// title is "8x H100 SXM5 80GB, 8x ConnectX-7: 120 nodes, 3 differ".
func (k *Kind) title() string {
	var parts []string
	for _, p := range slices.Concat(k.GPUs, k.NICs) {
		parts = append(parts, fmt.Sprintf("%dx %s", p.Count, p.Name))
	}
	state := "alike"
	if n := len(k.Differing()); n > 0 {
		state = fmt.Sprintf("%d differ", n)
	}
	return fmt.Sprintf("%s: %s, %s", cmp.Or(strings.Join(parts, ", "), "no GPU, no NIC"), show.Count(len(k.Nodes), "node"), state)
}

// unknown names what a job needs and is not known of some nodes, in a line; "" for nothing.
func (k *Kind) unknown() string {
	var parts []string
	for i := range facts {
		if f := &facts[i]; f.job && k.Unknown[f.key] > 0 {
			parts = append(parts, f.name+" of "+show.Count(k.Unknown[f.key], "node"))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "not known: " + strings.Join(parts, ", ") + "\n"
}

func (r *Result) summary() string {
	s := r.Summary()
	text := fmt.Sprintf("%s of %s: %d alike, %d differ\n", show.Count(s.Nodes, "node"), show.Count(s.Kinds, "kind"), s.Nodes-s.Differing, s.Differing)
	if len(r.Older) > 0 {
		text += "not compared, older agent: " + sanitize.Terminal(few(names(r.Older, false))) + "\n"
	}
	if len(r.Unlabelled) > 0 {
		text += "not compared, no GPU: " + sanitize.Terminal(few(names(r.Unlabelled, false))) + "\n"
	}
	return text
}

// Summary counts nodes.
type Summary struct {
	// Nodes are those that were compared, Kinds their kinds, and Differing those that differ.
	Nodes     int `json:"nodes"`
	Kinds     int `json:"kinds"`
	Differing int `json:"differing"`
	// Older are nodes whose agent publishes less than is compared.
	Older int `json:"older"`
	// Unlabelled are nodes without a GPU.
	Unlabelled int `json:"unlabelled"`
}

// Summary counts the nodes.
func (r *Result) Summary() Summary {
	s := Summary{Kinds: len(r.Kinds), Older: len(r.Older), Unlabelled: len(r.Unlabelled)}
	for i := range r.Kinds {
		s.Nodes += len(r.Kinds[i].Nodes)
		s.Differing += len(r.Kinds[i].Differing())
	}
	return s
}

// rows folds the differences: those of all rails of a node into one, and the nodes that
// differ in the same way.
func (k *Kind) rows(namespaces bool) []row {
	var rows []row
	at := map[[3]string]int{}
	all := k.Differences
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Name == all[0].Name && all[n].Key == all[0].Key {
			n++
		}
		one := fold(all[:n])
		key := [3]string{one.fact, one.here, one.most}
		i, ok := at[key]
		if !ok {
			i = len(rows)
			at[key] = i
			rows = append(rows, one)
		}
		rows[i].nodes = append(rows[i].nodes, names([]Name{all[0].Name}, namespaces)...)
		all = all[n:]
	}
	return rows
}

// fold makes one row of the differences of a node in one fact.
func fold(all []Difference) row {
	r := row{fact: all[0].Fact, job: all[0].Job, here: all[0].here(), most: all[0].most()}
	if all[0].Rail < 0 {
		return r
	}
	same := func(of func(*Difference) string) bool {
		return !slices.ContainsFunc(all, func(d Difference) bool { return of(&d) != of(&all[0]) })
	}
	if same(func(d *Difference) string { return d.Here }) && same(func(d *Difference) string { return d.Most }) {
		r.here += " on " + rails(all)
		return r
	}
	const most = 2
	var here, there []string
	for i := range all[:min(most, len(all))] {
		here = append(here, fmt.Sprintf("rail %d: %s", all[i].Rail, all[i].Here))
		there = append(there, all[i].most())
	}
	r.here, r.most = strings.Join(here, ", "), strings.Join(there, ", ")
	if more := len(all) - most; more > 0 {
		r.here += fmt.Sprintf(" and %d more", more)
	}
	return r
}

// rails is "rail 3" or "rails 0-3 6".
func rails(all []Difference) string {
	var parts []string
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && all[last+1].Rail == all[last].Rail+1 {
			last++
		}
		part := strconv.Itoa(all[i].Rail)
		if last > i {
			part += "-" + strconv.Itoa(all[last].Rail)
		}
		parts = append(parts, part)
		i = last + 1
	}
	if len(all) == 1 {
		return "rail " + parts[0]
	}
	return "rails " + strings.Join(parts, " ")
}

// names are those of nodes, after their namespaces on request.
func names(all []Name, namespaces bool) []string {
	var texts []string
	for _, n := range all {
		text := n.Node
		if namespaces {
			text = n.Namespace + "/" + text
		}
		texts = append(texts, text)
	}
	return texts
}

// few names the first of many nodes.
func few(all []string) string {
	const most = 3
	if len(all) <= most+1 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
