// Command genids writes the table of product names that source/pci embeds, out of a
// pci.ids file, for the ids of the families of GPUs and NICs in source/family, and of
// products that the file does not name yet.
//
//	go run ./hack/genids /usr/share/misc/pci.ids source/pci/ids.txt > ids.new && mv ids.new source/pci/ids.txt
//
// The second file is the table that there is. Names that pci.ids lacks are kept. A pci.ids older
// than the one of the table, as Debian's often is, adds names and changes none.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jaypipes/pcidb"

	"gdr-features/source/family"
)

// later holds products that the pci.ids of 2026-08-22 lacks or names by chip
// alone. Sources: the table of supported GPUs in the README of NVIDIA's open
// kernel modules (595.45.04), the device table of the kernel's nvgrace-gpu driver
// (6.18), kubevirt/kubevirt#19070 and NVIDIA/k8s-test-infra#872 for Rubin, rdma-core's mlx5
// device table (v64); AMD's rules for Node Feature Discovery
// (ROCm/gpu-operator, hack/k8s-patch, gpu-nfd-default-rule.yaml); the kernel's bnxt.c,
// gdma.h (6.12) and ionic.h (6.18); HewlettPackard/shs-cxi-driver, cass_core.h, for Slingshot.
var later = map[string]string{
	"1002:7410": "Instinct MI210 VF",
	"1002:74a8": "Instinct MI308X HF",
	"1002:74b6": "Instinct MI308X VF",
	"1002:74bc": "Instinct MI308X HF VF",
	"1002:75b0": "Instinct MI350X VF",
	"1002:75b3": "Instinct MI355X VF",
	"1002:75b8": "Instinct MI350P VF",
	"10de:2342": "GH200 480GB",
	"10de:2345": "GH200 480GB",
	"10de:2348": "GH200 144G HBM3e",
	"10de:2941": "GB200",
	"10de:2e12": "GB10",
	"10de:2e2a": "GB10",
	"10de:3041": "Vera Rubin",
	"10de:307f": "Vera Rubin",
	"10de:31c2": "GB300",
	"1414:00b9": "MANA",
	"1414:00ba": "MANA VF",
	"14e4:1761": "BCM57604",
	"14e4:1762": "BCM57602",
	"14e4:1763": "BCM57601",
	"1590:0371": "Slingshot Cassini 2",
	"15b3:2101": "ConnectX-10 NVLink-C2C",
	"15b3:a2d2": "BlueField ConnectX-5",
	"15b3:a2d6": "BlueField-2 ConnectX-6 Dx",
	"15b3:a2d9": "BlueField-3 Lx ConnectX-7",
	"15b3:a2dc": "BlueField-3 ConnectX-7",
	"15b3:a2df": "BlueField-4",
	"17db:0501": "Slingshot Cassini",
	"1dd8:1002": "Pensando DSC or Pollara",
	"1dd8:1003": "Pensando DSC or Pollara VF",
	"8086:24f0": "Omni-Path HFI 100 Series",
	"8086:24f1": "Omni-Path HFI 100 Series, integrated",
}

var (
	product = regexp.MustCompile(`\[([^\[\]]+)\]\s*$`)
	notAGPU = regexp.MustCompile(`(?i)nforce|audio|usb|ucsi|bridge|tegra|switch|ethernet|sata|smbus|memory controller`)
	// recent are AMD's chips from 2017 on, and what pci.ids calls Instinct.
	recent = regexp.MustCompile(`^(Vega|Navi)|Instinct`)
	// generic are words in the names of NICs that tell little.
	generic = regexp.MustCompile(`^Ethernet (Controller|Connection) |( Unified Wire| Dual-Media)?( [\d/]+G\S*)?( RDMA)? Ethernet( Controller)?$| [\d/]+GbE Controller$`)
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "genids:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: genids PCI_IDS_FILE TABLE")
	}
	db, err := pcidb.New(pcidb.WithPath(args[0]))
	if err != nil {
		return err
	}
	version, err := versionOf(args[0])
	if err != nil {
		return err
	}
	was, names, err := readTable(args[1])
	if err != nil {
		return err
	}
	older, newer := names, namesIn(db)
	if version < was { // 2026.08.22: the order of the text is that of the dates
		older, newer, version = newer, older, was
	}
	names = older
	maps.Copy(names, newer)
	maps.Copy(names, later)
	text := fmt.Appendf(nil, heading+"\n", version)
	for _, id := range slices.Sorted(maps.Keys(names)) {
		text = fmt.Appendf(text, "%s %s\n", id, names[id])
	}
	_, err = out.Write(text)
	return err
}

