package machine

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/pci"
)

// level is a line that others may be below.
type level struct {
	indent int
	path   string
	numa   int
}

type parser struct {
	m       Machine
	above   []level
	columns []string // of the matrix, nil outside it
	// numas are the lines that name each NUMA node: the line "nodes" may come later.
	numas map[int]int
	line  int
	// strict: a description in a file, which is of a whole machine.
	strict bool
}

// Parse reads a description that a test has in its text. It may be shorter than those in files
// (8086:1), or of a machine that cannot be: an address twice, a width that is no number.
func Parse(text string) (*Machine, error) { return parse(text, "line %d: %w", false) }

// parse reads a description. where is the form of an error, with the number of the line.
func parse(text, where string, strict bool) (*Machine, error) {
	p := parser{strict: strict, m: Machine{Nodes: 1, Matrix: map[string]map[string]string{}}, numas: map[int]int{}}
	lines := bufio.NewScanner(strings.NewReader(text))
	for p.line = 1; lines.Scan(); p.line++ {
		line := comment.ReplaceAllString(lines.Text(), "")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := p.read(line); err != nil {
			return nil, fmt.Errorf(where, p.line, err)
		}
	}
	for node, line := range p.numas {
		if strict && node >= p.m.Nodes {
			return nil, fmt.Errorf(where, line, fmt.Errorf("numa=%d, and the machine has %d NUMA nodes (nodes N)", node, p.m.Nodes))
		}
	}
	return &p.m, lines.Err()
}

func (p *parser) read(line string) error {
	words := strings.Fields(line)
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), words[0]))
	indent := len(line) - len(strings.TrimLeft(line, " "))
	switch {
	case p.columns != nil:
		return p.row(words)
	case words[0] == "title":
		p.m.Title = rest
	case words[0] == "source":
		p.m.Source = rest
	case words[0] == "evidence":
		p.m.Evidence = rest
	case words[0] == "nodes":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 && (p.strict || n < 0) {
			return fmt.Errorf("nodes %s: must be a number of NUMA nodes", rest)
		}
		p.m.Nodes = n
	case words[0] == "dmi":
		names := append(strings.Split(rest, " | "), "", "")
		p.m.Vendor, p.m.Product, p.m.BIOS = names[0], names[1], names[2]
	case words[0] == "virtual":
		p.m.Virtual = true
	case words[0] == "cpu":
		p.m.CPU = rest
	case words[0] == "flags":
		p.m.Flags = " " + rest
	case words[0] == "kernel":
		p.m.Kernel = rest
	case words[0] == "dwords":
		p.m.Dwords = &rest
	case words[0] == "override":
		p.m.Override = rest
	case words[0] == "arm":
		p.m.Arm = true
	case words[0] == "matrix":
		return p.matrix(words[1:])
	case strings.HasPrefix(words[0], "pci"):
		return p.rootBus(indent, words)
	default:
		return p.function(indent, words)
	}
	return nil
}

func (p *parser) matrix(columns []string) error {
	for _, name := range columns {
		if p.strict && !p.has(name) {
			return fmt.Errorf("matrix: no NIC is called %s (rdma=)", name)
		}
	}
	p.columns = columns
	return nil
}

func (p *parser) row(words []string) error {
	switch {
	case p.strict && !p.has(words[0]):
		return fmt.Errorf("matrix: no GPU is called %s (name=)", words[0])
	case len(words) != len(p.columns)+1:
		return fmt.Errorf("%d cells below %d columns", len(words)-1, len(p.columns))
	}
	row := map[string]string{}
	for i, cell := range words[1:] {
		row[p.columns[i]] = cell
	}
	p.m.Matrix[words[0]] = row
	return nil
}

// has reports whether a function has a name that matrices use.
func (p *parser) has(name string) bool {
	return slices.ContainsFunc(p.m.Functions, func(f Function) bool {
		return name == f.Attrs["name"] || name == f.Attrs["rdma"] || name == f.Address
	})
}

// comment is one to the end of a line. A # within a word is none: NVIDIA/nccl#1343.
var comment = regexp.MustCompile(`(^|\s)#.*`)

