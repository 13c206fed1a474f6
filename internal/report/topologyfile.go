package report

import (
	"context"
	"fmt"
	"slices"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology/nccl"
)

// virtualTopology is where NCCL looks for the machine's own (src/graph/topo.cc).
const virtualTopology = "var/run/nvidia-topologyd/virtualTopology.xml"

// readTopologyFile returns the topology file that the user names, or else the machine's own; nil
// without one.
func readTopologyFile(_ context.Context, m *known) (*nccl.File, error) {
	file, err := m.options.TopologyFile, error(nil)
	if m.options.TopologyOf != nil {
		file, err = m.options.TopologyOf(&m.Node)
	}
	if file != nil || err != nil {
		return file, err
	}
	return machineTopology(m.fs, ncclPlugins(&m.PCI), m.Platform.DMI.Product)
}

// ncclPlugins returns the plugins through which NCCL uses a machine's NICs.
func ncclPlugins(inv *pci.Inventory) []*family.NCCLPlugin {
	var plugins []*family.NCCLPlugin
	for i := range inv.Functions {
		nic := inv.Functions[i].NIC
		if nic != nil && nic.NCCLPlugin != nil && !slices.Contains(plugins, nic.NCCLPlugin) {
			plugins = append(plugins, nic.NCCLPlugin)
		}
	}
	return plugins
}

// machineTopology returns a machine's own topology file, nil without one: NVIDIA's, or else
// that of a plugin. (Jobs that use the plugin would prefer the plugin's.) A file that is there
// and cannot be read is an error.
func machineTopology(fs *host.FS, plugins []*family.NCCLPlugin, product platform.Name) (*nccl.File, error) {
	file, err := parseTopology(fs, virtualTopology)
	for i := 0; file == nil && err == nil && i < len(plugins); i++ {
		file, err = pluginTopology(fs, plugins[i], product)
	}
	return file, err
}

// pluginTopology returns the file that a plugin is installed with for the machine's type,
// nil where there is none. Where the type cannot be read, an installed plugin is an error.
func pluginTopology(fs *host.FS, plugin *family.NCCLPlugin, product platform.Name) (*nccl.File, error) {
	name, unread := plugin.TopologyFiles[product.Value], product.Err
	if host.Absent(unread) || unread == nil && name == "" {
		return nil, nil //nolint:nilnil // the plugin has none for it either
	}
	for _, dir := range plugin.Directories {
		switch installed, err := fs.Exists(dir); {
		case err != nil:
			return nil, err
		case installed && unread != nil:
			return nil, fmt.Errorf("/%s has a file for each type of machine: %w", dir, unread)
		case !installed:
			continue
		}
		if file, err := parseTopology(fs, dir+"/"+name); file != nil || err != nil {
			return file, err
		}
	}
	return nil, nil //nolint:nilnil // no file is no error
}

// parseTopology reads a topology file, nil where there is none.
func parseTopology(fs *host.FS, name string) (*nccl.File, error) {
	data, err := fs.Bytes(name, nccl.MaxFile)
	switch {
	case host.Absent(err):
		return nil, nil //nolint:nilnil // no file is no error
	case err != nil:
		return nil, err
	}
	file, err := nccl.ParseFile(data)
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", name, err)
	}
	file.Name = "/" + name
	return file, nil
}
