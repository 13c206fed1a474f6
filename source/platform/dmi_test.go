package platform

import (
	"os"
	"path/filepath"
	"testing"

	"gdr-features/host"
	"gdr-features/tristate"
)

// TestRead: each name is known on its own; one that is empty is known and matches nothing
// for certain.
func TestDMI(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, DMIDir)
	if err := os.MkdirAll(filepath.Join(dir, "board_name"), 0o755); err != nil { // a directory cannot be read
		t.Fatal(err)
	}
	for name, text := range map[string]string{"product_name": "p5.48xlarge\n", "sys_vendor": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := host.Open(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	names := ReadDMI(fs)
	for _, tt := range []struct {
		name  string
		got   Name
		value string
		known bool
		is    tristate.State
	}{
		{"product", names.Product, "p5.48xlarge", true, tristate.True},
		{"vendor", names.Vendor, "", true, tristate.Unknown},
		{"board", names.Board, "", false, tristate.Unknown},
		{"none", Name{}, "", false, tristate.Unknown},
	} {
		if is := tt.got.Is(func(string) bool { return true }); tt.got.Value != tt.value || tt.got.Known != tt.known || is != tt.is {
			t.Errorf("%s: %+v, matches: %v", tt.name, tt.got, is)
		}
	}
	if names.Product.Is(func(string) bool { return false }) != tristate.False {
		t.Error("another product matches")
	}
}
