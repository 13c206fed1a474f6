package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// TestEnvOfOneGPU: a GPU that is asked for alone, or is the only one with a device node as
// in a container, has the NIC that it has in the map of the whole machine.
func TestEnvOfOneGPU(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, m.Ready())
			whole := gpusOf(t, dir, "env -o json")
			for i := range whole {
				if diff := cmp.Diff(whole[i:i+1], gpusOf(t, dir, fmt.Sprintf("env -o json --gpus %d", i))); diff != "" {
					t.Errorf("--gpus %d (-whole +got):\n%s", i, diff)
				}
			}
			if last := len(whole) - 1; last >= 0 {
				m.Container(t, dir, []int{last}, m.RDMADevices()...)
				if diff := cmp.Diff(whole[last:], gpusOf(t, dir, "env -o json")); diff != "" {
					t.Errorf("with the device node of GPU %d (-whole +got):\n%s", last, diff)
				}
			}
		})
	}
}

func gpusOf(t *testing.T, dir, args string) []frameworks.DocumentGPU {
	t.Helper()
	var d frameworks.Document
	text, _ := printed(t, dir, args)
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d.GPUs
}

// TestEnvOfOwnNICs: a container that has the device nodes of some GPUs and of one of the
// usable NICs uses that NIC for each of them.
func TestEnvOfOwnNICs(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, m.Ready())
			whole := gpusOf(t, dir, "env -o json")
			if len(whole) == 0 || whole[len(whole)-1].RDMA == "" {
				return // nothing to give
			}
			last := len(whole) - 1
			m.Container(t, dir, []int{0, last}, whole[last].RDMA)
			got := gpusOf(t, dir, "env -o json")
			for i, want := range slices.Compact([]int{0, last}) {
				if i >= len(got) || got[i].GPU != whole[want].GPU || got[i].RDMA != whole[last].RDMA {
					t.Fatalf("GPU %d: got %v", want, got)
				}
			}
			whole[last].Near = []string{whole[last].RDMA}
			if diff := cmp.Diff(whole[last], got[len(got)-1]); diff != "" {
				t.Errorf("the GPU whose NIC it is (-whole +got):\n%s", diff)
			}
		})
	}
}

// TestSnapshotOfContainer: a snapshot that was taken in a container has its devices, and no
// UUID of the machine.
func TestSnapshotOfContainer(t *testing.T) {
	for _, m := range testsize.Share(testsize.Few(machine.All(t, machinesDir))) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			dir := m.Tree(t, m.Ready())
			names := m.RDMADevices()
			m.Container(t, dir, []int{1, 2, 5}, names[:len(names)/2]...)
			if err := os.MkdirAll(filepath.Join(dir, "sys/class/net/eth0"), 0o755); err != nil {
				t.Fatal(err)
			}
			given := filepath.Join(t.TempDir(), "given")
			if err := os.WriteFile(given, []byte("UCX_NET_DEVICES=eth0,mlx5_0:1,eth1"), 0o644); err != nil {
				t.Fatal(err)
			}
			file := takeSnapshot(t, dir)
			compareForms(t, dir, file, []string{"env -o json", "env -o json --gpus 1", "env --for nccl --gpus 7", "env --check " + given})
			if text := read(t, file); strings.Contains(text, "-8000-") {
				t.Errorf("a UUID is in the snapshot:\n%s", text)
			}
		})
	}
}

// TestEnvExcludedGPU: CUDA does not count a GPU that the driver excludes.
func TestEnvExcludedGPU(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, "dell-xe9680-h100.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	read := func() (nics map[string]string) {
		said, status := runOn(t, dir, "env", "--for", "sglang", "-o", "file")
		text, _, _ := strings.Cut(said, "#") // what is on standard error
		if err := json.Unmarshal([]byte(text), &nics); status != 0 || err != nil {
			t.Fatalf("status %d, %v\n%s", status, err, text)
		}
		return nics
	}
	all := read()
	first := filepath.Join(dir, "proc/driver/nvidia/gpus/0000:19:00.0")
	if err := os.MkdirAll(first, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(first, "information"), []byte("Model: NVIDIA H100\nDevice Minor: 0\nGPU Excluded: Yes\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if rest := read(); len(all) != 8 || len(rest) != 7 || rest["0"] != all["1"] || rest["6"] != all["7"] {
		t.Errorf("without the first GPU %v, with it %v", rest, all)
	}
}
