// Command genids writes the table of product names that source/pci embeds: the
// GPUs of vendor 10de and the adapters and bridges of vendor 15b3, out of a
// pci.ids file, plus products that pci.ids does not name yet.
//
//	go run ./source/pci/genids /usr/share/misc/pci.ids > source/pci/ids.txt
package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"sort"
	"strings"
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
	vendorLine = regexp.MustCompile(`^([0-9a-f]{4})  `)
	deviceLine = regexp.MustCompile(`^\t([0-9a-f]{4})  (.+)$`)
	product    = regexp.MustCompile(`\[([^\[\]]+)\]\s*$`)
	notAGPU    = regexp.MustCompile(`(?i)nforce|audio|usb|ucsi|bridge|tegra|switch|ethernet|sata|smbus|memory controller`)
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
	file, err := os.Open(args[0]) //nolint:gosec // the file it is told to read
	if err != nil {
		return err
	}
	defer file.Close()
	names, version, err := parse(file)
	if err != nil {
		return err
	}
	maps.Copy(names, later)
	ids := make([]string, 0, len(names))
	for id := range names {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	if _, err := fmt.Fprintf(out, "# Product names from pci.ids %s (10de, 15b3) and later products; written by genids.\n", version); err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := fmt.Fprintf(out, "%s %s\n", id, names[id]); err != nil {
			return err
		}
	}
	return nil
}

// parse picks the two vendors' devices and shortens "GH100 [H100 SXM5 80GB]"
// to the product that people know.
func parse(in io.Reader) (names map[string]string, version string, err error) {
	names = map[string]string{}
	var vendor string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if v, ok := strings.CutPrefix(line, "#\tVersion: "); ok {
			version = strings.TrimSpace(v)
		}
		if m := vendorLine.FindStringSubmatch(line); m != nil {
			vendor = m[1]
		}
		m := deviceLine.FindStringSubmatch(line)
		if m == nil || vendor != "10de" && vendor != "15b3" {
			continue
		}
		name := m[2]
		p := product.FindStringSubmatch(name)
		if vendor == "10de" && !strings.Contains(name, "GeForce") &&
			(notAGPU.MatchString(name) || p == nil) {
			continue
		}
		if p != nil {
			name = p[1]
		}
		names[vendor+":"+m[1]] = name
	}
	return names, version, lines.Err()
}
