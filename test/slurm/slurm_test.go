//go:build slurm

// Package slurm tests that Slurm reads what `gdr-features topo -o slurm` prints, and places
// jobs by it. It needs slurmd, slurmctld and salloc, of Debian's packages slurmd, slurmctld and
// slurm-client, and root. `hack/check.sh slurm` runs it.
package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/machine"
)

// TestSlurmd: on every machine, in a ready and in another state, slurmd reads the lines
// without an error and finds the devices that they name.
func TestSlurmd(t *testing.T) {
	program := build(t)
	devices := 0
	for _, m := range machine.All(t, "../../testdata/machines") {
		states := m.States()
		for _, s := range []machine.State{states[0], states[len(states)-1]} {
			t.Run(m.Name+"/"+s.Name, func(t *testing.T) {
				devices += compare(t, printed(t, program, m, s))
			})
		}
	}
	if devices < 500 {
		t.Errorf("only %d devices on all machines", devices)
	}
}

// build builds gdr-features.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "gdr-features")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/gdr-features").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// printed is what topo -o slurm prints on a machine with device nodes.
func printed(t *testing.T, program string, m *machine.Machine, s machine.State) string {
	t.Helper()
	dir := m.Tree(t, s)
	m.Container(t, dir, nil)
	text, err := exec.CommandContext(t.Context(), program, "--root", dir, "topo", "-o", "slurm").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// settings are those of every slurm.conf here.
const settings = "ClusterName=test\nAuthType=auth/none\nCredType=cred/none\nGresTypes=gpu,nic\nSelectType=select/cons_tres\n" +
	"ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSlurmUser=root\nSlurmdUser=root\n"

var (
	inFile = regexp.MustCompile(`(?m)^NodeName=\S+ Name=(gpu|nic) File=(/dev/\S+)`)
	read   = regexp.MustCompile(`(?m)^slurmd[^ ]*: Gres Name=(gpu|nic) Type=\(null\) Count=1 .*File=(/\S+)`)
)

// compare compares the devices in the text with those that slurmd finds, and gives their
// number.
func compare(t *testing.T, text string) int {
	t.Helper()
	conf, gres := parts(t, text)
	dir := t.TempDir()
	var want []string
	counts := map[string]int{}
	for _, line := range inFile.FindAllStringSubmatch(gres, -1) {
		want = append(want, line[1]+" "+line[2])
		counts[line[1]]++
	}
	gres = movedDevices(t, dir, gres)
	for name, count := range counts {
		if !strings.Contains(conf, fmt.Sprintf("%s:%d", name, count)) {
			t.Errorf("%d lines of %s:\n%s", count, name, text)
		}
	}
	if !strings.Contains(conf, "\nNodeName=") {
		conf += "NodeName=NODE\n"
	}
	write(t, dir, "slurm.conf", settings+"SlurmctldHost=localhost\n"+conf)
	write(t, dir, "gres.conf", gres)
	out, err := exec.CommandContext(t.Context(), "slurmd", "-G", "-N", "NODE", "-f", filepath.Join(dir, "slurm.conf")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "error:") {
		t.Errorf("slurmd: %v\n%s\n%s", err, out, text)
	}
	var got []string
	for _, line := range read.FindAllStringSubmatch(string(out), -1) {
		got = append(got, line[1]+" "+strings.TrimPrefix(line[2], dir))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-printed +slurmd):\n%s\n%s", diff, out)
	}
	return len(got)
}

// parts divides the text into those for slurm.conf and gres.conf.
func parts(t *testing.T, text string) (conf, gres string) {
	t.Helper()
	conf, gres, found := strings.Cut(text, "# gres.conf\n")
	if !found {
		t.Fatalf("no part for gres.conf:\n%s", text)
	}
	return conf, gres
}

// movedDevices makes a character device for each of a gres.conf, which slurmd wants, below
// dir, and gives the gres.conf that names those.
func movedDevices(t *testing.T, dir, gres string) string {
	t.Helper()
	for _, line := range inFile.FindAllStringSubmatch(gres, -1) {
		node := filepath.Join(dir, line[2])
		if err := os.MkdirAll(filepath.Dir(node), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(os.DevNull, node); err != nil {
			t.Fatal(err)
		}
	}
	return strings.ReplaceAll(gres, "File=/dev/", "File="+dir+"/dev/")
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