// The forms of values.
var (
	text    = regexp.MustCompile(`^.+$`)
	number  = regexp.MustCompile(`^[0-9]+$`)
	decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	hex     = regexp.MustCompile(`^[0-9a-f]+$`)
	ids     = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4}$`)
	short   = regexp.MustCompile(`^[0-9a-f]{1,4}:[0-9a-f]{1,4}$`)
	address = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	root    = regexp.MustCompile(`^pci[0-9a-f]{4,}:[0-9a-f]{2}$`)
)

// ofRoot are the attributes of a root bus, ofFunction those of a function.
var (
	ofRoot     = map[string]*regexp.Regexp{"numa": regexp.MustCompile(`^(-1|[0-9]+)$`), "path": text}
	ofFunction = map[string]*regexp.Regexp{
		"numa": ofRoot["numa"], "sub": ids, "name": text, "rdma": text, "net": text, "aux": text, "physfn": address,
		"driver": text, "port": regexp.MustCompile(`^[A-Z_]+$`), "rate": decimal, "layer": text,
		"acs": regexp.MustCompile(`^([0-9a-f]{4}|denied)$`), "ats": regexp.MustCompile(`^(on|off|none)$`),
		"width": number, "group": regexp.MustCompile(`^([0-9]+|none)$`), "vpd": text, "vram": number, "bar": number,
		"resize": hex, "link": text, "gts": decimal,
	}
)

func (p *parser) attributes(words []string, known map[string]*regexp.Regexp) (map[string]string, error) {
	attrs := map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not key=value", word)
		}
		switch form := known[key]; {
		case form == nil:
			return nil, fmt.Errorf("%q: no attribute has the name %q (test/machine/machine.go lists them)", word, key)
		case p.strict && !form.MatchString(value):
			return nil, fmt.Errorf("%q: %q is no value of %s (test/machine/machine.go lists them)", word, value, key)
		}
		attrs[key] = strings.ReplaceAll(value, "~", " ")
	}
	return attrs, nil
}

// numa is the NUMA node of a line, or that of the line above.
func (p *parser) numa(attrs map[string]string, above int) (int, error) {
	text, ok := attrs["numa"]
	if !ok {
		return above, nil
	}
	node, err := strconv.Atoi(text)
	if _, seen := p.numas[node]; !seen {
		p.numas[node] = p.line
	}
	return node, err
}

func (p *parser) rootBus(indent int, words []string) error {
	if p.strict && !root.MatchString(words[0]) {
		return fmt.Errorf("%q is no root bus, such as pci0000:15", words[0])
	}
	attrs, err := p.attributes(words[1:], ofRoot)
	if err != nil {
		return err
	}
	numa, err := p.numa(attrs, pci.None)
	if err != nil {
		return err
	}
	dir := "devices"
	if attrs["path"] != "" {
		dir += "/" + attrs["path"]
	}
	p.above = []level{{indent, dir + "/" + words[0], numa}}
	return nil
}

func (p *parser) function(indent int, words []string) error {
	for len(p.above) > 0 && p.above[len(p.above)-1].indent >= indent {
		p.above = p.above[:len(p.above)-1]
	}
	if len(p.above) == 0 || len(words) < 3 {
		return fmt.Errorf("%q is below nothing, or lacks class or ids", words[0])
	}
	if p.strict && !address.MatchString(words[0]) {
		return fmt.Errorf("%q is no address, such as 0000:18:00.0", words[0])
	}
	attrs, err := p.attributes(words[3:], ofFunction)
	if err != nil {
		return err
	}
	parent := p.above[len(p.above)-1]
	f := Function{Address: words[0], Path: parent.path + "/" + words[0], Class: words[1], Attrs: attrs}
	if class, ok := classes[words[1]]; ok {
		f.Class = class
	}
	if !hex.MatchString(f.Class) || len(f.Class) != 6 {
		return fmt.Errorf("%q: %q is no class", words[0], words[1])
	}
	if !ids.MatchString(words[2]) && (p.strict || !short.MatchString(words[2])) {
		return fmt.Errorf("%q: %q is no vendor:device of four hexadecimal digits each", words[0], words[2])
	}
	f.Vendor, f.Device, _ = strings.Cut(words[2], ":")
	f.SubVendor, f.Sub = "0000", "0000"
	if sub, ok := attrs["sub"]; ok {
		f.SubVendor, f.Sub, _ = strings.Cut(sub, ":")
	}
	if text, ok := attrs["rate"]; ok && rates[text] == "" {
		return fmt.Errorf("%q: no port has the rate %q", words[0], text)
	}
	if f.NUMA, err = p.numa(attrs, parent.numa); err != nil {
		return err
	}
	if p.strict && slices.ContainsFunc(p.m.Functions, func(of Function) bool { return of.Address == f.Address }) {
		return fmt.Errorf("%q is there twice", f.Address)
	}
	p.m.Functions = append(p.m.Functions, f)
	p.above = append(p.above, level{indent, f.Path, f.NUMA})
	return nil
}
