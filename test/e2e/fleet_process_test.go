//go:build fleet

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// agents is the program that runs the agents of all nodes.
type agents struct {
	cluster *cluster
	name    string
	nodes   []string
	in      io.Writer
	out     *bufio.Reader
}

// newAgents creates n nodes and starts the program, which waits for commands.
func newAgents(t *testing.T, c *cluster, n int) *agents {
	t.Helper()
	f := &agents{cluster: c, name: "gdr-features"}
	for i := range n {
		f.nodes = append(f.nodes, fmt.Sprintf("fleet-%04d", i))
	}
	lines, err := c.makeNodes(t.Context(), f.nodes)
	if err != nil {
		t.Fatal(err)
	}
	nodes := filepath.Join(c.dir, "fleet.nodes")
	if err := os.WriteFile(nodes, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(c.dir, "fleet.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	const example = "dell-xe9680-h100"
	cmd := exec.CommandContext(t.Context(), program("fleet"), "-server="+c.server, "-ca="+c.certificate(), "-namespace="+agentName,
		"-nodes="+nodes, "-before="+machine(t, example, "ready"), "-after="+machine(t, example, "storage"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = io.MultiWriter(log, t.Output())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // a failure has shown as a missing answer
	})
	f.in, f.out = in, bufio.NewReader(out)
	return f
}

// do sends the program a command and waits until it is done.
func (f *agents) do(t *testing.T, command string) row {
	t.Helper()
	if _, err := fmt.Fprintln(f.in, command); err != nil {
		t.Error(err)
		return row{}
	}
	line, err := f.out.ReadBytes('\n')
	if err != nil {
		t.Errorf("%s: the fleet answers nothing: %v", command, err)
		return row{}
	}
	var answer struct {
		Waited, Answered [4]time.Duration
		Last             time.Time
		CPU              time.Duration
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Errorf("%s: %v", command, err)
	}
	t.Logf("%s: the writes took %v, %v of CPU in the fleet so far", command, answer.Answered, answer.CPU)
	return row{waited: &answer.Waited, last: answer.Last}
}

// nfdWorkers are nfd-worker processes, each on a node of its own, that publish the same
// labels from a feature file.
type nfdWorkers struct {
	name          string
	nodes         []string
	members       []*node
	before, after []byte
	since         time.Time // of the last change
}

func newWorkers(t *testing.T, c *cluster) *nfdWorkers {
	t.Helper()
	const example = "dell-xe9680-h100"
	w := &nfdWorkers{
		name:   "nfd-worker",
		before: printed(t, machine(t, example, "ready")), after: printed(t, machine(t, example, "storage")),
	}
	for i := range workers {
		n := newNode(t, c, fmt.Sprintf("worker-%02d", i))
		n.update(t, w.before)
		w.nodes, w.members = append(w.nodes, n.name), append(w.members, n)
	}
	return w
}

// start starts all workers with NFD's default interval, and waits until they have
// written.
func (w *nfdWorkers) start(t *testing.T) {
	t.Helper()
	w.since = time.Now()
	for _, n := range w.members {
		n.work(t, time.Minute)
		time.Sleep(250 * time.Millisecond)
	}
	time.Sleep(5 * time.Second)
}

// change changes the feature files of some workers, and waits until these must have
// noticed.
func (w *nfdWorkers) change(t *testing.T, from, to int) {
	t.Helper()
	w.since = time.Now()
	for _, n := range w.members[from:to] {
		n.update(t, w.after)
	}
	time.Sleep(5 * time.Second)
}

// revive starts workers again that have ended, as the kubelet does.
func (w *nfdWorkers) revive(t *testing.T) {
	t.Helper()
	ended := 0
	for _, n := range w.members {
		if n.worker.alive() != nil {
			ended++
			if err := n.worker.start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("restart: %d of %d nfd-workers had ended", ended, len(w.members))
}

// row returns the times from the last change to the answers.
func (w *nfdWorkers) row(t *testing.T, p *phase) row {
	t.Helper()
	var all []time.Duration
	for _, e := range p.requests(t, w.nodes) {
		if write(&e) && e.Stage == auditv1.StageResponseComplete {
			all = append(all, e.StageTimestamp.Sub(w.since))
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		t.Fatalf("%s: no nfd-worker has written", p.name)
	}
	at := func(percent int) time.Duration { return all[max(0, (len(all)*percent+99)/100-1)] }
	return row{waited: &[4]time.Duration{at(50), at(90), at(99), at(100)}}
}
