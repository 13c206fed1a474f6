package alike

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/fleet/nodes"
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
		var err error
		switch {
		case len(k.Differences) == 0:
		case s.Wide:
			err = nodes.Rows(&out, wideColumns, k.Differences, s)
		default:
			err = nodes.Rows(&out, columns, k.rows(s.Namespaces), s)
		}
		if err != nil {
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

var columns = []nodes.Column[row]{
	{Heading: "FACT", Cell: func(r *row) string { return r.fact }},
	{Heading: "JOB", Cell: func(r *row) string { return yes(r.job) }},
	{Heading: "HERE", Cell: func(r *row) string { return r.here }},
	{Heading: "MOST", Cell: func(r *row) string { return r.most }},
	{Heading: "NODES", Cell: func(r *row) string { return nodes.Few(r.nodes) }},
}

var wideColumns = []nodes.Column[Difference]{
	{Heading: "NAMESPACE", Cell: func(d *Difference) string { return d.Namespace }, In: nodes.WithNamespaces},
	{Heading: "NODE", Cell: func(d *Difference) string { return d.Node }},
	{Heading: "FACT", Cell: func(d *Difference) string { return d.Fact }},
	{Heading: "JOB", Cell: func(d *Difference) string { return yes(d.Job) }},
	{Heading: "RAIL", Cell: func(d *Difference) string { return d.Rail.String() }},
	{Heading: "NIC", Cell: func(d *Difference) string { return d.RDMA }},
	{Heading: "ADDRESS", Cell: func(d *Difference) string { return d.Address }},
	{Heading: "HERE", Cell: (*Difference).here},
	{Heading: "MOST", Cell: (*Difference).most},
}

// String is "3", and "" for the node as a whole.
func (r Rail) String() string {
	if r == whole {
		return ""
	}
	return strconv.Itoa(int(r))
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
	return text + notCompared("older agent", r.Older) + notCompared("no GPU", r.Unlabelled)
}

func notCompared(why string, left Names) string {
	if len(left) == 0 {
		return ""
	}
	return "not compared, " + why + ": " + sanitize.Terminal(nodes.Few(left.texts(false))) + "\n"
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
		rows[i].nodes = append(rows[i].nodes, Names{all[0].Name}.texts(namespaces)...)
		all = all[n:]
	}
	return rows
}

func fold(all []Difference) row {
	r := row{fact: all[0].Fact, job: all[0].Job, here: all[0].here(), most: all[0].most()}
	if all[0].Rail == whole {
		return r
	}
	differs := func(d Difference) bool { return d.Here != all[0].Here || d.Most != all[0].Most }
	if !slices.ContainsFunc(all, differs) {
		r.here += " on " + devices(all)
		return r
	}
	const most = 2
	var here, there []string
	for i := range all[:min(most, len(all))] {
		here = append(here, devices(all[i:i+1])+": "+all[i].Here)
		there = append(there, all[i].most())
	}
	r.here, r.most = strings.Join(here, ", "), strings.Join(there, ", ")
	if more := len(all) - most; more > 0 {
		r.here += fmt.Sprintf(" and %d more", more)
	}
	return r
}

// devices are the NICs by their names on this node, "mlx5_0 to mlx5_3, mlx5_6", or by their rails
// where it is names that differ, or one has none.
func devices(all []Difference) string {
	if all[0].Key == "names" || slices.ContainsFunc(all, func(d Difference) bool { return d.RDMA == "" }) {
		return rails(all)
	}
	var parts []string
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && all[last+1].RDMA == next(all[last].RDMA) {
			last++
		}
		if part := all[i].RDMA; last > i+1 {
			parts, i = append(parts, part+" to "+all[last].RDMA), last+1
		} else {
			parts, i = append(parts, part), i+1
		}
	}
	return strings.Join(parts, ", ")
}

// next is mlx5_4 after mlx5_3, "" after a name without number.
func next(name string) string {
	stem := strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(stem):])
	if err != nil {
		return ""
	}
	return stem + strconv.Itoa(n+1)
}

// rails is "rail 3" or "rails 0-3 6".
func rails(all []Difference) string {
	var parts []string
	for i := 0; i < len(all); {
		first, last := all[i].Rail, all[i].Rail
		for i++; i < len(all) && all[i].Rail == last+1; i++ {
			last++
		}
		part := first.String()
		if last > first {
			part += "-" + last.String()
		}
		parts = append(parts, part)
	}
	if len(all) == 1 {
		return "rail " + parts[0]
	}
	return "rails " + strings.Join(parts, " ")
}

// texts are the names, after their namespaces on request.
func (n Names) texts(namespaces bool) []string {
	texts := make([]string, len(n))
	for i, name := range n {
		texts[i] = name.Node
		if namespaces {
			texts[i] = name.Namespace + "/" + name.Node
		}
	}
	return texts
}
