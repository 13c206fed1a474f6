package proof

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
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
	step           *Step // of the plan in the folder; nil where it is not there
}

func (t *transfer) sides() [2]*side { return [...]*side{&t.server, &t.client} }

// folder is all transfers, by name, and the plan.
type folder struct {
	transfers []*transfer
	by        map[string]*transfer
	plan      plan
	notes     []string
}

// plan is the list of steps that the script wrote.
type plan struct {
	given, whole, lacks bool
	steps               []Step // of each what a line tells
	notes               []string
}

// line is a step in the list.
func (s *Step) line() string {
	return fmt.Sprintf("%s %s %s %s %s %g %g\n", planStep, s.Name, cmp.Or(s.GPU, none), s.NIC, s.Way, s.Rates.Port, s.Rates.PCIe)
}

// none stands in the list and in tables for what is not there.
const none = "-"

// nameIs are the parts of a file's name: the transfer, the side, and what it has.
var nameIs = regexp.MustCompile(`^(.+?)(?:\.([sc]))?\.(cmd|out|err|rc|json)$`)

// open sorts files by the transfers that they are of. Where the name has no side, JSON is the client's,
// and all else the server's if its output says that it waits. What has another name is an output.
func open(files []File) *folder {
	f := &folder{by: map[string]*transfer{}}
	type part struct{ of, side, what, text string }
	var parts []part
	waits := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name, ".txt")
		if file.Problem != "" {
			f.notes = append(f.notes, file.Name+": "+file.Problem)
			file.Text = ""
		}
		switch name {
		case "version":
			continue
		case planFile:
			f.plan.read(file.Text)
			continue
		}
		p := part{of: name, what: "out", text: file.Text}
		if m := nameIs.FindStringSubmatch(name); m != nil {
			p.of, p.side, p.what = m[1], m[2], m[3]
		}
		waits[p.of] = waits[p.of] || strings.Contains(p.text, "* Waiting for client to connect")
		parts = append(parts, p)
	}
	for _, p := range parts {
		t := f.by[p.of]
		if t == nil {
			t = &transfer{name: p.of, server: side{name: "server"}, client: side{name: "client"}, step: f.plan.find(p.of)}
			f.by[p.of] = t
		}
		if p.side == "s" || p.side == "" && p.what != "json" && waits[p.of] {
			t.server.take(p.what, p.text)
		} else {
			t.client.take(p.what, p.text)
		}
	}
	f.transfers = slices.SortedFunc(maps.Values(f.by), func(a, b *transfer) int { return strings.Compare(a.name, b.name) })
	return f
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
		case word == planStep && len(words) == 7:
			p.steps = append(p.steps, Step{
				Name: words[1], GPU: strings.TrimPrefix(words[2], none), NIC: words[3], Way: Way(words[4]),
				Rates: Rates{positive(words[5]), positive(words[6])},
			})
		case word == planLacks:
			p.lacks, p.notes = true, append(p.notes, "not measured: "+rest)
		case word == planNote:
			p.notes = append(p.notes, "not used: "+rest)
		default:
			return
		}
	}
}

// find is the step of a transfer: its own, or the one that it followed.
func (p *plan) find(name string) *Step {
	whole := strings.TrimSuffix(strings.TrimSuffix(name, serverAlone), clientAlone)
	at := slices.IndexFunc(p.steps, func(s Step) bool { return s.Name == name || s.Name == whole })
	if at < 0 {
		return nil
	}
	return &p.steps[at]
}

// busOf is the bus of an address as perftest prints it for ROCm, "" where the bus or the plan does
// not tell which GPU it is.
func (p *plan) busOf(gpu string) string {
	address, err := pci.ParseAddress(gpu)
	if err != nil || !p.whole {
		return ""
	}
	for i := range p.steps {
		if other, err := pci.ParseAddress(p.steps[i].GPU); err == nil && other != address && other.Bus == address.Bus {
			return ""
		}
	}
	return strconv.FormatUint(uint64(address.Bus), 16)
}