// heading is the first line of the table, with the version of pci.ids.
const heading = "# Product names from pci.ids %s and later products; written by genids."

// readTable reads a table that was written before: the version of its pci.ids, and the names of
// what is still of a family.
func readTable(file string) (version string, names map[string]string, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // the file named on the command line
	if err != nil {
		return "", nil, err
	}
	names = map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if version == "" {
			if _, err := fmt.Sscanf(line, heading, &version); err != nil {
				return "", nil, fmt.Errorf("%s does not begin with %q", file, heading)
			}
			continue
		}
		if id, name, ok := strings.Cut(line, " "); ok && ofFamily(id) {
			names[id] = name
		}
	}
	return version, names, nil
}

// ofFamily reports whether an id, "15b3:1021", may be one of a family.
func ofFamily(id string) bool {
	var vendor, device uint16
	if _, err := fmt.Sscanf(id, "%04x:%04x", &vendor, &device); err != nil {
		return false
	}
	table := family.Every()
	return slices.ContainsFunc(table.GPUs, func(g *family.GPU) bool { return g.Vendor == vendor }) ||
		slices.ContainsFunc(table.NICs, func(n *family.NIC) bool { return n.Vendor == vendor && n.Devices.Has(device) })
}

// namesIn are the names that a pci.ids has. It may lack a vendor.
func namesIn(db *pcidb.PCIDB) map[string]string {
	table, names := family.Every(), map[string]string{}
	products := func(vendor uint16) (id string, all []*pcidb.Product) {
		id = fmt.Sprintf("%04x", vendor)
		if v := db.Vendors[id]; v != nil {
			all = v.Products
		}
		return id, all
	}
	for _, g := range table.GPUs {
		vendor, all := products(g.Vendor)
		for _, p := range all {
			if name := gpuName(g, p.Name); name != "" {
				names[vendor+":"+p.ID] = name
			}
		}
	}
	for _, n := range table.NICs {
		vendor, all := products(n.Vendor)
		for _, p := range all {
			if device, err := strconv.ParseUint(p.ID, 16, 16); err == nil && n.Devices.Has(uint16(device)) {
				names[vendor+":"+p.ID] = nicName(p.Name)
			}
		}
	}
	return names
}

// gpuName returns the product that people know, "H100 SXM5 80GB" of "GH100 [H100
// SXM5 80GB]"; "" for a function that is not a GPU. Where names decide nothing, chips
// from before 2017 have none.
func gpuName(g *family.GPU, name string) string {
	p := product.FindStringSubmatch(name)
	switch {
	case !strings.Contains(name, "GeForce") && (p == nil || notAGPU.MatchString(name)),
		g.UnsupportedNames == nil && !recent.MatchString(name):
		return ""
	case p == nil:
		return name
	}
	return p[1]
}

// nicName returns the product that people know, "ConnectX-7" of "MT2910 Family
// [ConnectX-7]", "E810-C for QSFP" of "Ethernet Controller E810-C for QSFP".
func nicName(name string) string {
	if p := product.FindStringSubmatch(name); p != nil {
		return p[1]
	}
	return strings.TrimSpace(generic.ReplaceAllString(name, ""))
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
