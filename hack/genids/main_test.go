package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a file of a test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file that lacks vendors and products loses no names, and an older one only adds some.
func TestRun(t *testing.T) {
	table := write(t, "ids.txt", "# Product names from pci.ids 2026.08.22 and later products; written by genids.\n"+
		"10de:2330 H100 SXM5 80GB\n15b3:1021 ConnectX-6\n15b3:1023 ConnectX-8\nffff:0001 Of no family\n")
	const products = "15b3  Mellanox Technologies\n\t1021  MT2910 Family [ConnectX-7]\n\t101d  MT2892 Family [ConnectX-6 Dx]\nffff  Illegal Vendor ID\n"
	var out strings.Builder
	newer := write(t, "pci.ids", "#\tVersion: 2026.09.01\n"+products)
	if err := run([]string{newer, table}, &out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for line, want := range map[string]bool{
		"# Product names from pci.ids 2026.09.01 and": true, "10de:2330 H100 SXM5 80GB\n": true, "15b3:1021 ConnectX-7\n": true,
		"15b3:1023 ConnectX-8\n": true, "ConnectX-6\n": false, "ffff": false,
	} {
		if strings.Contains(text, line) != want {
			t.Errorf("%q: want %v in\n%s", line, want, text)
		}
	}
	out.Reset()
	older := write(t, "pci.ids", "#\tVersion: 2025.07.11\n"+products)
	if err := run([]string{older, table}, &out); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"# Product names from pci.ids 2026.08.22 and": true, "15b3:1021 ConnectX-6\n": true, "15b3:1023 ConnectX-8\n": true,
		"15b3:1021 ConnectX-7\n": false, "15b3:101d ConnectX-6 Dx\n": true,
	} {
		if strings.Contains(out.String(), line) != want {
			t.Errorf("older: %q: want %v in\n%s", line, want, out.String())
		}
	}
}

// The table that the product embeds can be read.
func TestTable(t *testing.T) {
	version, names, err := readTable("../../source/pci/ids.txt")
	if err != nil || version == "" || len(names) == 0 {
		t.Errorf("version %q, %d names, error %v", version, len(names), err)
	}
}
