package monitoring

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// target are the labels that our PodMonitor and the Prometheus Operator add, and the one that
// Prometheus may add where it watches several clusters.
var target = []string{"job", "instance", "namespace", "pod", "container", "endpoint", "node", "cluster"}

// nameLabel has the name of a metric.
const nameLabel = "__name__"

// metrics are the names of series with their labels, and the values seen of
// each.
type metrics map[string]map[string][]string

// exported returns what the agent has, what Prometheus and kube-state-metrics add, and what
// our rules record.
func exported(t *testing.T) metrics {
	t.Helper()
	known := metrics{
		"up": {}, "kube_node_spec_unschedulable": {},
		"kube_node_labels":     {"label_feature_node_kubernetes_io_gpudirect_rdma": nil},
		"gdr:node_ready:max5m": {"cluster": nil, "node": nil},
		"gdr:node_lost":        {"cluster": nil, "node": nil},
		"gdr:node_not_set_up":  {"cluster": nil, "node": nil},
		"gdr:node_reason":      {"cluster": nil, "node": nil, "reason": nil},
	}
	p := parser.NewParser(parser.Options{})
	for line := range strings.Lines(string(read(t, filepath.Join(repository, "internal/monitor/testdata/metrics.txt")))) {
		series, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		m, err := p.ParseMetric(series)
		if err != nil {
			t.Fatal(err)
		}
		name := m.Get(nameLabel)
		if known[name] == nil {
			known[name] = map[string][]string{}
		}
		m.DropReserved(func(n string) bool { return n == nameLabel }).Range(func(l labels.Label) {
			known[name][l.Name] = append(known[name][l.Name], l.Value)
		})
		if base, ok := strings.CutSuffix(name, "_sum"); ok { // the golden file has no buckets
			known[base+"_bucket"] = map[string][]string{"le": nil}
		}
	}
	for name, has := range known {
		if strings.Contains(name, ":") {
			continue
		}
		for _, l := range target {
			has[l] = nil
		}
	}
	if len(known) < 10 {
		t.Fatalf("only %v", slices.Sorted(maps.Keys(known)))
	}
	return known
}

// words are labels whose values are all in the README.
var words = []string{"reason", "level"}

// judge says what is wrong with an expression: a metric or a label that is not
// exported, a value that never occurs.
func judge(text string, known metrics, readme string) (wrong []string) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	need := func(names []string, of parser.Expr) {
		has := known.below(of)
		for _, l := range names {
			if !has[l] {
				wrong = append(wrong, fmt.Sprintf("no label %s in %s", l, of))
			}
		}
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			wrong = append(wrong, known.selector(n, readme)...)
		case *parser.AggregateExpr:
			need(n.Grouping, n.Expr)
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil && m.On {
				need(m.MatchingLabels, n.LHS)
				need(m.MatchingLabels, n.RHS)
			}
		}
		return nil
	})
	return wrong
}

// below returns the labels that series of an expression may have.
func (known metrics) below(e parser.Expr) map[string]bool {
	has := map[string]bool{}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			for l := range known[n.Name] {
				has[l] = true
			}
		case *parser.Call:
			if n.Func.Name == "label_join" || n.Func.Name == "label_replace" {
				if made, ok := n.Args[1].(*parser.StringLiteral); ok {
					has[made.Val] = true
				}
			}
		}
		return nil
	})
	return has
}

// selector says what is wrong with a selector.
func (known metrics) selector(s *parser.VectorSelector, readme string) (wrong []string) {
	has, ok := known[s.Name]
	if !ok {
		return []string{"no metric " + s.Name}
	}
	for _, m := range s.LabelMatchers {
		if m.Name == nameLabel {
			continue
		}
		values, ok := has[m.Name]
		if m.Name == "code" {
			for code := range strings.SplitSeq(m.Value, "|") {
				if _, err := os.Stat(filepath.Join(repository, "docs/reasons", code+".md")); err != nil {
					wrong = append(wrong, "no code is "+code)
				}
			}
			continue
		}
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s has no label %s", s.Name, m.Name))
		case m.Type != labels.MatchEqual || len(values) == 0:
		case slices.Contains(words, m.Name):
			if !strings.Contains(readme, "`"+m.Value+"`") {
				wrong = append(wrong, fmt.Sprintf("no %s is %s", m.Name, m.Value))
			}
		case !slices.Contains(values, m.Value):
			wrong = append(wrong, fmt.Sprintf("%s of %s is never %s", m.Name, s.Name, m.Value))
		}
	}
	return wrong
}

