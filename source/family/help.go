package family

// Help is what remedies for a family of NICs name; "" for nothing known.
type Help struct {
	// Product is what to install, "ConnectX-4 or newer".
	Product string
	// DMABufStack is the software from which on the RDMA driver registers DMA-BUF, and
	// PeerStack the one that lets peer memory clients register.
	DMABufStack, PeerStack string
	// Operator is what loads the drivers on Kubernetes, and EnableRDMA the commands
	// that switch RDMA on where a function has it off.
	Operator, EnableRDMA string
	// PortTool is the program that shows why a port is down or slow.
	PortTool string
	// LinkType are the commands that set the link layer of a port, Firmware those that
	// show and update the firmware, and ATS those that switch address translation
	// services on.
	LinkType, Firmware, ATS string
}

// GPUHelp is what remedies for a family of GPUs name; "" for nothing known.
type GPUHelp struct {
	// Vendor is who makes them, "NVIDIA", and Product what to use.
	Vendor, Product string
	// Operator is what loads the driver on Kubernetes, and Version where its version is set,
	// " (GPU Operator: driver.version)".
	Operator, Version string
	// Unbound says why the loaded driver does not bind a GPU.
	Unbound string
	// Install says which driver is a peer memory client itself, and Register how a loaded
	// one is made to register.
	Install, Register string
	// Library is the collective library, "NCCL", Limit the farthest level at which it uses
	// GPUDirect RDMA by default, and DMABuf the releases that use DMA-BUF.
	Library, Limit, DMABuf string
}
