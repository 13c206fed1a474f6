package report_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kind is a machine with one pair, of one family of GPUs and one of NICs, and what
// proves for that pair that the NIC reaches GPU memory.
type kind struct {
	text     string
	gpu, nic string // vendors
	client   func(tree) bool
	export   func(tree) bool // of DMA-BUF by the GPU driver
	symbol   string
}

// kinds are machines of all families that have proofs of their own.
var kinds = []kind{
	{one, "10de", "15b3", func(d tree) bool {
		return d.has("sys/module/*peer*mem*/initstate", "live") || d.exists("sys/kernel/mm/memory_peers/nv_mem*")
	}, openModules, "mlx5_ib_reg_user_mr_dmabuf"},
	{with("ib 15b3:1021 rdma=mlx5_0", "eth 1d0f:efa1 rdma=rdmap25s0"), "10de", "1d0f", func(d tree) bool {
		return d.has("sys/bus/pci/devices/*/p2p", "nvidia") || d.has("sys/bus/pci/devices/*/gdr", "1")
	}, openModules, "efa_reg_user_mr_dmabuf"},
	{with("ib 15b3:1021 rdma=mlx5_0", "eth 14e4:1760 rdma=bnxt_re0"), "10de", "14e4", func(d tree) bool {
		return d.exists("sys/module/ib_peer_mem/holders/nvidia_peermem") && d.exists("sys/module/ib_peer_mem/holders/bnxt_re")
	}, openModules, "bnxt_re_reg_user_mr_dmabuf"},
	{with("gpu 10de:2330", "accel 1002:74a1", "ib 15b3:1021 rdma=mlx5_0", "eth 14e4:1760 rdma=bnxt_re0"), "1002", "14e4", func(d tree) bool {
		return d.exists("sys/kernel/mm/memory_peers/amdkfd*") ||
			d.exists("sys/module/ib_peer_mem/holders/amdgpu") && d.exists("sys/module/ib_peer_mem/holders/bnxt_re")
	}, kernelBuilt, "bnxt_re_reg_user_mr_dmabuf"},
}

// with returns the machine with others words in its description.
func with(words ...string) string { return strings.NewReplacer(words...).Replace(one) }

func openModules(d tree) bool { return d.has("proc/driver/nvidia/version", "Open Kernel Module") }

func kernelBuilt(d tree) bool {
	for _, file := range []string{"boot/config-*", "lib/modules/*/config"} {
		if d.has(file, "\nCONFIG_PCI_P2PDMA=y") {
			return true
		}
	}
	return d.exists("proc/config.gz")
}

// kindOf returns one of the kinds, for a seed, in a random state.
func kindOf(t *testing.T, seed uint64, random *rand.Rand) (k kind, dir string) {
	t.Helper()
	k = kinds[seed%uint64(len(kinds))]
	m := parse(t, k.text)
	states := m.States()
	return k, m.Tree(t, states[random.IntN(len(states))])
}

// evidence is what a tree proves of a pair.
type evidence struct{ gpu, nic, port, peermem, dmabuf bool }

// search searches the tree for evidence, file by file.
func (k *kind) search(dir string) evidence {
	d := tree(dir)
	const functions = "sys/bus/pci/devices/*/"
	of := func(vendor string) bool {
		return d.has(functions+"modalias", "v0000"+vendor) || d.has(functions+"vendor", vendor)
	}
	return evidence{
		gpu: of(k.gpu), nic: of(k.nic),
		port:    d.has("sys/class/infiniband/*/ports/*/state", "4:") || d.has(functions+"infiniband/*/ports/*/state", "4:"),
		peermem: k.client(d),
		dmabuf:  k.export(d) && d.has("proc/kallsyms", " ib_umem_dmabuf_get") && d.has("proc/kallsyms", " "+k.symbol),
	}
}

// tree is the directory of one.
type tree string

// has reports whether some file has a text, in upper case or lower: ids are numbers.
func (d tree) has(pattern, text string) bool {
	found, _ := filepath.Glob(filepath.Join(string(d), pattern))
	for _, path := range found {
		if got, err := regular(path); err == nil && strings.Contains(strings.ToLower(got), strings.ToLower(text)) {
			return true
		}
	}
	return false
}

// exists reports whether there is such a name; a link may lead nowhere.
func (d tree) exists(pattern string) bool {
	found, _ := filepath.Glob(filepath.Join(string(d), pattern))
	for _, path := range found {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}
