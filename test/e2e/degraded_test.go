package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestLinkDegrades: the link of a NIC that GPUs use trains down under a running agent, or its port
// goes down, and is repaired. Each of that is one write. Until the repair the Node's label, the
// NodeFeature, the metric, `kubectl gdr`, its diff with a healthy node and its history say so. The
// node is ready all the time.
func TestLinkDegrades(t *testing.T) {
	t.Parallel()
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	const fine, worn = "link-fine", "link-worn" // of two that differ, diff takes the first for the majority
	newNode(t, &shared, fine).prepare(t, machine(t, "dell-xe9680-h100", "ready")).command(t, "--once")
	n := newNode(t, &shared, worn)
	tr := tree{t, machine(t, "dell-xe9680-h100", "ready")}
	healthy := labelsOf(t, tr.dir)
	a := n.run(t, tr.dir, "--listen="+address(t))
	n.expect(t, healthy)
	for _, test := range []struct {
		what, file, broken, right string
		moves                     map[string]string // labels
		finds                     []string          // check and code
		row, differs              string
		journal                   string // its last line
	}{
		{
			"a link trains down", "sys/bus/pci/devices/0000:3c:00.0/current_link_width", "4", "16",
			map[string]string{prefix + "gdr.degraded": "true"},
			[]string{"link LinkDegraded"},
			"true PIX LinkDegraded ", "findings - LinkDegraded none (1 of 2) link-worn", "LinkDegraded - WARN",
		},
		{
			"a port goes down", "sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN", "4: ACTIVE",
			map[string]string{prefix + "gdr.degraded": "true", prefix + "gdr.rate": "0"},
			[]string{"near-port NearPortDown", "port PortDown"},
			"true PIX NearPortDown +1 ", "port state yes DOWN on mlx5_3 ACTIVE (1 of 2) link-worn", "NearPortDown - WARN",
		},
	} {
		degraded, others := maps.Clone(healthy), maps.Clone(healthy)
		for name, value := range test.moves {
			degraded[name] = value
			delete(others, name)
		}
		moved := a.changes(t, others)
		change := func(what, text string, labels map[string]string, finds ...string) {
			t.Helper()
			s := a.strained(t, what)
			tr.write(test.file, text)
			s.recovers(t, 4, 1, func(ctx context.Context) error {
				return errors.Join(n.has(ctx, labels), a.right(ctx, labels), a.finds(ctx, finds...))
			})
			settle()
			if w := writes(shared.requests(t, s.from, n.name)); len(w) != 1 {
				t.Errorf("%s: %d writes, not one", what, len(w))
			}
		}
		both := fine + " " + worn
		change(test.what, test.broken, degraded, test.finds...)
		tells(t, kubeconfig, "kubectl gdr "+both, 0, worn+" "+test.row, "2 nodes, 2 ready (1 with warnings)")
		tells(t, kubeconfig, "kubectl gdr diff "+both, 2, test.differs, "1 alike, 1 differ")
		tells(t, kubeconfig, "kubectl gdr history "+worn, 0, "gdr.degraded false true", test.journal)

		change(test.what+" and is repaired", test.right, healthy)
		tells(t, kubeconfig, "kubectl gdr "+both, 0, worn+" true PIX - ", "2 nodes, 2 ready")
		tells(t, kubeconfig, "kubectl gdr diff "+both, 0, "2 alike, 0 differ")
		tells(t, kubeconfig, "kubectl gdr history "+worn, 0, "gdr.degraded true false", strings.Replace(test.journal, "- WARN", "WARN -", 1))
		for _, labels := range moved() {
			t.Errorf("%s: other labels move: %v", test.what, labels)
		}
	}
}

// finds returns an error unless the agent's NodeFeature and its metrics have these codes of checks,
// all as warnings, and no others.
func (a *agent) finds(ctx context.Context, checksAndCodes ...string) error {
	now, err := a.published(ctx)
	if err != nil {
		return err
	}
	var published []string
	for _, f := range now.Spec.Features.Instances["gdr.finding"].Elements {
		if f.Attributes["status"] == "WARN" {
			published = append(published, f.Attributes["check"]+" "+f.Attributes["code"])
		} else {
			published = append(published, fmt.Sprint(f.Attributes))
		}
	}
	slices.Sort(published)
	_, text, err := a.scrape(ctx, "/metrics")
	if err != nil {
		return err
	}
	for _, one := range checksAndCodes {
		check, code, _ := strings.Cut(one, " ")
		line := fmt.Sprintf(`gdr_finding{check=%q,code=%q,status="WARN"} 1`, check, code)
		if !strings.Contains(text, "\n"+line+"\n") {
			return fmt.Errorf("no metric %s", line)
		}
	}
	measured := strings.Count(text, "\ngdr_finding{")
	if !slices.Equal(published, checksAndCodes) || measured != len(checksAndCodes) {
		return fmt.Errorf("findings %q and %d metrics, want %q", published, measured, checksAndCodes)
	}
	return nil
}

// tells fails the test unless a command prints all of these texts, with any spaces between words.
func tells(t *testing.T, kubeconfig, command string, status int, texts ...string) {
	t.Helper()
	out, errs, got := shell(t, kubeconfig, command)
	if got != status || errs != "" {
		t.Errorf("%s: status %d, not %d: %s", command, got, status, errs)
	}
	words := strings.Join(strings.Fields(out), " ")
	for _, text := range texts {
		if !strings.Contains(words, text) {
			t.Errorf("%s: no %q in\n%s", command, text, out)
		}
	}
}
