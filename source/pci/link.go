package pci

import "gdr-features/internal/host"

// ReadLink reads the state of a function's link; nil where it has none, or none
// that can be read.
func ReadLink(fs *host.FS, a Address) *Link {
	return readLink(fs, devicesDir+"/"+a.String()+"/")
}
