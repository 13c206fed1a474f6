package findings_test

import "strings"

// altra is an Ampere Altra, on which the driver maps GPU memory below a common bridge only: a
// GPU and a NIC are below one, and another of each is elsewhere.
const altra = `arm
pci000c:00 numa=0
  000c:00:00.0 060000 1def:e100
  000c:00:01.0 port 1def:e101
    000c:01:00.0 switch 1000:c010
      000c:02:00.0 port 1000:c010
        000c:03:00.0 gpu 10de:20f1
      000c:02:01.0 port 1000:c010
        000c:04:00.0 ib 15b3:101b rdma=mlx5_0
pci000d:00 numa=0
  000d:00:01.0 port 1def:e101
    000d:01:00.0 ib 15b3:101b rdma=mlx5_1
  000d:00:02.0 port 1def:e101
    000d:02:00.0 gpu 10de:20f1
`

// apartTexts are machines on which the pair below the switch lacks what others have.
func apartTexts() map[string]string {
	change := func(old, with string) string { return strings.Replace(altra, old, with, 1) }
	return map[string]string{
		"altra":            altra,
		"altra, port down": change("rdma=mlx5_0", "rdma=mlx5_0 port=DOWN"),
		"intel, port down": strings.NewReplacer("1def:", "8086:", "rdma=mlx5_0", "rdma=mlx5_0 port=DOWN").Replace(altra),
		"altra, no RDMA":   change(" rdma=mlx5_0", " driver=mlx5_core"),
		"altra, NIC":       change("rdma=mlx5_0", "driver=none"),
		"altra, GPU":       change("gpu 10de:20f1", "gpu 10de:20f1 driver=vfio-pci"),
	}
}

// apartFailures are those of a pair, on a machine where others have what it lacks.
func apartFailures() []failure {
	const hostBridge = "sys/bus/pci/devices/000c:00:00.0/"
	return []failure{
		{name: "the port is another pair's", machine: "altra, port down", code: "NoActivePort", fixedOn: "altra", fix: "Polling"},
		{name: "the port is another pair's, on a CPU where that helps", machine: "altra, port down", code: "NoActivePort", fixedOn: "intel, port down", fix: "move a NIC"},
		{name: "the RDMA device is another pair's", machine: "altra, no RDMA", code: "NoRDMADevice", fixedOn: "altra", fix: "mlx5_ib"},
		{name: "the NIC driver is another pair's", machine: "altra, NIC", code: "NICDriverNotLoaded", fixedOn: "altra", fix: "bind such a NIC to mlx5_core; or move"},
		{name: "the GPU driver is another pair's", machine: "altra, GPU", code: "GPUDriverNotLoaded", fixedOn: "altra", fix: "must not exclude it; or move"},
		{
			name: "the host bridge that tells the CPU cannot be read", machine: "ampere-altra-a100",
			broken: all(file(hostBridge+"modalias", "garbage\n"), file(hostBridge+"device", "garbage\n")),
			code:   "Unreadable", fixedOn: "pair", fixed: inState("ready"),
		},
		{
			name: "the port is another pair's, as far as can be read", machine: "altra", broken: file("sys/class/infiniband/mlx5_0/ports/1/state", "garbage\n"),
			code: "Unreadable", fixedOn: "altra", fixed: inState("ready"),
		},
	}
}
