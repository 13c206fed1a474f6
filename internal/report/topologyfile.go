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

// namedTopologyFile returns the topology file that the user names for the machine. unread: which
// one is not known.
func (rd *Reader) namedTopologyFile(r *Report) (file *nccl.File, unread bool) {
	if rd.options.TopologyOf == nil {
		return rd.options.TopologyFile, false
	}
	file, err := rd.options.TopologyOf(&r.Node)
	if err != nil {
		r.problem(err)
	}
	return file, err != nil
}

// startTopologyFile starts to read the machine's own topology file, if the user names none and all
// parts are to be read, concurrently with them: the levels are known even if a device hangs.
func (rd *Reader) startTopologyFile(parts Parts, named bool) func(context.Context) error {
	if parts != All || named {
		return func(context.Context) error { return nil }
	}
	fs, plugins, product := rd.fs, ncclPlugins(&rd.pci.value), rd.names.value.Product
	if rd.names.err != nil {
		product.Err = rd.names.err
	}
	return rd.file.start("NCCL topology file", func() (*nccl.File, error) { return machineTopology(fs, plugins, product) })
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
	file, err := readTopology(fs, virtualTopology)
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
		if file, err := readTopology(fs, dir+"/"+name); file != nil || err != nil {
			return file, err
		}
	}
	return nil, nil //nolint:nilnil // no file is no error
}

// readTopology reads a topology file, nil where there is none.
func readTopology(fs *host.FS, name string) (*nccl.File, error) {
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
