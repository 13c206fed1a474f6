package platform

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Information is what NVIDIA's driver says of a GPU.
type Information struct {
	// Model is the name of the GPU, "NVIDIA A30-8C"; "" for none.
	Model string
	// UUID is "GPU-...", "" where there is none yet.
	UUID string
	// Minor is the number of the device node, -1 where there is none.
	Minor int
	// Excluded: the driver is bound to the GPU, but nothing can use it. Unknown for a text that
	// is not the driver's.
	Excluded tristate.State
}

// GPUs is what drivers say of the GPUs that they are bound to. The zero value: it was not read.
type GPUs struct {
	// Said has those of which the driver's file is there.
	Said map[pci.Address]Information
	// Problems are the files that could not be read, one error each.
	Problems []error
}

// Excluded reports whether the driver excludes a GPU. Where its file is missing, as without the
// host's /proc, it is taken for one that is not.
func (g *GPUs) Excluded(gpu pci.Address) tristate.State {
	said, there := g.Said[gpu]
	switch {
	case g.Said == nil:
		return tristate.Unknown
	case !there:
		return tristate.False
	}
	return said.Excluded
}

// ReadGPUs reads what the families' drivers say of the eligible GPUs that they are bound to.
func ReadGPUs(fs *host.FS, functions *pci.Inventory) GPUs {
	g := GPUs{Said: map[pci.Address]Information{}}
	for f := range functions.All() {
		if !f.GPUEligible() || f.Driver != f.GPU.Driver || f.GPU.Information == "" {
			continue
		}
		information, err := ReadInformation(fs, f.GPU, f.Address)
		if host.Absent(err) {
			continue
		}
		if err == nil && information.Excluded == tristate.Unknown {
			err = host.PathError("read", InformationFile(f.GPU, f.Address)[1:], errors.New("it does not say whether the GPU is excluded"))
		}
		if err != nil {
			g.Problems = append(g.Problems, err)
		}
		g.Said[f.Address] = information
	}
	return g
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
// last counts. Every release names the model; old ones do not say whether they exclude the GPU.
func ParseInformation(text []byte) Information {
	n := Information{Minor: -1}
	excluded := "No"
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
		case "GPU Excluded", "Blacklisted": // the latter in old releases
			excluded = value
		}
	}
	switch {
	case excluded == "Yes":
		n.Excluded = tristate.True
	case excluded == "No" && n.Model != "":
		n.Excluded = tristate.False
	}
	return n
}
