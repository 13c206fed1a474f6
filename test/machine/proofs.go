package machine

import "gdr-features/source/family"

// nicProofs are what drivers show of themselves in /sys/module, /proc/kallsyms and below the
// PCI function. They are written out, and not taken from the rows of package family: a row
// with a wrong name finds nothing in a tree of this package.
var nicProofs = map[string]struct {
	drivers                []string
	module, dmabuf, vendor string // vendor: the module of the NIC's vendor with which clients register
	files                  []family.PeerFile
}{
	"mlx5": {drivers: []string{"mlx5_core"}, module: "mlx5_ib", dmabuf: "mlx5_ib_reg_user_mr_dmabuf"},
	"mlx4": {drivers: []string{"mlx4_core"}, module: "mlx4_ib"},
	"efa": {drivers: []string{"efa"}, module: "efa", dmabuf: "efa_reg_user_mr_dmabuf", files: []family.PeerFile{
		{Name: "p2p", Says: map[string][]string{"nvidia": {"NVIDIA", "NVIDIA peermem"}}},
		{Name: "gdr", Says: map[string][]string{"nvidia": {"1"}}},
	}},
	"bnxt_re": {drivers: []string{"bnxt_en"}, module: "bnxt_re", dmabuf: "bnxt_re_reg_user_mr_dmabuf", vendor: "ib_peer_mem"},
	"ionic":   {drivers: []string{"ionic"}, module: "ionic_rdma", dmabuf: "ionic_reg_user_mr_dmabuf", vendor: "ib_peer_mem"},
	"irdma":   {drivers: []string{"ice", "i40e", "idpf"}, module: "irdma", dmabuf: "irdma_reg_user_mr_dmabuf"},
	"mana_ib": {drivers: []string{"mana"}, module: "mana_ib", dmabuf: "mana_ib_reg_user_mr_dmabuf"},
	"erdma":   {drivers: []string{"erdma"}, module: "erdma", dmabuf: "erdma_reg_user_mr_dmabuf"},
}

// gpuProofs are the same of GPU drivers and their peer memory clients.
var gpuProofs = map[string]struct {
	driver, version      string
	modules, directories []string
	holder               string
	options              []family.KernelOption
}{
	"nvidia": {
		driver: "nvidia", version: "proc/driver/nvidia/version",
		modules: []string{"nvidia_peermem", "nv_peer_mem"}, directories: []string{"nv_mem", "nv_mem_nc"}, holder: "nvidia_peermem",
	},
	"amd": {
		driver: "amdgpu", version: "sys/module/amdgpu/version", directories: []string{"amdkfd"}, holder: "amdgpu",
		options: []family.KernelOption{{Name: "PCI_P2PDMA"}, {Name: "DMABUF_MOVE_NOTIFY", Always: "DMA_SHARED_BUFFER", Gone: [2]int{7, 1}}},
	},
}

// written are the families as their drivers are written to trees.
var written = proven(family.Known())

// proven returns a table with the proofs above in its rows. A family without any keeps its own.
func proven(t family.Table) family.Table {
	for _, rows := range [...][]*family.NIC{t.NICs, t.Others} {
		for i, row := range rows {
			p, ok := nicProofs[row.Name]
			if !ok {
				continue
			}
			n := *row
			n.Drivers, n.Module, n.DMABuf = p.drivers, p.module, p.dmabuf
			n.PeerMemory.Module, n.PeerMemory.Files = p.vendor, p.files
			rows[i] = &n
		}
	}
	for i, row := range t.GPUs {
		p, ok := gpuProofs[row.Name]
		if !ok {
			continue
		}
		g := *row
		g.Driver, g.VersionFile, g.KernelOptions = p.driver, p.version, p.options
		g.Client.Modules, g.Client.Directories, g.Client.Holder = p.modules, p.directories, p.holder
		t.GPUs[i] = &g
	}
	return t
}
