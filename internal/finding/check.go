package finding

import (
	"slices"
	"strings"

	"gdr-features/internal/sanitize"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
)

// Check is one thing that is looked at. T is what it judges: a node, a Pod.
type Check[T any] struct {
	Name string
	// Sources are the files it is read from, names, patterns and directories, and Facts are
	// those of whose files a record is kept. Files of evidence beyond them are added.
	Sources []string
	Facts   []kmod.Fact
	// Codes are all that Judge may give.
	Codes []Code
	Judge func(T) Said
}

// Find makes the finding of a check; found is false where it says nothing. The files of a fact
// are those that files names; nil where the check has no facts. Texts from the machine are made
// safe for a terminal.
func (c *Check[T]) Find(of T, files func(kmod.Fact) []string) (f Finding, found bool) {
	s := c.Judge(of)
	if !s.Found() {
		return Finding{}, false
	}
	seen := Unique(slices.Concat(s.About.Evidence, s.Evidence))
	f = s.Finding
	f.Check, f.Detail = c.Name, sanitize.Terminal(f.Detail)
	f.Fix, f.Commands = commandsIn(sanitized(f.Fix))
	f.Sources, f.Evidence = sanitized(c.read(files, seen)), sanitized(seen)
	return f, true
}

// commandsIn returns steps without backquotes, and what stood between them.
func commandsIn(steps []string) (plain, commands []string) {
	for i, step := range steps {
		parts := strings.Split(step, "`")
		for at := 1; at < len(parts)-1; at += 2 {
			commands = append(commands, parts[at])
		}
		steps[i] = strings.Join(parts, "")
	}
	return steps, Unique(commands)
}

// CodesOf lists the codes that the checks of a name may give; ok is false where none has it.
func CodesOf[T any](checks []Check[T], name string) (codes []Code, ok bool) {
	for i := range checks {
		if checks[i].Name == name {
			codes, ok = append(codes, checks[i].Codes...), true
		}
	}
	return codes, ok
}

// read lists the files that the check is read from, and any further files of evidence.
func (c *Check[T]) read(files func(kmod.Fact) []string, evidence []string) []string {
	all := slices.Clone(c.Sources)
	for _, fact := range c.Facts {
		all = append(all, Map(files(fact), pattern)...)
	}
	for _, seen := range evidence {
		file, _, _ := strings.Cut(seen, "=")
		if file = pattern(file); !slices.ContainsFunc(all, func(source string) bool { return covers(source, file) }) {
			all = append(all, file)
		}
	}
	return append([]string{}, Unique(all)...)
}

// pattern folds files that there are many of: those of PCI functions and IOMMU groups,
// and the directories of peer memory clients.
func pattern(file string) string {
	for _, dir := range [...]string{pci.Devices + "/", platform.Groups + "/"} {
		if _, name, ok := strings.Cut(strings.TrimPrefix(file, dir), "/"); ok && strings.HasPrefix(file, dir) {
			return dir + "*/" + name
		}
	}
	const clients = "/memory_peers"
	if dir, _, ok := strings.Cut(file, clients+"/"); ok {
		return dir + clients
	}
	return file
}

// covers reports whether a file is, or is below, a source.
func covers(source, file string) bool { return file == source || strings.HasPrefix(file, source+"/") }

// sanitized returns the texts made safe for a terminal, nil for nil.
func sanitized(all []string) []string {
	safe := slices.Clone(all)
	for i := range safe {
		safe[i] = sanitize.Terminal(safe[i])
	}
	return safe
}
