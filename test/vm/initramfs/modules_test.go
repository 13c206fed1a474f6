package initramfs_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/vm/initramfs"
)

// module makes an object file with a section .modinfo and nothing else.
func module(t *testing.T, info string) []byte {
	t.Helper()
	const names = "\x00.shstrtab\x00.modinfo\x00"
	const headerSize, sectionSize = 64, 64
	var out bytes.Buffer
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Ehsize: headerSize, Shentsize: sectionSize, Shnum: 3, Shstrndx: 1, Shoff: headerSize,
	}
	const body = headerSize + 3*sectionSize
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_STRTAB), Off: body, Size: uint64(len(names))},
		{Name: 11, Type: uint32(elf.SHT_PROGBITS), Off: body + uint64(len(names)), Size: uint64(len(info))},
	}
	for _, part := range []any{head, sections, []byte(names), []byte(info)} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// tree lays modules out as a kernel has them, by what their .modinfo says.
func tree(t *testing.T, infos map[string]string) initramfs.Modules {
	t.Helper()
	dir := t.TempDir()
	for name, info := range infos {
		file := filepath.Join(dir, "kernel", name[:1], name+".ko")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, module(t, info), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "modules.builtin"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := initramfs.FindModules(dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestOrder(t *testing.T) {
	m := tree(t, map[string]string{
		"mlx5_ib":   "license=GPL\x00depends=mlx5_core,ib-core\x00name=mlx5_ib\x00",
		"mlx5_core": "alias=pci:*\x00depends=tls\x00",
		"ib-core":   "depends=\x00",
		"tls":       "name=depends=no\x00",
		"needy":     "depends=gone\x00",
	})
	for _, tt := range []struct{ names, want []string }{
		{[]string{"tls"}, []string{"tls"}},
		{[]string{"mlx5_ib", "mlx5_core"}, []string{"tls", "mlx5_core", "ib_core", "mlx5_ib"}},
		{[]string{"ib_core", "mlx5_ib"}, []string{"ib_core", "tls", "mlx5_core", "mlx5_ib"}},
	} {
		got, err := m.Order(tt.names...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.names, diff)
		}
	}
	for _, name := range []string{"gone", "needy"} {
		if got, err := m.Order(name); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNoModule(t *testing.T) {
	m := tree(t, map[string]string{"a": "depends=\x00"})
	if err := os.WriteFile(m["a"], []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Order("a"); err == nil {
		t.Errorf("a text file: %v", got)
	}
	if m, err := initramfs.FindModules(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Errorf("no directory: %v", m)
	}
}
