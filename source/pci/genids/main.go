// Command genids writes the table of product names that source/pci embeds: the
// GPUs of vendor 10de and the NICs and bridges of vendor 15b3, out of a pci.ids file,
// plus products that it does not name yet.
//
//	go run ./source/pci/genids /usr/share/misc/pci.ids > source/pci/ids.txt
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jaypipes/pcidb"
)

// later holds products that the pci.ids of 2025-07-11 lacks or names by chip
// alone. Sources: the table of supported GPUs in the README of NVIDIA's open
// kernel modules (595.45.04), the device table of the kernel's nvgrace-gpu driver
// (6.18), rdma-core's mlx5 device table (v64).
var later = map[string]string{
	"10de:2342": "GH200 480GB",
	"10de:2345": "GH200 480GB",
	"10de:2348": "GH200 144G HBM3e",
	"10de:2941": "GB200",
	"10de:2e12": "GB10",
	"10de:2e2a": "GB10",
	"10de:31c2": "GB300",
	"15b3:2101": "ConnectX-10 NVLink-C2C",
	"15b3:a2d2": "BlueField ConnectX-5",
	"15b3:a2d6": "BlueField-2 ConnectX-6 Dx",
	"15b3:a2d9": "BlueField-3 Lx ConnectX-7",
	"15b3:a2dc": "BlueField-3 ConnectX-7",
	"15b3:a2df": "BlueField-4",
}

var (
	product = regexp.MustCompile(`\[([^\[\]]+)\]\s*$`)
	notAGPU = regexp.MustCompile(`(?i)nforce|audio|usb|ucsi|bridge|tegra|switch|ethernet|sata|smbus|memory controller`)
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "genids:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: genids PCI_IDS_FILE")
	}
	db, err := pcidb.New(pcidb.WithPath(args[0]))
	if err != nil {
		return err
	}
	version, err := versionOf(args[0])
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, vendor := range []string{"10de", "15b3"} {
		for _, p := range db.Vendors[vendor].Products {
			if name := shorten(vendor, p.Name); name != "" {
				names[vendor+":"+p.ID] = name
			}
		}
	}
	maps.Copy(names, later)
	if _, err := fmt.Fprintf(out, "# Product names from pci.ids %s (10de, 15b3) and later products; written by genids.\n", version); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		if _, err := fmt.Fprintf(out, "%s %s\n", id, names[id]); err != nil {
			return err
		}
	}
	return nil
}

// shorten returns the product that people know, "H100 SXM5 80GB" of "GH100 [H100
// SXM5 80GB]"; "" for a function of vendor 10de that is not a GPU.
func shorten(vendor, name string) string {
	p := product.FindStringSubmatch(name)
	if vendor == "10de" && !strings.Contains(name, "GeForce") && (p == nil || notAGPU.MatchString(name)) {
		return ""
	}
	if p != nil {
		return p[1]
	}
	return name
}

// versionOf reads the line "#	Version: 2025.07.11" at the head of a pci.ids.
func versionOf(file string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the file named on the command line
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, "#\tVersion: "); ok {
			return strings.TrimSpace(version), nil
		}
	}
	return "", fmt.Errorf("%s: no version in it", file)
}
