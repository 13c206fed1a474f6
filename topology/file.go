package topology

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/pci"
)

// File is an NCCL topology file, which NCCL believes rather than sysfs where a
// machine has one, as virtual machines do (src/graph/xml.cc,
// ncclTopoGetXmlFromFile).
type File struct {
	system *element
	byBus  map[string]*element // the first pci element of each bus id
	nets   map[string]*element // what the first net of each name belongs to, a pci or a cpu; nil for unknown
	count  int                 // elements of any kind
	begun  bool                // a system element was read

	// Name is the file's path, for evidence; its reader sets it.
	Name string
	// Refused is why NCCL would not start with this file, nil where it would.
	Refused error
}

// MaxFile is the largest topology file read, in bytes: many times the largest in
// use.
const MaxFile = 4 << 20

// Bounds of a topology file, far above what NCCL itself accepts.
const (
	maxDepth    = 64
	maxElements = 1 << 16
)

// ParseFile reads the elements cpu and pci, and the names of nets, and ignores others. A file
// without any pci element is an error. A file that NCCL refuses is read as far as
// it is XML; see File.Refused.
func ParseFile(data []byte) (*File, error) {
	f := &File{system: &element{tag: "system"}, byBus: map[string]*element{}, nets: map[string]*element{}, Refused: Refused(data)}
	open := []*element{{tag: "document"}}
	dec := xml.NewDecoder(bytes.NewReader(withoutComments(data)))
	for {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF) && len(f.byBus) == 0:
			return nil, errors.New("no pci element in it")
		case errors.Is(err, io.EOF):
			return f, nil
		case err != nil:
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if f.count++; f.count > maxElements || len(open) > maxDepth {
				return nil, errors.New("more elements than a machine has")
			}
			open = append(open, f.add(open[len(open)-1], t))
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// add puts an element below its parent and returns it, as the parent of what it
// contains. What an ignored element contains is ignored too.
func (f *File) add(above *element, t xml.StartElement) *element {
	attrs := make(map[string]string, len(t.Attr))
	for _, a := range t.Attr {
		attrs[a.Name.Local] = a.Value
	}
	e := &element{tag: t.Name.Local, text: attributesOf(t), parent: above}
	switch {
	case e.tag == "system" && above.tag == "document" && !f.begun: // NCCL uses the first
		f.begun = true
		return f.system
	case e.tag == "cpu" && above == f.system:
		e.key = attrs["numaid"]
		e.lacks, e.needs, e.incomplete = missingOfCPU(attrs)
	case e.tag == "pci" && (above.tag == "cpu" || above.tag == "pci"):
		e.key, e.class, e.ids = attrs["busid"], attrs["class"], joinIDs(attrs)
		e.needs = missing(attrs, "class", "link_width", "link_speed")
		e.lacks, e.lacksIDs = e.needs != "", missing(attrs, idAttributes[:]...) != ""
		if _, ok := f.byBus[e.key]; !ok {
			f.byBus[e.key] = e
		}
	case e.tag == "nic" && above.tag == "pci" && above.hasNIC:
		return &element{tag: "nic"} // NCCL's first process takes the nets of the first nic alone, others those of all
	case e.tag == "nic" && (above.tag == "cpu" || above.tag == "pci"):
		above.hasNIC = true
		return e
	case e.tag == "net" && above.tag == "nic":
		f.name(attrs["name"], above.parent)
		return &element{tag: "other"}
	default:
		return &element{tag: "other"}
	}
	above.below = append(above.below, e)
	return e
}

// name keeps the name of a net, which is that of an RDMA device, with the pci or cpu that it
// belongs to. NCCL uses the first of several.
func (f *File) name(net string, of *element) {
	if _, ok := f.nets[net]; ok || net == "" {
		return
	}
	f.nets[net] = of
	if of != nil {
		of.nets = append(of.nets, net)
	}
}

// net returns what a net belongs to; nil where that is not known. A nil file has none.
func (f *File) net(name string) (of *element, ok bool) {
	if f == nil {
		return nil, false
	}
	of, ok = f.nets[name]
	return of, ok
}

// missing returns the first attribute that is not there, "" for none.
func missing(attrs map[string]string, names ...string) string {
	for _, name := range names {
		if _, ok := attrs[name]; !ok {
			return name
		}
	}
	return ""
}

// missingOfCPU tells whether NCCL adds attributes to a cpu, and names one that it needs, and
// one that it needs and does not add, as modelid where familyid is there (src/graph/xml.cc,
// ncclTopoGetXmlFromCpu; src/graph/topo.cc, ncclTopoAddCpu).
func missingOfCPU(attrs map[string]string) (lacks bool, needs, incomplete string) {
	added, needed := []string{"affinity", "arch"}, []string{"arch"}
	incomplete = missing(attrs, "numaid")
	if attrs["arch"] == "x86_64" {
		added, needed = append(added, "vendor", "familyid"), append(needed, "vendor")
		switch attrs["vendor"] {
		case "GenuineIntel", "CentaurHauls", "  Shanghai  ":
			needed = append(needed, "familyid", "modelid")
			if _, ok := attrs["familyid"]; ok && incomplete == "" {
				incomplete = missing(attrs, "modelid")
			}
		}
	}
	return missing(attrs, added...) != "", missing(attrs, needed...), incomplete
}

// attributes are NCCL's attributes that describe a machine without identifying it.
var attributes = [...]string{
	"host_hash", "numaid", "busid", "vendor", "device", "subsystem_vendor", "subsystem_device",
	"version", "affinity", "arch", "familyid", "modelid", "class", "link_speed", "link_width",
	"name", "dev", "port", "speed", "latency", "maxconn", "gdr", "sm", "rank", "count", "target", "tclass",
}

// IsAttribute reports whether ParseFile looks at attributes of this name, "busid" or
// "numaid". NCCL reads others as well, "guid" of a NIC among them.
func IsAttribute(name string) bool { return slices.Contains(attributes[:], name) }

// attributesOf identifies an element by its attributes that NCCL knows, but for
// host_hash, which every process overwrites.
func attributesOf(t xml.StartElement) string {
	var b strings.Builder
	for _, a := range t.Attr {
		if a.Name.Local != "host_hash" && IsAttribute(a.Name.Local) {
			fmt.Fprintf(&b, "%s=%q ", a.Name.Local, a.Value)
		}
	}
	return b.String()
}

var idAttributes = [...]string{"vendor", "device", "subsystem_vendor", "subsystem_device"}

// joinIDs joins the four ids as NCCL does (src/graph/topo.cc, ncclTopoGetIntDevice);
// a missing one counts as 0.
func joinIDs(attrs map[string]string) uint64 {
	var ids uint64
	for _, key := range idAttributes {
		n, err := strconv.ParseUint(attrs[key], 0, 16)
		if err != nil {
			n = 0
		}
		ids = ids<<16 | n
	}
	return ids
}

// withoutComments blanks comments, and keeps their line ends. To NCCL a comment ends at the
// first "-->", whatever it contains; XML forbids two hyphens in it.
func withoutComments(data []byte) []byte {
	blank := func(c rune) rune {
		if c == '\n' {
			return c
		}
		return ' '
	}
	return regexp.MustCompile(`(?s)<!--.*?-->`).ReplaceAllFunc(data, func(comment []byte) []byte { return bytes.Map(blank, comment) })
}

// find returns the first pci element of a function, nil for none. The bus id must be
// in lower case, as NCCL wants it. A NIC may also be listed as function 0 of its
// device, or as device 0, function 0 of its bus, where NCCL's IB transport looks for it.
// Names of RDMA devices do not count: they come and go with the driver, and hardware labels
// rest on this. See builder.placeOf. A nil file has none.
func (f *File) find(fn *pci.Function) *element {
	if f == nil {
		return nil
	}
	a := fn.Address
	if e := f.byBus[a.String()]; e != nil || fn.GPU != nil || byPlugin(fn) {
		return e
	}
	a.Function = 0
	if e := f.byBus[a.String()]; e != nil {
		return e
	}
	a.Device = 0
	return f.byBus[a.String()]
}

// level rates two elements of a file. A file has switches and NUMA nodes but no host
// bridges: below different switches of one CPU is PHB.
func (e *element) level(o *element) Level {
	switch {
	case e == o, e.parent == o.parent && e.parent.tag == "pci":
		return PIX
	}
	var above []*element
	for up := e.parent; up != nil && up.tag != "system"; up = up.parent {
		above = append(above, up)
	}
	up := o.parent
	if o.tag == "cpu" { // a net may belong to one
		up = o
	}
	for ; up != nil; up = up.parent {
		switch {
		case !slices.Contains(above, up):
		case up.tag == "pci":
			return PXB
		default:
			return PHB
		}
	}
	return SYS
}
