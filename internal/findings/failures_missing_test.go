package findings_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
)

// missingTexts are machines on which one NIC lacks what another has.
func missingTexts() map[string]string {
	change := func(with string) string { return strings.Replace(pair, " rdma=mlx5_1", with, 1) }
	return map[string]string{
		"two Thor 2":       strings.NewReplacer("ib 15b3:1021", "020000 14e4:1760", "mlx5_", "bnxt_re").Replace(pair),
		"two Pollara":      strings.NewReplacer("ib 15b3:1021", "020000 1dd8:1002", "mlx5_", "ionic_").Replace(pair),
		"one unbound":      change(" driver=none"),
		"one with VFIO":    change(" driver=vfio-pci"),
		"one without RDMA": change(" driver=mlx5_core"),
		"bond":             strings.Replace(pair, "rdma=mlx5_0", "rdma=mlx5_0\n        0000:14:00.1 ib 15b3:1021 driver=mlx5_core", 1),
	}
}

// missingFailures are those of one NIC of several.
func missingFailures() []failure {
	const (
		sichek   = github + "scitix/sichek/pull/118"
		sentinel = github + "NVIDIA/NVSentinel"
		entry    = "sys/class/infiniband_verbs/"
	)
	first := file(entry+"uverbs0/ibdev", "mlx5_0\n")
	second := file(entry+"uverbs1/ibdev", "mlx5_1\n")
	const mori = github + "ROCm/mori/pull/471"
	release := func(device, version string) change {
		return file("sys/class/infiniband/"+device+"/fw_ver", version+"\n")
	}
	return []failure{
		{
			name: "firmware of Thor 2 that is too old for GPUs", from: mori, machine: "two Thor 2",
			broken: release("bnxt_re0", "231.2.63.0"), code: "FirmwareWithoutIBGDA", fixed: release("bnxt_re0", "237.1.137.0"), fix: "237.1.137.0",
		},
		{
			name: "firmware of Pollara that is too old for GPUs", from: mori, machine: "two Pollara",
			broken: release("ionic_1", "1.117.1-a-63"), code: "FirmwareWithoutIBGDA", fixed: release("ionic_1", "1.117.5-a-45"), fix: "1.117.5-a-45",
		},
		{name: "the driver of one NIC failed at boot", from: sichek, machine: "one unbound", code: "NICUnbound", fixedOn: "pair", fix: "/sys/bus/pci/drivers/mlx5_core/bind"},
		{name: "a NIC that VFIO has is no such", machine: "one unbound", code: "NICUnbound", fixedOn: "one with VFIO"},
		{name: "the nearest NIC has no driver", from: sichek, machine: "one unbound", code: "NearPortDown", fixedOn: "pair", fix: "see nic-driver"},
		{name: "one NIC vanished from the RDMA stack", from: sichek, machine: "one without RDMA", code: "NICWithoutRDMA", fixedOn: "pair", fix: "dmesg"},
		{name: "the second port of a bond is no such", machine: "one without RDMA", code: "NICWithoutRDMA", fixedOn: "bond"},
		{name: "the nearest NIC has no RDMA device", from: sichek, machine: "one without RDMA", code: "NearPortDown", fixedOn: "pair", fix: "see rdma-device"},
		{name: "an ACTIVE port that no program can use", from: sentinel, broken: first, code: "VerbsEntryMissing", fixed: second, fix: "dmesg"},
	}
}

// TestVerbsEntriesUnknown: entries that cannot all be read prove nothing, nor does their absence.
func TestVerbsEntriesUnknown(t *testing.T) {
	const entry = "sys/class/infiniband_verbs/"
	for name, broken := range map[string]change{
		"no entry at all":          nil,
		"one that cannot be read":  all(file(entry+"uverbs0/ibdev", "mlx5_0\n"), file(entry+"uverbs1/ibdev", "")),
		"the port is not ACTIVE":   all(file(entry+"uverbs0/ibdev", "mlx5_0\n"), file("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n")),
		"the state cannot be read": all(file(entry+"uverbs0/ibdev", "mlx5_0\n"), file("sys/class/infiniband/mlx5_1/ports/1/state", "")),
	} {
		_, list := (&failure{}).findings(t, "pair", broken)
		if slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Code == "VerbsEntryMissing" }) {
			t.Errorf("%s: VerbsEntryMissing", name)
		}
	}
}
