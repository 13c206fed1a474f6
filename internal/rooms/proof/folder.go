package proof

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/pci"
)

// File is a file of a folder that the script wrote, or an output of perftest. Problem is why it
// could not be read.
type File struct{ Name, Text, Problem string }

// transfer is what is known of one transfer.
type transfer struct {
	name           string
	server, client side
	step           *listed // nil where the plan does not have it
}

// folder is all transfers, by name, and the plan.
type folder struct {
	transfers []*transfer
	plan      plan
	notes     []string
}

// plan is the list of steps that the script wrote.
type plan struct {
	given, whole bool
	steps        []listed
	lacks, notes []string
}

// listed is a step of the list. gpu is "" for a baseline.
type listed struct{ name, gpu, nic, way string }

func (s *listed) line() string {
	return strings.Join([]string{planStep, s.name, cmp.Or(s.gpu, "-"), s.nic, s.way}, " ")
}

// open sorts files by the transfers that they are of.
func open(files []File) folder {
	var f folder
	by := map[string]*transfer{}
	var bare []File // without a side in the name
	for _, file := range files {
		name := strings.TrimSuffix(file.Name, ".txt")
		if file.Problem != "" {
			f.notes = append(f.notes, file.Name+": "+file.Problem)
			file.Text = ""
		}
		if name == planFile {
			f.plan.read(file.Text)
			continue
		}
		base, what, _ := cutLast(name)
		if !slices.Contains([]string{"cmd", "out", "err", "rc", "json"}, what) {
			if name != "version" {
				bare = append(bare, File{Name: name + ".out", Text: file.Text})
			}
			continue
		}
		if of, which, ok := cutLast(base); ok && (which == "s" || which == "c") || what == "json" {
			if what == "json" && which != "s" && which != "c" {
				of, which = base, "c"
			}
			f.of(by, of).take(which == "s", what, file.Text)
			continue
		}
		bare = append(bare, File{Name: name, Text: file.Text})
	}
	for _, file := range bare {
		base, what, _ := cutLast(file.Name)
		f.of(by, base).take(listens(bare, base), what, file.Text)
	}
	for _, t := range f.transfers {
		t.step = f.plan.find(t.name)
	}
	slices.SortFunc(f.transfers, func(a, b *transfer) int { return strings.Compare(a.name, b.name) })
	return f
}

// listens: an output of which the name has no side is that of a server.
func listens(files []File, base string) bool {
	return slices.ContainsFunc(files, func(f File) bool {
		return f.Name == base+".out" && strings.Contains(f.Text, "* Waiting for client to connect")
	})
}

func cutLast(name string) (before, after string, found bool) {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return name, "", false
	}
	return name[:at], name[at+1:], true
}

func (f *folder) of(by map[string]*transfer, name string) *transfer {
	t := by[name]
	if t == nil {
		t = &transfer{name: name}
		by[name] = t
		f.transfers = append(f.transfers, t)
	}
	return t
}

// take adds a file of a side.
func (t *transfer) take(server bool, what, text string) {
	s := &t.client
	if server {
		s = &t.server
	}
	switch what {
	case "cmd":
		s.asked = strings.Fields(text)
	case "rc":
		s.ended = strings.TrimSpace(text)
		s.given = s.given || s.ended != ""
	case "json":
		s.readJSON(text)
	default:
		s.read(text)
	}
}

// read reads the list. What is torn is not whole; lines that are not known make it so, too.
func (p *plan) read(text string) {
	p.given = true
	begun := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		words := strings.Fields(line)
		switch word, rest, _ := strings.Cut(line, " "); {
		case line == planBegins && !begun:
			begun = true
		case !begun || p.whole:
			p.whole = false
			return
		case line == planEnds:
			p.whole = true
		case word == planStep && len(words) == 5:
			s := listed{words[1], words[2], words[3], words[4]}
			if s.gpu == "-" {
				s.gpu = ""
			}
			p.steps = append(p.steps, s)
		case word == planLacks:
			p.lacks = append(p.lacks, rest)
		case word == planNote:
			p.notes = append(p.notes, rest)
		default:
			return
		}
	}
}

// find is the step of a transfer: its own, or the one that it followed.
func (p *plan) find(name string) *listed {
	for i := range p.steps {
		if s := &p.steps[i]; name == s.name || name == s.name+serverAlone || name == s.name+clientAlone {
			return s
		}
	}
	return nil
}

// busOf is the bus of an address as perftest prints it for ROCm, "" where the bus or the plan does
// not tell which GPU it is.
func (p *plan) busOf(gpu string) string {
	address, err := pci.ParseAddress(gpu)
	if err != nil || !p.whole {
		return ""
	}
	for _, s := range p.steps {
		if other, err := pci.ParseAddress(s.gpu); err == nil && other != address && other.Bus == address.Bus {
			return ""
		}
	}
	return strconv.FormatUint(uint64(address.Bus), 16)
}
