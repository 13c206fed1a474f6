//go:build vm

package vm

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	trees "gdr-features/test/machine"
	"gdr-features/test/vm/wire"
)

// TestProof runs what proof plan writes with Debian's perftest on a software RDMA device, and reads what
// comes of it. That build has no CUDA and there is no GPU: transfers with host memory alone are true.
func TestProof(t *testing.T) {
	script := planned(t)
	m := transfers(t, map[string]string{
		"proof.sh": script,
		"nogid.sh": strings.ReplaceAll(script, "-x 1 ", "-x 9 "),
		"kill.sh":  killServer,
	})
	for _, test := range []struct {
		name, run string
		uid       uint32
		state     string
		why       string // of the transfer with host memory
	}{
		{"good", "dash /proof.sh /tmp/good", root, "true", ""},
		{"memlock", "ulimit -l 0; dash /proof.sh /tmp/nobody/memlock", nobody, "unknown", "this process may lock little memory"},
		{"port in use", "ib_write_bw -d mlx5_0 -p 18601 & sleep 5; dash /proof.sh /tmp/port; kill $!", root, "unknown", "the TCP port is in use"},
		{"no GID", "dash /nogid.sh /tmp/nogid", root, "unknown", "the sides could not connect: the GID"},
		{"killed", "dash /kill.sh /tmp/killed", root, "unknown", "the server was killed"},
	} {
		said := m.shell(test.uid, test.run)
		_, dir, _ := strings.Cut(test.run, "/tmp/")
		dir = "/tmp/" + dir
		dir, _, _ = strings.Cut(dir, ";")
		r := m.try(wire.Request{Command: wire.Run, Args: []string{"/gdr-features", "proof", "read", dir, "-o", "json"}})
		var result struct {
			State string
			Lines []struct {
				Name, Way, State, Why string
				Gbps                  float64
			}
		}
		if err := json.Unmarshal([]byte(r.Out), &result); err != nil {
			t.Fatalf("%s: %v: %+v; %+v", test.name, err, r, said)
		}
		if result.State != "unknown" || r.Status != 3 {
			t.Errorf("%s: %s, status %d", test.name, result.State, r.Status)
		}
		baselines := 0
		for _, l := range result.Lines {
			t.Logf("%s: %+v", test.name, l)
			if l.Way == "host" {
				baselines++
				if l.State != test.state || !strings.Contains(l.Why, test.why) || (l.Gbps > 0) != (test.state == "true") {
					t.Errorf("%s: %+v, want %s: %s; %s%s", test.name, l, test.state, test.why, said.Out, said.Err)
				}
			} else if l.State != "unknown" {
				t.Errorf("%s: %+v", test.name, l)
			}
		}
		if baselines != 1 || len(result.Lines) < 2 {
			t.Errorf("%s: %d lines", test.name, len(result.Lines))
		}
	}
}

// killServer runs the script, and kills the first server of a transfer that has its client.
const killServer = `dash /proof.sh "$1" &
until [ -e "$1/mlx5_0_host.c.cmd" ]; do sleep 1; done
` + killServers + "wait\n"

// killServers kills perftest's servers: those that are given no address.
const killServers = `for p in /proc/[0-9]*; do
	IFS= read -r name <"$p/comm" 2>/dev/null || continue
	[ "$name" = ib_write_bw ] || continue
	case $(cat "$p/cmdline") in *127.0.0.1*) ;; *) kill -9 "${p#/proc/}" ;; esac
done
`

// transfers is a machine with Debian's perftest, these scripts, two software RDMA devices, and a folder
// that everybody may write to.
func transfers(t *testing.T, scripts map[string]string) *machine {
	t.Helper()
	w := node()
	w.files = perftest(t)
	maps.Copy(w.files, scripts)
	m := boot(t, w, "")
	m.load("rdma_rxe")
	m.load("crc32_generic")
	m.load("dummy")
	m.do(wire.Request{Command: wire.Up, Device: "lo", Path: "127.0.0.1"})
	m.do(wire.Request{Command: wire.Up, Device: "dummy0", Path: "10.9.0.1"})
	m.do(wire.Request{Command: wire.AddRXE, Path: "mlx5_0", Device: "dummy0"})
	m.do(wire.Request{Command: wire.AddRXE, Path: "mlx5_1", Device: "lo"})
	m.shell(root, "mkdir -m 777 /tmp/nobody")
	return m
}

// shell runs commands as somebody.
func (m *machine) shell(uid uint32, commands string) wire.Response {
	m.t.Helper()
	return m.do(wire.Request{Command: wire.Run, UID: uid, Args: []string{"/bin/dash", "-c", commands}})
}

// perftest are the files of Debian's packages that the script needs.
func perftest(t *testing.T) map[string]string {
	t.Helper()
	const tree = built + "perftest"
	files := map[string]string{}
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err == nil {
			files[strings.TrimPrefix(path, tree+"/")] = string(body)
		}
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatalf("%s: %d files, error %v (build.sh makes it)", tree, len(files), err)
	}
	return files
}

// oneRoCE is a machine with a GPU and a NIC below one switch.
const oneRoCE = `nodes 1
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 10b5:9797
      0000:12:00.0 port 10b5:9797
        0000:13:00.0 gpu 10de:2330
      0000:12:01.0 port 10b5:9797
        0000:14:00.0 eth 15b3:1021 rdma=mlx5_0
`

// planned is the script for a machine with one GPU and one near NIC, mlx5_0, whose usable GID is that
// of a software RDMA device: the second.
func planned(t *testing.T) string {
	t.Helper()
	m, err := trees.Parse(oneRoCE)
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	m.GIDs(t, dir, "0 v2 fe80::1 dummy0", "1 v2 ::ffff:10.9.0.1 dummy0")
	out, err := exec.Command(built+"gdr-features", "--root", dir, "proof", "plan").Output()
	if err != nil || !strings.Contains(string(out), "run mlx5_0_host '-d mlx5_0 -i 1 -x 1 ") {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
