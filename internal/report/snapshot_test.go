package report_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/internal/sanitize"
	"gdr-features/source/container"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/test/testsize"
)

// FuzzSnapshot breaks a machine and takes a snapshot of it: reading the snapshot
// gives the same as reading the machine, problems included.
func FuzzSnapshot(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, seed uint64, wounds uint8) { sameOnSnapshot(t, seed, int(wounds)%40+1) })
}

// TestSnapshotOfDamage is the fuzz target over a fixed range.
func TestSnapshotOfDamage(t *testing.T) {
	t.Parallel()
	for seed := range testsize.Inputs(200) {
		sameOnSnapshot(t, seed, int(seed%12)+1)
	}
}

func sameOnSnapshot(t *testing.T, seed uint64, wounds int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	k, dir := kindOf(t, seed, random)
	if seed%2 == 1 {
		m := parse(t, k.text)
		m.Container(t, dir, []int{0}, m.RDMADevices()...)
	}
	for range wounds {
		wound(dir, random)
	}
	names := family.Names(family.Every().NICs)
	one := report.ForTopo
	one.Families = selected(t, names[random.IntN(len(names))]+","+names[random.IntN(len(names))])
	if diff := commandsFromSnapshot(t, dir, append(report.Commands[:], one)); diff != "" {
		t.Fatalf("seed %d, %d wounds: %s", seed, wounds, diff)
	}
}

// TestSnapshotOfOddities: what a snapshot leaves out and overwrites changes no
// answer, even where it looks like a fact that matters.
func TestSnapshotOfOddities(t *testing.T) {
	t.Parallel()
	const device, port = "sys/class/infiniband/mlx5_0/", "sys/class/infiniband/mlx5_0/ports/1/"
	const release, topologyFile = "proc/sys/kernel/osrelease", "var/run/nvidia-topologyd/virtualTopology.xml"
	type oddity struct {
		name, machine string
		files         map[string]string
		gone          string // not in the snapshot
	}
	for _, tt := range testsize.Share([]oddity{
		{name: "a serial number like ids of PCI", machine: strings.Replace(one, "rdma=", "vpd=SN:000010 rdma=", 1)},
		{name: "a serial number like an address", machine: strings.Replace(one, "rdma=", "vpd=SN:0000:18 rdma=", 1)},
		{
			name: "no serial number", machine: strings.Replace(one, "rdma=mlx5_0", "vpd=SN:000000 rdma=ibx0002c90000000a12", 1),
			gone: "0002c90000000a12",
		},
		{name: "a number in the place of a state", files: map[string]string{port + "state": "123456789012: ACTIVE\n"}},
		{name: "a number in the place of a rate", files: map[string]string{port + "rate": "123456789012 Gb/sec\n"}},
		{name: "a number of a port", files: map[string]string{device + "ports/123456789012/state": "4: ACTIVE\n"}},
		{
			name: "a topology file that names its host", gone: "node-7",
			files: map[string]string{topologyFile: "<!-- hostname: node-7.example.com --><system hostname=\"node-7\"><cpu numaid=\"0\"><pci busid=\"0000:18:00.0\"/><pci busid=\"0000:19:00.0\"/></cpu></system>"},
		},
		{
			name: "a topology file with an error", gone: "node-7",
			files: map[string]string{topologyFile: "<system serial=MT2310XZ0ABC><!-- node-7 -->"},
		},
		{
			name: "a kernel from git", files: map[string]string{
				release: "6.11.0-rc4-00123-g47ac09b91bef\n",
				"lib/modules/6.11.0-rc4-00123-g47ac09b91bef/modules.dep": "extra/nvidia-peermem.ko: extra/nvidia.ko kernel/ib_uverbs.ko\n",
			},
		},
		{name: "a kernel with an odd name", files: map[string]string{release: "6.8\x01x\n", "lib/modules/6.8\x01x/modules.dep": "a.ko:\n"}},
		{name: "modules.dep is too large", files: map[string]string{release: "6.8\n", "lib/modules/6.8/modules.dep": strings.Repeat("\x01\n", 5<<19)}},
		{name: "modules.dep begins with a long line", files: map[string]string{
			release: "6.8\n", "lib/modules/6.8/modules.dep": strings.Repeat("a", 300) + ":\nextra/nvidia-peermem.ko: extra/nvidia.ko kernel/ib_uverbs.ko\n",
		}},
		{name: "an entry with an odd name", files: map[string]string{"sys/bus/pci/devices/0000:20:00.0\x01/vendor": "0x10de\n"}},
		{name: "PSIDs of other vendors", files: map[string]string{device + "board_id": "SM_2001000001034\n"}},
		{
			name: "a management NIC of another class", machine: strings.Replace(one, "ib 15b3", "eth 15b3", 1),
			files: map[string]string{device + "board_id": "MT_0000001121\n", device + "fw_ver": "28.42.1000\n"},
		},
		{name: "a command line with a password", gone: "secret", files: map[string]string{"proc/cmdline": "password=secret iommu=pt\n"}},
		{name: "a command line that is too long", gone: "secret", files: map[string]string{"proc/cmdline": strings.Repeat("password=secret iommu=pt ", 200)}},
		{name: "a symbol table that ends in a long line", files: map[string]string{"proc/kallsyms": "0000000000000000 t a\n" + strings.Repeat("y", 5000)}},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			m := parse(t, cmp.Or(tt.machine, one))
			for _, state := range testsize.Few(m.States()) {
				dir := m.Tree(t, state)
				for name, text := range tt.files {
					path := filepath.Join(dir, name)
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
						t.Fatalf("%s: %v", state.Name, err)
					}
				}
				if diff := fromSnapshot(t, dir, tt.gone); diff != "" {
					t.Errorf("%s: %.3000s", state.Name, diff)
				}
			}
		})
	}
}

