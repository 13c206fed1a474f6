// Package names asks the machine's own pci.ids, through ghw, what its PCI
// functions are called. It is for features that people read. Labels, verdicts
// and the command line rest on the table in source/pci instead, which comes
// from the same database: reading all of pci.ids takes longer than everything
// else together, and linking ghw alone (net/http, crypto, yaml) costs every
// start of the program 0.4 to 0.8 ms.
package names

import (
	"context"
	"strings"

	"gdr-features/host"
	"gdr-features/source/pci"

	"github.com/jaypipes/ghw"
)

// Read gives names by address. A machine without pci.ids, or one that does not
// answer before ctx ends, has none: names are a convenience.
func Read(ctx context.Context, fs *host.FS) map[pci.Address]string {
	options := []any{ghw.WithDisableWarnings(), ghw.WithDisableTopology(), ghw.WithChroot(fs.Root())}
	if sysfs := fs.Sysfs(); sysfs != "" {
		options = []any{
			ghw.WithDisableWarnings(), ghw.WithDisableTopology(),
			ghw.WithPathOverrides(map[string]string{"/sys": sysfs}),
		}
	}
	from := make(chan map[pci.Address]string, 1)
	go func() { from <- read(options) }()
	select {
	case names := <-from:
		return names
	case <-ctx.Done():
		return nil
	}
}

func read(options []any) map[pci.Address]string {
	info, err := ghw.PCI(options...)
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

// product gives "H100 SXM5 80GB" of "GH100 [H100 SXM5 80GB]".
func product(name string) string {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return name
	}
	return name[open+1 : len(name)-1]
}
