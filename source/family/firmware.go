package family

import "strings"

// Firmware names branches of a NIC's firmware, by how their versions begin, such as "231" or
// "1.117.1", and the first release that is known to be free of what they have in common.
type Firmware struct {
	Branches []string
	Need     string
}

// Has reports whether a version, fw_ver of an RDMA device, is of one of the branches. "" is of none.
func (f *Firmware) Has(version string) bool {
	for _, branch := range f.Branches {
		if rest, ok := strings.CutPrefix(version, branch); ok && (rest == "" || rest[0] == '.' || rest[0] == '-') {
			return true
		}
	}
	return false
}
