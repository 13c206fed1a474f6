package family

// Help is what remedies for a family of NICs name; "" for unknown.
type Help struct {
	// Product is what to install, "ConnectX-4 or newer".
	Product string
	// DMABufStack is the oldest software whose RDMA driver registers DMA-BUF, and PeerStack
	// the software that accepts peer memory clients.
	DMABufStack, PeerStack string
	// Library is the vendor's own library, which takes the place of rdma-core's.
	Library string
	// Operator is what loads the drivers on Kubernetes, and EnableRDMA the commands that
	// turn RDMA on for a function.
	Operator, EnableRDMA string
	// PortTool is the program that shows why a port is down or slow.
	PortTool string
	// LinkType are the commands that set the link layer of a port, Firmware those that
	// show and update the firmware, and ATS those that turn on Address Translation
	// Services.
	LinkType, Firmware, ATS string
}

// GPUHelp is what remedies for a family of GPUs name; "" for unknown.
type GPUHelp struct {
	// Vendor is who makes them, "NVIDIA", and Product what to use.
	Vendor, Product string
	// Operator is what loads the driver on Kubernetes, and Version where its version is set,
	// " (GPU Operator: driver.version)".
	Operator, Version string
	// Unbound says why the loaded driver does not bind a GPU.
	Unbound string
	// Install says how to get a driver that is a peer memory client itself, and Register
	// how to make a loaded one register. Refused is what the kernel's log says where the
	// kernel does not let it look for the interface, and Rebuild how to get one that need not.
	Install, Register, Refused, Rebuild string
	// Library is the collective library, "NCCL", Limit the farthest level at which it uses
	// GPUDirect RDMA by default, and DMABuf the releases that use DMA-BUF. Beyond says why it
	// uses it with a NIC that is farther away in the PCI tree.
	Library, Limit, DMABuf, Beyond string
}
