package dra_test

import (
	"os"
	"path/filepath"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
	"gdr-features/topology"
)

// TestOdd: where a path or a NUMA node has another form than on any machine, an attribute is
// what Kubernetes' library reads, or unknown where the library reads none.
func TestOdd(t *testing.T) {
	const (
		address = "0000:18:00.0"
		entry   = "sys/bus/pci/devices/" + address
		below   = "/0000:15:01.0/" + address
		unknown = "unknown"
	)
	m, err := machine.Parse("nodes 2\npci0000:15 numa=1\n  0000:15:01.0 port 8086:352a\n    " + address + " gpu 10de:2330\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		attribute topology.Attribute
		name      resourceapi.QualifiedName
		odd       string // target of the function's link, or content of numa_node
		want      string
	}{
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, "../../../devices/pci0000:15" + below, "pci0000:15"},
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, "/sys/devices/pci0000:15" + below, ""},
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, "../../../devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500/pci0000:15" + below, ""},
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, "../../../devices/platform/soc/40000000.pcie/pci0000:15" + below, ""},
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, "../../../devices/pci0000:d7/0000:d7:05.5/pci10000:e0" + below, "pci0000:d7"},
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, "../../../devices/pcie/pci0000:15" + below, "pcie"},
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, "../../../devices/pci0000:15/0000:15:01.0", unknown},
		{topology.PCIeRoot, deviceattribute.StandardDeviceAttributePCIeRoot, address, unknown},
		{topology.NUMANode, deviceattribute.StandardDeviceAttributeNUMANode, "1\n", "1"},
		{topology.NUMANode, deviceattribute.StandardDeviceAttributeNUMANode, "1023\n", "1023"},
		{topology.NUMANode, deviceattribute.StandardDeviceAttributeNUMANode, "-1\n", ""},
		{topology.NUMANode, deviceattribute.StandardDeviceAttributeNUMANode, "-2\n", unknown},
		{topology.NUMANode, deviceattribute.StandardDeviceAttributeNUMANode, "one\n", unknown},
		{topology.NUMANode, deviceattribute.StandardDeviceAttributeNUMANode, "", unknown},
	} {
		dir := m.Tree(t, m.Ready())
		if tt.attribute == topology.PCIeRoot {
			err = os.Remove(filepath.Join(dir, entry))
			if err == nil {
				err = os.Symlink(tt.odd, filepath.Join(dir, entry))
			}
		} else {
			err = os.WriteFile(filepath.Join(dir, entry, "numa_node"), []byte(tt.odd), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, known := tt.attribute.Of(scan(t, dir, address))
		if !known {
			got = unknown
		}
		read := text(standard(dir+"/sys", address)[tt.name])
		if got != tt.want || got != read && (known || read != "") {
			t.Errorf("%s of %q: %s, want %s; the library reads %q", tt.attribute, tt.odd, got, tt.want, read)
		}
	}
}

// scan reads one function of a tree.
func scan(t *testing.T, dir, address string) *pci.Function {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	inv, err := pci.Scan(fs, family.Known(), source.What{Details: true})
	if err != nil {
		t.Fatal(err)
	}
	at, err := pci.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	f := inv.Find(at)
	if f == nil {
		t.Fatalf("no function %s", address)
	}
	return f
}
