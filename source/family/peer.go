package family

// PeerMemory is what proves that the driver of a family of NICs takes GPU memory from
// the driver of a family of GPUs, without DMA-BUF. One proof is enough.
type PeerMemory struct {
	// Core: clients register with the RDMA core (ib_register_peer_memory_client of
	// PeerDirect stacks). A registered client (GPU.Client.Modules, GPU.Client.Directories)
	// then serves this family.
	Core bool
	// Module is a module of the NIC's vendor with which clients register. Its
	// /sys/module/<name>/holders names both the client (GPU.Client.Holder) and the
	// family's Module.
	Module string
	// Files are attributes of a bound PCI function in which the driver says whose
	// memory it reaches.
	Files []PeerFile
	// Bridge is a module that the driver needs between itself and the open kernel modules of
	// the GPU driver; "" where it needs none.
	Bridge string
	// Package is what brings Bridge, or Module.
	Package string
	// Newest are GPU drivers with a newer interface, which older releases of the NIC's
	// driver do not know, although they say that they reach GPU memory.
	Newest []DriverPair
}

// DriverPair is a major version of a GPU driver, and the oldest release of a NIC's driver
// that works with it and newer ones.
type DriverPair struct {
	GPU    string
	Driver int
	Module string
}

// PeerFile is a file below /sys/bus/pci/devices/<address>/.
type PeerFile struct {
	Name string
	// Says are the contents that prove it, by the name of the family of GPUs.
	Says map[string][]string
	// ProvenFrom is the oldest release of the driver in which the content is a proof: older
	// ones always say the same. "" if it always is.
	ProvenFrom string
}

// Client is what a GPU driver registers with RDMA drivers to give them GPU memory.
type Client struct {
	// Modules fail to load unless they register with the RDMA core, so that one whose
	// /sys/module/<name>/initstate is "live" is a proof. The first is the one to load. None
	// where the GPU driver itself is the client.
	Modules []string
	// Directories are names of the client below memory_peers, where PeerDirect stacks
	// list it. They prove it for NICs of any family where AnyNIC is set, and otherwise
	// for those whose clients register with the RDMA core.
	Directories []string
	AnyNIC      bool
	// Symbol is the function of the GPU driver that registers, where the driver itself is
	// the client, as in /proc/kallsyms.
	Symbol string
	// Holder is the client's module as a holder of PeerMemory.Module.
	Holder string
}

// Unlisted reports whether the client leaves no mark where the RDMA stack lists none: the GPU
// driver itself is the client, so that no module of its own is a proof.
func (c *Client) Unlisted() bool { return len(c.Modules) == 0 && c.Symbol != "" }
