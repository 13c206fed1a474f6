package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/source/container"
	"gdr-features/test/machine"
)

const slurmMachine = `
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 gpu 10de:2330
    0000:12:00.0 ib 15b3:1021 rdma=mlx5_0
pci0000:20 numa=0
  0000:21:00.0 gpu 10de:2330
  0000:22:00.0 ib 15b3:1021 rdma=mlx5_1
`

// TestSlurmFlags: AMD's GPUs have a flag, but not beside those of another vendor.
func TestSlurmFlags(t *testing.T) {
	const amd, nvidia = "accel 1002:74a1", "gpu 10de:2330"
	for gpus, want := range map[[2]string]int{{amd, amd}: 2, {amd, nvidia}: 0, {nvidia, nvidia}: 0} {
		m, err := machine.Parse("pci0000:10 numa=0\n  0000:11:00.0 " + gpus[0] + "\n  0000:12:00.0 " + gpus[1] + "\n")
		if err != nil {
			t.Fatal(err)
		}
		dir := m.Tree(t, m.Ready())
		m.Container(t, dir, nil)
		if said := slurm(t, dir); strings.Count(said, " Flags=amd_gpu_env  #") != want {
			t.Errorf("%s", said)
		}
	}
}

// TestSlurm: what is not known or not usable is a comment and is not counted.
func TestSlurm(t *testing.T) {
	const (
		gpu0, gpu1 = "proc/driver/nvidia/gpus/0000:11:00.0/information", "proc/driver/nvidia/gpus/0000:21:00.0/information"
		uverbs     = "sys/class/infiniband_verbs"
		conf       = "NodeName=NODE Gres=gpu:2,nic:2 Features=gdr,gdr-phb,gdr-400g\n"
		order      = "# Use AutoDetect=nvml here."
		model      = "Model: NVIDIA H100\n" // as every such file has
	)
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	}
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	for _, tt := range []struct {
		name           string
		change         func(dir string) error
		conf           string
		lines, comment []string
		without        string
	}{
		{"all is well", remove("none"), conf, []string{
			"NodeName=NODE Name=gpu File=/dev/nvidia0", "NodeName=NODE Name=gpu File=/dev/nvidia1",
			"NodeName=NODE Name=nic File=/dev/infiniband/uverbs0", "NodeName=NODE Name=nic File=/dev/infiniband/uverbs1",
		}, []string{"# Cores= is left out"}, order},
		{
			"no driver's number of a GPU", remove(gpu1), strings.Replace(conf, "gpu:2", "gpu:1", 1),
			[]string{"NodeName=NODE Name=gpu File=/dev/nvidia0"},
			[]string{"# GPU1 0000:21:00.0 H100 SXM5 80GB, NUMA node 0, PHB to mlx5_1: its device node is not known"},
			"/dev/nvidia1",
		},
		{"numbers in another order", func(dir string) error {
			if err := write(gpu0, model+"Device Minor: 10\n")(dir); err != nil {
				return err
			}
			return write(gpu1, model+"Device Minor: 9\n")(dir)
		}, conf, []string{"NodeName=NODE Name=gpu File=/dev/nvidia10", "NodeName=NODE Name=gpu File=/dev/nvidia9"}, []string{order}, "/dev/nvidia1 "},
		{"numbers of two lengths", write(gpu1, model+"Device Minor: 10\n"), conf, []string{"NodeName=NODE Name=gpu File=/dev/nvidia10"}, nil, order},
		{
			"no verbs devices", remove(uverbs), strings.Replace(conf, ",nic:2", "", 1), nil,
			[]string{"# mlx5_0 0000:12:00.0 ConnectX-7, NUMA node 0: its device node is not known"},
			"Name=nic",
		},
		{"a name that is no path", func(dir string) error {
			return os.Rename(filepath.Join(dir, uverbs, "uverbs1"), filepath.Join(dir, uverbs, "uverbs[1-2] Name=x"))
		}, strings.Replace(conf, "nic:2", "nic:1", 1), nil, []string{"# mlx5_1 0000:22:00.0 ConnectX-7, NUMA node 0: its device node is not known"}, "Name=x"},
		{
			"a port that is down", write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n"),
			"NodeName=NODE Gres=gpu:2,nic:1 Features=gdr,gdr-phb\n", nil,
			[]string{"# mlx5_0 0000:12:00.0 ConnectX-7, NUMA node 0: no active port"},
			"uverbs0",
		},
		{
			"a NIC that manages NVLink switches, known by its board",
			write("sys/class/infiniband/mlx5_1/board_id", "MT_0000001121\n"),
			"NodeName=NODE Gres=gpu:2,nic:1 Features=gdr,gdr-phb\n",
			[]string{"NodeName=NODE Name=gpu File=/dev/nvidia1"},
			nil, "to mlx5_1",
		},
		{"not ready", remove("sys/module/nvidia_peermem"), "NodeName=NODE Gres=gpu:2,nic:2\n", nil, []string{"# No Features. GPUDirect RDMA: not ready ("}, "Features="},
		{"no PCI bus", remove("sys/bus/pci"), "", nil, []string{"# The PCI bus cannot be read.", "# Not readable: "}, "NodeName"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := machine.Parse(slurmMachine)
			if err != nil {
				t.Fatal(err)
			}
			state, ok := m.StateNamed("closed-peermem")
			if !ok {
				t.Fatal("no such state")
			}
			dir := m.Tree(t, state)
			m.Container(t, dir, nil)
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			text := slurm(t, dir)
			before, after, found := strings.Cut(text, "\n# gres.conf\n")
			if !found || !strings.Contains(before, "\n"+tt.conf) {
				t.Errorf("no line %q in slurm.conf", tt.conf)
			}
			for _, line := range tt.lines {
				if !strings.Contains(after, line+" ") {
					t.Errorf("no line %q", line)
				}
			}
			for _, c := range tt.comment {
				if !strings.Contains(text, "\n"+c) {
					t.Errorf("no comment %q", c)
				}
			}
			if tt.without != "" && strings.Contains(text, tt.without) {
				t.Errorf("%q is there", tt.without)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

func slurm(t *testing.T, dir string) string {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	r := report.Collect(t.Context(), fs, report.ForEnv)
	seen := container.ReadDevices(t.Context(), fs, &r.PCI, &r.RDMA)
	r.Problems = append(r.Problems, seen.Problems...)
	var out strings.Builder
	if err := TopoSlurm(&out, &r, &seen); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
