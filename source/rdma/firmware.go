package rdma

import "gdr-features/host"

// ReadFirmware reads the version of the device's firmware, "28.39.1002", from
// fw_ver; "" where there is none to read. A device that manages an NVLink fabric
// is left alone.
func (d *Device) ReadFirmware(fs *host.FS) string {
	if d.NVLinkManagement {
		return ""
	}
	version, _ := fs.Line(d.dir + "/fw_ver") // only some drivers have it
	return version
}
