package pod_test

import (
	"maps"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/rooms/pod"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// TestPodUnknown: what a copy of a machine cannot show is not known, and nothing is found
// wrong.
func TestPodUnknown(t *testing.T) {
	c := newContainer(t, roce)
	for _, name := range []string{"dev", "proc/self", "sys/class/infiniband/mlx5_0/ports/1/gids", "sys/class/infiniband/mlx5_1/ports/1/gids"} {
		c.remove(name)
	}
	r := c.read()
	found := r.notOK()
	for _, f := range found {
		if f.Status != finding.StatusUnknown {
			t.Errorf("%+v", f)
		}
	}
	if len(found) != 4 || pod.Ready(r.all) != tristate.Unknown {
		t.Errorf("%d findings: %+v", len(found), found)
	}
}

// TestPodPortUnknown: whether the port of the container's NIC is active cannot be read, so
// that nothing is known of its level either.
func TestPodPortUnknown(t *testing.T) {
	c := newContainer(t, roce)
	c.remove("dev/nvidia1")
	c.remove("dev/infiniband/uverbs1")
	c.write("sys/class/infiniband/mlx5_0/ports/1/state", "")
	c.variables["NCCL_IB_HCA"] = "mlx5_0"
	r := c.read()
	found := r.notOK()
	if len(found) != 1 || found[0].Status != finding.StatusUnknown || !strings.Contains(found[0].Detail, "mlx5_0/1 ?") {
		t.Errorf("%+v", found)
	}
	if state := r.container.Within(&r.Node, topology.PXB); state != tristate.Unknown {
		t.Errorf("whether a NIC is near enough is %v", state)
	}
}

// TestPodGPUsUnknown: CUDA may number the GPUs in any order, so that nothing is wrong that
// would be right for one of them.
func TestPodGPUsUnknown(t *testing.T) {
	c := newContainer(t, roce)
	maps.Copy(c.variables, map[string]string{"UCX_NET_DEVICES": "mlx5_1:1", "CUDA_VISIBLE_DEVICES": "1"})
	r := c.read()
	found := r.notOK()
	if len(found) != 1 || found[0].Status != finding.StatusUnknown || found[0].Check != "nic-variables" || !strings.Contains(found[0].Detail, "CUDA_DEVICE_ORDER=PCI_BUS_ID is not set") {
		t.Errorf("%+v", found)
	}
	for _, f := range r.all {
		if f.Check == "gpu-nodes" && !strings.Contains(f.Detail, "which of them CUDA_VISIBLE_DEVICES=1 leaves is not known") {
			t.Errorf("%+v", f)
		}
	}
	c.variables["UCX_NET_DEVICES"] = "mlx5_7:1" // wrong for each
	if found := c.read().notOK(); len(found) != 1 || found[0].Status != finding.StatusFail {
		t.Errorf("%+v", found)
	}
}

// TestPodGIDUnread: an entry that cannot be read does not matter beside one that can be used.
func TestPodGIDUnread(t *testing.T) {
	c := newContainer(t, roce)
	c.write("sys/class/infiniband/mlx5_0/ports/1/gids/7", "garbage")
	r := c.read()
	if found := r.notOK(); len(found) > 0 || len(r.Problems) != 1 {
		t.Errorf("%+v, problems %v", found, r.Problems)
	}
}
