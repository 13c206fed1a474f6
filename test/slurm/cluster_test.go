//go:build slurm

package slurm

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gdr-features/test/machine"
	"gdr-features/test/pages"
)

// TestJobs: in a Slurm cluster with the lines of four machines jobs go to the nodes that
// docs/schedulers.md says: two at PXB, one at PIX and one that is not ready.
func TestJobs(t *testing.T) {
	c := newCluster(t, []node{
		{"pix", "dell-xe9680-h100", "ready"},
		{"pxb1", "broadcom-nested", "ready"},
		{"pxb2", "dgx-a100-nps4", "ready"},
		{"down", "dell-xe9680-h100", "closed-no-peermem"},
	})
	tests := []struct {
		args, want string // names of nodes; part of an error where there is a space
	}{
		{"-N1 --constraint=gdr-pix", "pix"},
		{"-N3 --constraint=gdr", "pix,pxb[1-2]"},
		{"-N4 --constraint=gdr", "Requested node configuration is not available"},
		{"-N3 --constraint=gdr-pix|gdr-pxb", "pix,pxb[1-2]"},
		{"-N2 --constraint=[gdr-pix|gdr-pxb]", "pxb[1-2]"},
		{"-N3 --constraint=[gdr-pix|gdr-pxb]", "Requested node configuration is not available"},
		{"-N1 --constraint=gdr-sys", "Invalid feature specification"},
		{"-N1 --constraint=gdr-pix --gres=gpu:8,nic:12", "pix"},
		{"-N1 --constraint=gdr-pix --gres=gpu:8,nic:13", "Requested node configuration is not available"},
		{"-N1 -w down --gres=gpu:8,nic:12", "down"},
	}
	for _, tt := range tests {
		if got := c.salloc(t, tt.args); got != tt.want && (!strings.Contains(tt.want, " ") || !strings.Contains(got, tt.want)) {
			t.Errorf("salloc %s: %q, want %q", tt.args, got, tt.want)
		}
	}
	page, err := pages.Read("../..", "docs/schedulers.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := page.Commands("sbatch")
	if len(shown) != 3 {
		t.Errorf("the page shows %q", shown)
	}
	for _, command := range shown {
		constraint := " " + strings.NewReplacer("k8s/", "", "'", "").Replace(strings.Fields(command)[1])
		if !slices.ContainsFunc(tests, func(tt struct{ args, want string }) bool { return strings.HasSuffix(tt.args, constraint) }) {
			t.Errorf("not tried: %s", command)
		}
	}
}

// node is a node of a cluster, and the machine that it is.
type node struct{ name, machine, state string }

// cluster is a Slurm cluster on this machine.
type cluster struct{ conf string }

// newCluster starts a cluster, and waits until all nodes are idle.
func newCluster(t *testing.T, nodes []node) cluster {
	t.Helper()
	dir, program := t.TempDir(), build(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	ports := freePorts(t, 1+len(nodes))
	var conf, gres strings.Builder
	fmt.Fprintf(&conf, settings+"SlurmctldHost=%s(127.0.0.1)\nSlurmctldPort=%s\nStateSaveLocation=%s\nSlurmctldPidFile=%[3]s/ctld.pid\n"+
		"SlurmdSpoolDir=%[3]s/spool-%%n\nSlurmdPidFile=%[3]s/%%n.pid\nPartitionName=all Nodes=ALL Default=YES\n", host, ports[0], dir)
	for i, n := range nodes {
		m, err := machine.Load("../../testdata/machines/" + n.machine + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		state, ok := m.StateNamed(n.state)
		if !ok {
			t.Fatalf("no state %s", n.state)
		}
		one, devices := parts(t, strings.ReplaceAll(printed(t, program, m, state), "=NODE ", "="+n.name+" "))
		conf.WriteString(strings.Replace(one, "NodeName="+n.name, "NodeName="+n.name+" NodeAddr=127.0.0.1 Port="+ports[i+1], 1))
		gres.WriteString(movedDevices(t, filepath.Join(dir, n.name), devices))
	}
	write(t, dir, "slurm.conf", conf.String())
	write(t, dir, "gres.conf", gres.String())
	c := cluster{filepath.Join(dir, "slurm.conf")}
	c.start(t, "slurmctld", "-D", "-c", "-f", c.conf)
	// A slurmd that cannot register at once tries again only after a while.
	c.wait(t, func() bool { return strings.Contains(c.run(t, "scontrol", "ping"), "UP") })
	for _, n := range nodes {
		c.start(t, "slurmd", "-D", "-N", n.name, "-f", c.conf)
	}
	c.wait(t, func() bool {
		return strings.Count(c.run(t, "sinfo", "-h", "-N", "-o", "%t"), "idle\n") == len(nodes)
	})
	return c
}

// wait waits until something is done.
func (c cluster) wait(t *testing.T, done func() bool) {
	t.Helper()
	for range 600 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("not within a minute:\n%s", c.run(t, "scontrol", "show", "node"))
}

// freePorts returns unused ports of 127.0.0.1.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // at the end, so that no two ports are the same
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}

// start starts a program, which ends with the test.
func (c cluster) start(t *testing.T, name string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s %q:\n%s", name, args, &out)
		}
	})
}

// run returns what a command prints.
func (c cluster) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
	out, _ := cmd.CombinedOutput() // has the error
	return string(out)
}

// salloc returns the nodes that a job gets, or why it gets none.
func (c cluster) salloc(t *testing.T, args string) string {
	t.Helper()
	all := append(strings.Fields(args), "--immediate=20", "-Q", "printenv", "SLURM_JOB_NODELIST")
	return strings.TrimSpace(c.run(t, "salloc", all...))
}
