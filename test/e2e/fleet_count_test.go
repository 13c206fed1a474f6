//go:build fleet

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// phase is a period in which requests are counted.
type phase struct {
	name    string
	cluster *cluster
	from    int64 // position in the audit log
	api     time.Duration
	start   time.Time
}

// row is the result of a phase for some nodes.
type row struct {
	phase, who    string
	nodes         int
	reads, writes counts
	refused       int               // requests that were answered with an error
	waited        *[4]time.Duration // from the cause to the answer, percentiles
	last          time.Time         // the last answer
	took, api     time.Duration     // of the phase; CPU of the API server in it
	resident      int               // of the API server at its end, in KiB
	note          string            // what does not fit into the table
}

// counts are numbers of requests of a node.
type counts struct{ sum, least, most int }

func (c *counts) add(n int, first bool) {
	c.sum += n
	c.most = max(c.most, n)
	if c.least = min(c.least, n); first {
		c.least = n
	}
}

// end counts the requests of some nodes in the phase, and completes the row.
func (p *phase) end(t *testing.T, who string, nodes []string, r row) row {
	t.Helper()
	r.phase, r.who, r.nodes, r.took = p.name, who, len(nodes), time.Since(p.start)
	r.api, r.resident = p.cluster.api.spent(t)-p.api, p.cluster.api.uses(t).resident
	reads, writes := map[string]int{}, map[string]int{}
	for _, e := range p.requests(t, nodes) {
		refused := e.ResponseStatus.Code >= 400 && e.ResponseStatus.Code != 404 // there is no object yet
		switch {
		case refused && write(&e): // nothing was written
		case write(&e):
			writes[nodeOf(&e)]++
		default:
			reads[nodeOf(&e)]++
		}
		if refused {
			r.refused++
		}
	}
	for i, node := range nodes {
		r.reads.add(reads[node], i == 0)
		r.writes.add(writes[node], i == 0)
	}
	return r
}

// requests returns the requests of some nodes, each once.
func (p *phase) requests(t *testing.T, nodes []string) []auditv1.Event {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(p.cluster.dir, auditLog))
	if err != nil {
		t.Fatal(err)
	}
	log = log[p.from:]
	log = log[:bytes.LastIndexByte(log, '\n')+1]
	wanted, seen := map[string]bool{}, map[string]bool{}
	for _, node := range nodes {
		wanted[node] = true
	}
	var found []auditv1.Event
	for line := range bytes.Lines(log) {
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		// A watch that ends began before, perhaps in another phase.
		ended := e.Verb == "watch" && e.Stage == auditv1.StageResponseComplete && e.ResponseStatus.Code == 200
		if ended || seen[string(e.AuditID)] || !wanted[nodeOf(&e)] {
			continue
		}
		seen[string(e.AuditID)] = true
		found = append(found, e)
	}
	return found
}

// nodeOf returns the node that a request was made for: that of the token, or that of the
// object, since the nfd-workers here have no Pods.
func nodeOf(e *auditv1.Event) string {
	if claim := e.User.Extra[nodeClaim]; len(claim) == 1 {
		return claim[0]
	}
	if e.ObjectRef != nil {
		return e.ObjectRef.Name
	}
	return ""
}

func write(e *auditv1.Event) bool { return !slices.Contains([]string{"get", "list", "watch"}, e.Verb) }

// watching counts the nodes whose agents watch again.
func (p *phase) watching(t *testing.T, nodes []string) int {
	t.Helper()
	all := map[string]bool{}
	for _, e := range p.requests(t, nodes) {
		if watches(&e) {
			all[nodeOf(&e)] = true
		}
	}
	return len(all)
}

func watches(e *auditv1.Event) bool { return e.Verb == "watch" && e.ResponseStatus.Code == 200 }

// returned checks how the agents come back after a restart: all watch again, but not
// all at the same time. It gives a summary.
func (p *phase) returned(t *testing.T, nodes []string, published time.Duration) string {
	t.Helper()
	answers, perSecond := map[string]int{}, map[int64]int{}
	var last time.Time
	for _, e := range p.requests(t, nodes) {
		at := e.RequestReceivedTimestamp.Time
		perSecond[at.Unix()]++
		answers[fmt.Sprintf("%s %d", e.Verb, e.ResponseStatus.Code)]++
		if watches(&e) {
			last = at
		}
	}
	if n := p.watching(t, nodes); n != len(nodes) {
		t.Errorf("restart: %d of %d watch again", n, len(nodes))
	}
	most := 0
	for _, n := range perSecond {
		most = max(most, n)
	}
	if most >= len(nodes) {
		t.Errorf("restart: %d requests of %d nodes within a second", most, len(nodes))
	}
	return fmt.Sprintf("After the API server was ready again all that had changed was published in %.1f s and all were watching in %.1f s;\n"+
		"%d requests in the busiest second, spread over %d seconds; answers %v.",
		published.Seconds(), last.Sub(p.start).Seconds(), most, len(perSecond), answers)
}

// spent returns the CPU time of a process.
func (p *process) spent(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ
}

// fleetTable is all rows.
type fleetTable []row

func (f *fleetTable) add(rows []row) { *f = append(*f, rows...) }

// String prints the table.
func (f *fleetTable) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "phase\tof\tnodes\treads/node\twrites/node\terrors\tp50\tp90\tp99\tlongest\tAPI server CPU\tresident")
	for _, r := range *f {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%d\t", r.phase, r.who, r.nodes, r.reads.per(r.nodes), r.writes.per(r.nodes), r.refused)
		if r.waited == nil {
			fmt.Fprint(w, "-\t-\t-\t-\t")
		} else {
			for _, d := range r.waited {
				fmt.Fprintf(w, "%.2f s\t", d.Seconds())
			}
		}
		fmt.Fprintf(w, "%.1f s in %.0f s\t%d MiB\n", r.api.Seconds(), r.took.Seconds(), r.resident>>10)
	}
	w.Flush()
	for _, r := range *f {
		if r.note != "" {
			fmt.Fprintf(&b, "\n%s\n", r.note)
		}
	}
	return b.String()
}

// per returns the number for each node; the mean and the maximum where nodes differ.
func (c counts) per(nodes int) string {
	if c.least == c.most {
		return fmt.Sprint(c.most)
	}
	return fmt.Sprintf("%.2f (most %d)", float64(c.sum)/float64(nodes), c.most)
}
