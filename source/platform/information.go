package platform

import (
	"fmt"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// Information is what NVIDIA's driver says of a GPU.
type Information struct {
	// Model is the name of the GPU, "NVIDIA A30-8C"; "" for none.
	Model string
	// UUID is "GPU-...", "" where there is none yet.
	UUID string
	// Minor is the number of the device node, -1 where there is none.
	Minor int
}

// InformationFile is the file that they are read from (family.GPU.Information).
func InformationFile(g *family.GPU, address pci.Address) string {
	return fmt.Sprintf("/%s/%v/information", g.Information, address)
}

// ReadInformation reads the information about a GPU.
func ReadInformation(fs *host.FS, g *family.GPU, address pci.Address) (Information, error) {
	const most = 4 << 10 // several times the size of the file
	text, err := fs.Bytes(InformationFile(g, address)[1:], most)
	if err != nil {
		return Information{Minor: -1}, err
	}
	return ParseInformation(text), nil
}

// ParseInformation reads the text of such a file (NVIDIA/open-gpu-kernel-modules
// kernel-open/nvidia/nv-procfs.c, nv_procfs_read_gpu_info). Of lines that are there twice the
// last counts.
func ParseInformation(text []byte) Information {
	n := Information{Minor: -1}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Model":
			n.Model = sanitize.Terminal(value)
		case "GPU UUID":
			n.UUID = value
		case "Device Minor":
			n.Minor = -1
			if minor, err := strconv.ParseUint(value, 10, 16); err == nil {
				n.Minor = int(minor)
			}
		}
	}
	return n
}
