package kmod

import (
	"fmt"
	"strings"

	"gdr-features/internal/sanitize"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// maxInformation is several times the size of the file, in bytes.
const maxInformation = 4 << 10

// models reads the names of the GPUs, unless this is known to be no virtual machine. From
// the line "Model: NVIDIA A30-8C" of the file information that NVIDIA's driver has for each
// GPU (NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv-procfs.c,
// nv_procfs_read_gpu_info). A GPU without that file or line is left out.
func (s *scanner) models(want Request) {
	if s.st.Virtual == tristate.False && !want.Everything {
		return
	}
	s.st.Models = map[pci.Address]string{}
	for _, g := range want.Present.GPUs {
		for _, address := range want.Models[g.Name] {
			name := fmt.Sprintf("%s/%v/information", g.Information, address)
			text, err := s.fs.Bytes(name, maxInformation)
			if err != nil {
				s.problem(err)
				continue
			}
			for line := range strings.Lines(string(text)) {
				if key, value, _ := strings.Cut(line, ":"); key == "Model" {
					s.st.Models[address] = sanitize.Terminal(strings.TrimSpace(value))
				}
			}
		}
	}
}