// The metrics and labels that rules and dashboard use exist.
func TestExpressions(t *testing.T) {
	known, readme := exported(t), string(read(t, filepath.Join(repository, "README.md")))
	exprs := dashboardExprs(t)
	for _, group := range rules(t).Spec.Groups {
		for _, r := range group.Rules {
			exprs[r.Alert+r.Record] = r.Expr
			if r.Record != "" && known[r.Record] == nil {
				t.Errorf("%s: not known here", r.Record)
			}
		}
	}
	for name, expr := range exprs {
		for _, wrong := range judge(expr, known, readme) {
			t.Errorf("%s: %s\n%s", name, wrong, expr)
		}
	}
}

// Where one Prometheus watches several clusters, nodes of the same name do not mix: rules keep
// the label cluster, and the dashboard selects one.
func TestClusters(t *testing.T) {
	for _, group := range rules(t).Spec.Groups {
		for _, r := range group.Rules {
			for _, lost := range losesCluster(t, r.Expr) {
				t.Errorf("%s: loses the cluster: %s", r.Alert+r.Record, lost)
			}
		}
	}
	for name, expr := range dashboardExprs(t) {
		if name == "variable cluster" {
			continue
		}
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok && !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "cluster" }) {
				t.Errorf("%s: %s is of all clusters", name, s)
			}
			return nil
		})
	}
}

// losesCluster returns the parts of an expression whose result has no label cluster, or that
// match series of different clusters.
func losesCluster(t *testing.T, text string) (lost []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			if len(n.Grouping) > 0 && !slices.Contains(n.Grouping, "cluster") {
				lost = append(lost, n.String())
			}
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil && m.On && len(m.MatchingLabels) > 0 && !slices.Contains(m.MatchingLabels, "cluster") {
				lost = append(lost, n.String())
			}
		}
		return nil
	})
	return lost
}

// The tests above find mistakes.
func TestJudge(t *testing.T) {
	known, readme := exported(t), string(read(t, filepath.Join(repository, "README.md")))
	for expr, want := range map[string]string{
		`max by (node) (gdr_ready)`:                                       "",
		`max by (node) (gdr_raedy)`:                                       "no metric gdr_raedy",
		`max by (reason) (gdr_ready)`:                                     "no label reason in gdr_ready",
		`gdr_ready and on (reason) gdr_reason`:                            "no label reason in gdr_ready",
		`gdr_ready{reason="NoGPU"}`:                                       "gdr_ready has no label reason",
		`gdr_reason{reason="NoGpu"}`:                                      "no reason is NoGpu",
		`gdr_finding{code!~"Deviation|NoSuch"}`:                           "no code is NoSuch",
		`gdr_publish_total{result="error"}`:                               "result of gdr_publish_total is never error",
		`sum by (le) (rate(gdr_collect_seconds_bucket[5m]))`:              "",
		`max by (a) (label_join(gdr_reason, "a", " ", "node", "reason"))`: "",
		`max by (node) (gdr_pair_level)`:                                  "no metric gdr_pair_level", // only with --metrics-pairs
		`max(`:                                                            "parse error",
	} {
		got := strings.Join(judge(expr, known, readme), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// So does the test of clusters.
func TestLosesCluster(t *testing.T) {
	for expr, want := range map[string]int{
		`max by (cluster, node) (gdr_ready)`:              0,
		`max by (node) (gdr_ready)`:                       1,
		`gdr_ready and on (cluster, node) gdr_capable`:    0,
		`max(gdr_ready) and on (node) max(gdr_capable)`:   1,
		`absent(up) unless on () group(gdr_ready)`:        0,
		`gdr:node_lost * on (node) group_left (reason) x`: 1,
	} {
		if got := losesCluster(t, expr); len(got) != want {
			t.Errorf("%s: %q", expr, got)
		}
	}
}
