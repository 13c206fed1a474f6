package image

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// What libibverbs has compiled in: where it looks for providers, with the end of their names,
// and where the list of drivers is (rdma-core libibverbs/dynamic_driver.c).
var (
	providerPattern = regexp.MustCompile(`(?:^|\x00)(/[!-~]+)?/?lib%s(-rdmav[0-9]+\.so)\x00`)
	configPattern   = regexp.MustCompile(`(?:^|\x00)(/[!-~]*libibverbs\.d)\x00`)
)

// driverVariables have names of drivers that come before those of the list.
var driverVariables = [...]string{"RDMAV_DRIVERS", "IBV_DRIVERS"}

// mostProviders is how many providers are looked at. rdma-core has 20.
const mostProviders = 64

// verbs reads what libibverbs makes of the image: its list of drivers, and their providers.
func (l *loader) verbs(i *Image, variables map[string]string) {
	l.compiledIn(i)
	for _, d := range l.drivers(i, variables) {
		l.add(i, d)
	}
	for _, file := range l.providerFiles(i) {
		name, _, _ := strings.Cut(strings.TrimPrefix(path.Base(file), "lib"), "-rdmav")
		if known := l.add(i, driver{name: name}); known != nil && known.Library == nil && known.Err == nil && known.Other == "" {
			known.Other = "/" + file
		}
	}
	slices.SortFunc(i.Providers, func(a, b Provider) int { return strings.Compare(a.Name, b.Name) })
}

// add returns the provider of a driver, which it looks at if it is a new one. It is nil for one of
// too many: then which are listed is not known.
func (l *loader) add(i *Image, d driver) *Provider {
	if known := i.Provider(path.Base(d.name)); known != nil {
		return known
	}
	if len(i.Providers) == mostProviders {
		i.ListErr = &fs.PathError{Op: "read", Path: i.ConfigDir, Err: errLarge}
		return nil
	}
	i.Providers = append(i.Providers, l.provider(i, d))
	return &i.Providers[len(i.Providers)-1]
}

// compiledIn reads the directories and the names that libibverbs has compiled in, and knows those
// that are usual.
func (l *loader) compiledIn(i *Image) {
	i.ConfigDir, i.ProviderDir = "/etc/libibverbs.d", path.Dir(i.Verbs.Path)+"/libibverbs"
	for _, v := range i.Verbs.defines {
		if number, ok := strings.CutPrefix(v, "IBVERBS_PRIVATE_"); ok {
			i.Suffix = "-rdmav" + number + ".so"
		}
	}
	f, e, err := l.elf(i.Verbs.Path[1:])
	if err != nil {
		return
	}
	defer f.Close()
	for _, s := range [...]string{".rodata.str1.1", ".rodata.str1.8", ".rodata"} {
		data := section(e, s)
		if m := configPattern.FindSubmatch(data); m != nil {
			i.ConfigDir = string(m[1])
		}
		// Texts that follow one another share the zero between them.
		for _, part := range bytes.SplitAfter(data, []byte{0}) {
			m := providerPattern.FindSubmatch(part)
			if m == nil {
				continue
			}
			i.Suffix = string(m[2])
			if len(m[1]) > 1 {
				i.ProviderDir = path.Clean(string(m[1]))
			}
		}
	}
}

// driver is a name in the list of drivers, with the file or variable that has it.
type driver struct{ name, from string }

// drivers are those of the variables, and of all regular files of the directory.
func (l *loader) drivers(i *Image, variables map[string]string) (all []driver) {
	dir := i.ConfigDir
	for _, v := range driverVariables {
		if list := variables[v]; list != "" {
			for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ':' || r == ';' }) {
				all = append(all, driver{name, v})
			}
			break // of both, libibverbs reads the first alone
		}
	}
	names, err := l.names(dir[1:])
	if err != nil {
		i.ListErr = &fs.PathError{Op: "read", Path: dir, Err: err}
	}
	for n, name := range names {
		if n == mostDirectories || len(all) > mostDirectories {
			i.ListErr = &fs.PathError{Op: "read", Path: dir, Err: errLarge}
			break
		}
		file := dir[1:] + "/" + name
		data, err := l.read(file, 1<<16)
		if err != nil {
			if !errors.Is(err, errRegular) && !errors.Is(err, fs.ErrNotExist) {
				i.ListErr = &fs.PathError{Op: "read", Path: "/" + file, Err: err}
			}
			continue
		}
		for line := range strings.Lines(string(data)) {
			if words := strings.Fields(line); len(words) > 1 && words[0] == "driver" {
				all = append(all, driver{words[1], "/" + file})
			}
		}
	}
	return all
}

// provider finds a provider as libibverbs does: by an absolute path, in the directory of
// providers, or as the loader finds libraries.
func (l *loader) provider(i *Image, d driver) Provider {
	p := Provider{Name: path.Base(d.name), Listed: d.from}
	files := []string{d.name + i.Suffix}
	if !strings.HasPrefix(d.name, "/") {
		base := "lib" + d.name + i.Suffix
		files = append([]string{i.ProviderDir + "/" + base}, l.candidates(base)...)
	}
	for _, file := range files {
		file = strings.TrimPrefix(file, "/")
		lib, err := l.load(path.Base(file), file)
		switch {
		case err == nil:
			l.check(lib)
			p.Library, p.ABI, p.Err = lib, l.abi(lib, p.Name), nil
			return p
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errMachine) && p.Err == nil:
			p.Err = &fs.PathError{Op: "read", Path: "/" + file, Err: err}
		}
	}
	return p
}

func (l *loader) abi(lib *Library, name string) *Range {
	f, e, err := l.elf(lib.Path[1:])
	if err != nil {
		return nil
	}
	defer f.Close()
	return abiOf(e, name)
}

// providerFiles lists the files of providers, of any private ABI, in the directories where
// distributions have them.
func (l *loader) providerFiles(i *Image) (files []string) {
	dirs := []string{i.ProviderDir[1:], strings.TrimPrefix(path.Dir(i.Verbs.Path), "/") + "/libibverbs"}
	for _, dir := range l.last {
		dirs = append(dirs, dir+"/libibverbs")
	}
	for _, dir := range l.distinct(dirs, mostLinks+1) {
		files = append(files, l.match(dir, "lib*-rdmav*.so")...)
	}
	return files
}
