package initramfs

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Modules are the module files of a kernel by the module's name.
type Modules map[string]string

// FindModules looks for module files below a directory.
func FindModules(dir string) (Modules, error) {
	found := Modules{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			found[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	return found, err
}

// Order returns the modules in an order in which they can be loaded: those that
// one needs before it. There is no modules.dep before depmod has run, so it asks
// the modules.
func (m Modules) Order(names ...string) ([]string, error) {
	var order []string
	done := map[string]bool{}
	var add func(string) error
	add = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		path, ok := m[name]
		if !ok {
			return fmt.Errorf("no module %s", name)
		}
		needs, err := depends(path)
		if err != nil {
			return err
		}
		for _, n := range needs {
			if err := add(n); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		order = append(order, name)
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// depends returns the modules that a module says it needs.
func depends(path string) ([]string, error) {
	file, err := os.Open(path) //nolint:gosec // a module of the kernel that was asked for
	if err != nil {
		return nil, err
	}
	defer file.Close()
	module, err := elf.NewFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	section := module.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s: no section .modinfo", path)
	}
	info, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return needed(string(info)), nil
}

// needed finds the field "depends" among those of a module.
func needed(info string) []string {
	for field := range strings.SplitSeq(info, "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ",")
		}
	}
	return nil
}
