package platform

import (
	"strings"

	"gdr-features/host"
)

// CompatibleFile has the models of a machine with a device tree.
const CompatibleFile = "/proc/device-tree/compatible"

// ReadTegra reads the model of a Tegra from CompatibleFile, where it is one of several,
// "nvidia,p3701\x00nvidia,tegra234\x00"; "" for other machines.
func ReadTegra(fs *host.FS) (string, error) {
	text, err := fs.Bytes(CompatibleFile[1:], 4<<10)
	for name := range strings.SplitSeq(string(text), "\x00") {
		if strings.HasPrefix(name, "nvidia,tegra") {
			return name, err
		}
	}
	return "", err
}
