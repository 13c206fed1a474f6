// Package names asks the machine's own pci.ids, through ghw, what its PCI
// functions are called. It is for output that people read: reading all of
// pci.ids takes longer than everything else together, so labels and verdicts
// rest on the small table in source/pci instead.
package names

import (
	"context"
	"os"
	"regexp"

	"gdr-features/internal/host"
	"gdr-features/source/pci"

	"github.com/jaypipes/ghw"
)

// product finds "H100 SXM5 80GB" in "GH100 [H100 SXM5 80GB]".
var product = regexp.MustCompile(`\[([^\[\]]+)\]\s*$`)

// Read gives names by address. A machine without pci.ids, or one that does not
// answer before ctx ends, has none: names are a convenience.
func Read(ctx context.Context, fs *host.FS, sysfs string) map[pci.Address]string {
	options := []any{ghw.WithDisableWarnings(), ghw.WithDisableTopology(), ghw.WithChroot(fs.Root())}
	if sysfs != "" {
		options = []any{
			ghw.WithDisableWarnings(), ghw.WithDisableTopology(),
			ghw.WithPathOverrides(map[string]string{"/sys": sysfs}),
		}
	}
	if os.Getenv("PCIDB_PATH") == os.DevNull {
		return nil
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
		name := d.Product.Name
		if m := product.FindStringSubmatch(name); m != nil {
			name = m[1]
		}
		names[a] = name
	}
	return names
}