// FuzzSnapshotOfFile: for files of which a snapshot keeps only some lines, any
// content gives the same results from those lines.
func FuzzSnapshotOfFile(f *testing.F) {
	const symbols, dependencies = "proc/kallsyms", "lib/modules/6.8/modules.dep"
	for _, table := range []string{
		"ffffffff81000000 T _text\nc0de1234 t ib_umem_dmabuf_get\t[ib_uverbs]\n",
		"00000000 T a\n00000000 r __ksymtab_ib_register_peer_memory_client\t[ib_core]\n00000000 t ib_register_peer_memory_client.cold\t[x]",
		"00000000 T a\n00000000 t ib_umem_dmabuf_get\n" + strings.Repeat("y", kmod.MaxLine+1),
		"00000000 T a\n" + strings.Repeat("y", kmod.MaxLine+1) + "\n00000000 t ib_umem_dmabuf_get\n",
		"garbage\nib_umem_dmabuf_get",
	} {
		f.Add(symbols, table)
	}
	f.Add(dependencies, "kernel/a.ko: kernel/b.ko\nupdates/nvidia-peermem.ko.zst: updates/nvidia.ko.zst\n")
	f.Add(dependencies, strings.Repeat("kernel/", 100)+".ko:\nextra/nv_peer_mem.ko: kernel/ib_core.ko")
	f.Fuzz(func(t *testing.T, name, text string) {
		s := state(t, "dmabuf-only")
		s.Files = map[string]string{"proc/sys/kernel/osrelease": "6.8\n", dependencies: ""}
		if name == symbols || name == dependencies {
			s.Files[name] = text
		}
		if s.Files[symbols] != "" {
			s.Symbols = nil
		}
		if diff := fromSnapshot(t, parse(t, one).Tree(t, s)); diff != "" {
			t.Error(diff)
		}
	})
}

// fromSnapshot takes a snapshot of a machine, and compares what is read from it with
// what is read from the machine. Removed texts are left out of the comparison.
func fromSnapshot(t *testing.T, dir string, gone ...string) (diff string) {
	t.Helper()
	return commandsFromSnapshot(t, dir, report.Commands[:], gone...)
}

// commandsFromSnapshot does so with what some commands read.
func commandsFromSnapshot(t *testing.T, dir string, commands []report.Options, gone ...string) (diff string) {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	recorder := snapshot.Record(fs)
	for _, o := range report.ForSnapshot() {
		recorded := recorder.FS(dir)
		r := report.Collect(t.Context(), recorded, o)
		_ = container.ReadDevices(t.Context(), recorded, &r.PCI, &r.RDMA)
	}
	recording, late := recorder.Finish()
	if late != nil {
		return fmt.Sprintf("no answer from %q", late)
	}
	recording.Scrub()
	text, err := recording.Text()
	if err != nil {
		return err.Error()
	}
	read, err := snapshot.Parse(string(text))
	if err != nil {
		return err.Error()
	}
	for _, g := range gone {
		if g != "" && strings.Contains(string(text), g) {
			return g + " is in the snapshot"
		}
	}
	for i, o := range commands {
		if diff := gocmp.Diff(shown(t, fs, o), shown(t, read.FS("snapshot"), o)); diff != "" {
			return fmt.Sprintf("command %d (-machine +snapshot):\n%s\n%s", i, diff, text)
		}
	}
	return ""
}

// shown is all that people and programs see of a machine. The user and host that
// the machine's driver was built by are not in a snapshot, and damage may bring them
// into a message; nor are names made of GUIDs.
func shown(t *testing.T, fs *host.FS, o report.Options) map[string]string {
	t.Helper()
	read := report.Collect(t.Context(), fs, o)
	r, seen := &read, container.ReadDevices(t.Context(), fs, &read.PCI, &read.RDMA)
	r.Problems = append(r.Problems, seen.Problems...)
	all := map[string]string{"problems": strings.Join(sanitize.Errors(r.Problems), "\n")}
	for name, show := range map[string]func(io.Writer, *report.Report) error{
		"topo": render.Topo, "topo json": render.TopoJSON, "check": func(w io.Writer, r *report.Report) error { return render.Check(w, r, true) }, "check json": func(w io.Writer, r *report.Report) error { return render.CheckJSON(w, r, false) },
		"explain": render.Explain, "wide": render.TopoWide,
		"labels": func(w io.Writer, r *report.Report) error { return render.Labels(w, r.Labels, label.DefaultPrefix) },
	} {
		var out bytes.Buffer
		if err := show(&out, r); err != nil {
			t.Fatal(err)
		}
		all[name] = out.String()
	}
	all["env"] = strings.Join(assign.Here{Node: &r.Node, Visible: &seen}.Assign().Notes(), "\n")
	for name, text := range all {
		all[name] = strings.NewReplacer("builder@host", "xxxxxxx@xxxx", "ibx0002c90000000a12", "ibx0000000000000001").Replace(text)
	}
	return all
}
