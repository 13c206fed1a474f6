package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A GPU and a NIC below one switch, without drivers.
func TestRun(t *testing.T) {
	root := t.TempDir()
	const above = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/"
	for path, modalias := range map[string]string{
		"sys/devices/pci0000:15/0000:15:01.0": "pci:v00008086d0000352Asv00008086sd00000000bc06sc04i00",
		above[:len(above)-1]:                  "pci:v00001000d0000C030sv00001000sd00000000bc06sc04i00",
		above + "0000:17:00.0":                "pci:v00001000d0000C030sv00001000sd00000000bc06sc04i00",
		above + "0000:17:01.0":                "pci:v00001000d0000C030sv00001000sd00000000bc06sc04i00",
		above + "0000:17:00.0/0000:18:00.0":   "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00",
		above + "0000:17:01.0/0000:19:00.0":   "pci:v000015B3d00001021sv000015B3sd00000041bc02sc07i00",
	} {
		write(t, filepath.Join(root, path, "modalias"), modalias)
		link := filepath.Join(root, "sys/bus/pci/devices", filepath.Base(path))
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../../../"+strings.TrimPrefix(path, "sys/"), link); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "sys/module/pci/parameters/none"), "")
	write(t, filepath.Join(root, "proc/kallsyms"), "0000000000000000 T start_kernel\n")

	var out strings.Builder
	if err := run(t.Context(), &out, root); err != nil {
		t.Fatal(err)
	}
	const want = "0000:18:00.0  PIX nccl=PIX\ncapable=true ready=false GPUDriverNotLoaded\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The public packages use only public types: no identifier that go doc shows is of
// an internal package.
func TestPublic(t *testing.T) {
	internal, err := filepath.Glob("../../internal/*")
	if err != nil || len(internal) < 10 {
		t.Fatalf("internal packages %q, error %v", internal, err)
	}
	for _, public := range []string{
		"host", "tristate", "source/pci", "source/rdma", "source/kmod", "source/verbs", "source/family", "topology", "topology/nccl", "verdict", "nfdsource",
	} {
		cmd := exec.CommandContext(t.Context(), "go", "doc", "-all", "./"+public)
		cmd.Dir = "../.."
		doc, err := cmd.Output()
		if err != nil || len(doc) < 500 {
			t.Fatalf("%s: %d bytes, error %v", public, len(doc), err)
		}
		for line := range strings.Lines(string(doc)) {
			code, _, _ := strings.Cut(line, "//")
			for _, dir := range internal {
				name := filepath.Base(dir) + "."
				if i := strings.Index(code, name); i >= 0 && len(code) > i+len(name) && isUpper(code[i+len(name)]) && (i == 0 || !isLetter(code[i-1])) {
					t.Errorf("%s shows an internal type: %s", public, line)
				}
			}
		}
	}
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isLetter(c byte) bool { return isUpper(c) || 'a' <= c && c <= 'z' }
