// Package names reads the names of a machine's PCI functions from its own pci.ids,
// through ghw. They are for features that people read. Labels, verdicts and the command
// line use the table in source/pci instead, which comes from the same database: reading
// all of pci.ids costs several times a whole run of gdr-features (make bench).
package names

import (
	"context"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/source/pci"

	"github.com/jaypipes/ghw"
)

// Read returns names by address. It gives none without a pci.ids, and when ctx ends
// before everything is read.
func Read(ctx context.Context, fs *host.FS) map[pci.Address]string {
	options := []any{ghw.WithDisableWarnings(), ghw.WithDisableTopology(), ghw.WithChroot(fs.Root())}
	if sysfs := fs.Sysfs(); sysfs != "" {
		options[2] = ghw.WithPathOverrides(map[string]string{"/sys": sysfs})
	}
	info, err := deadline.Async(func() (*ghw.PCIInfo, error) { return ghw.PCI(options...) })(ctx)
	if err != nil {
		return nil
	}
	names := map[pci.Address]string{}
	for _, d := range info.Devices {
		a, err := pci.ParseAddress(d.Address)
		if err != nil || d.Product == nil || d.Product.Name == "unknown" {
			continue
		}
		names[a] = product(d.Product.Name)
	}
	return names
}

// product returns "H100 SXM5 80GB" of "GH100 [H100 SXM5 80GB]".
func product(name string) string {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return name
	}
	return name[open+1 : len(name)-1]
}
