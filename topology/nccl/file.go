package nccl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"

	"gdr-features/source/pci"
)

// File is an NCCL topology file, which NCCL believes rather than sysfs where a machine has one, as
// virtual machines do (src/graph/xml.cc, ncclTopoGetXmlFromFile).
type File struct {
	system *Element
	pci    map[string]*Element // the first of each bus id
	nets   map[string]*Element // what the first net of each name belongs to, a pci or a cpu

	// Name is the file's path, for evidence; its reader sets it.
	Name string

	refused map[dialect]refusal
}

// RefusedFor is why the library of some GPUs would not start with this file, nil where it would.
func (f *File) RefusedFor(gpus []*pci.Function) error { return f.refused[dialectOf(gpus)].why }

// MaxFile is the largest topology file read, in bytes: many times the largest in use.
const MaxFile = 4 << 20

// Bounds of a topology file, far above what NCCL itself accepts.
const (
	maxNested   = 64
	maxElements = 1 << 16
)

// ParseFile reads the elements and attributes that NCCL looks at. A file without any pci element
// is an error. One that NCCL refuses is read as far as it is XML; see File.RefusedFor.
func ParseFile(data []byte) (*File, error) {
	r := reader{data: bytes.Clone(data), refused: map[dialect]refusal{}}
	f := &File{pci: map[string]*Element{}, nets: map[string]*Element{}, refused: r.refused}
	r.skipComments()
	open, count := []*Element{{}}, 0
	dec := xml.NewDecoder(bytes.NewReader(r.data))
	for {
		from := int(dec.InputOffset())
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF) && len(f.pci) == 0:
			return nil, errors.New("no pci element in it")
		case errors.Is(err, io.EOF):
			return f, nil
		case err != nil:
			return nil, err
		}
		above := open[len(open)-1]
		r.see(token, from, int(dec.InputOffset()), above.name)
		switch t := token.(type) {
		case xml.StartElement:
			if count++; count > maxElements || len(open) > maxNested {
				return nil, errors.New("more elements than a machine has")
			}
			open = append(open, f.add(above, t))
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// handlers are the elements that NCCL reads, by those they are in (ncclTopoXmlLoadSystem).
var handlers = map[string][]string{
	"": {"system"}, "system": {"cpu"}, "cpu": {"pci", "nic"}, "pci": {"pci", "gpu", "nic", "pcilink"},
	"gpu": {"nvlink", "c2c"}, "nic": {"net"},
}

const ignored = "other"

// add puts an element below another. What NCCL ignores is in none, nor is what it contains.
func (f *File) add(above *Element, t xml.StartElement) *Element {
	e := &Element{name: t.Name.Local, parent: above}
	if !slices.Contains(handlers[above.name], e.name) || e.name == "system" && f.system != nil { // NCCL uses the first
		return &Element{name: ignored}
	}
	for _, a := range t.Attr {
		if IsAttribute(a.Name.Local) {
			e.setIfUnset(a.Name.Local, a.Value)
		}
	}
	above.subs = append(above.subs, e)
	switch busid, name := e.attr("busid"), e.attr("name"); {
	case e.name == "system":
		f.system = e
	case e.name == "pci" && f.pci[busid] == nil:
		f.pci[busid] = e
	case e.name == "net" && name != "" && f.nets[name] == nil:
		f.nets[name] = above.parent
	}
	return e
}

// attributes are NCCL's attributes that describe a machine without identifying it, in its order.
var attributes = [...]string{
	"host_hash", "numaid", "busid", "affinity", "arch", "class", "vendor", "device", "subsystem_vendor", "subsystem_device",
	"familyid", "modelid", "link_speed", "link_width", "version", "name", "dev", "port", "speed", "latency", "maxconn",
	"gdr", "sm", "rank", "count", "target", "tclass",
}

// IsAttribute reports whether ParseFile looks at attributes of this name, "busid" or
// "numaid". NCCL reads others as well, "guid" of a NIC among them.
func IsAttribute(name string) bool { return slices.Contains(attributes[:], name) }

// Net returns the pci or cpu that the first net of a name belongs to. A nil file has none.
func (f *File) Net(name string) *Element {
	if f == nil {
		return nil
	}
	return f.nets[name]
}

// Find returns the first pci element of a function, nil for none. The bus id must
// be in lower case, as NCCL wants it. A NIC may also be listed as function 0 of its
// device, or as device 0, function 0 of its bus, where NCCL's IB transport looks for it.
// Names of RDMA devices do not count: they come and go with the driver, and hardware labels
// rest on this. A nil file has none.
func (f *File) Find(fn *pci.Function) *Element {
	if f == nil {
		return nil
	}
	a := fn.Address
	if e := f.pci[a.String()]; e != nil || fn.GPU != nil || ByPlugin(fn) {
		return e
	}
	a.Function = 0
	if e := f.pci[a.String()]; e != nil {
		return e
	}
	a.Device = 0
	return f.pci[a.String()]
}

// FindUnmerged reports whether NCCL finds a NIC in a file with NCCL_IB_MERGE_VFS=0 alone: at
// function 0 of its own device, and that is not device 0, where it looks by default
// (src/transport/net_ib/init.cc, ncclIbGetPciPath). A nil file has none.
func (f *File) FindUnmerged(fn *pci.Function) bool {
	a := fn.Address
	a.Function = 0
	return f != nil && a.Device != 0 && f.pci[a.String()] != nil && f.pci[a.String()] == f.Find(fn)
}

// Path rates two elements of a file by their places alone, as a switch of any chip is one. A file
// has switches and NUMA nodes but no host bridges: below different switches of one CPU is PHB.
func (e *Element) Path(o *Element) Path {
	if e == o || e.parent == o.parent && e.parent.name == "pci" {
		return PIX
	}
	under := o.parent
	if o.name == "cpu" { // a net may belong to one
		under = o
	}
	above := e.parent
	for !slices.Contains(under.path(), above) {
		above = above.parent
	}
	return map[string]Path{"pci": PXB, "cpu": PHB, "system": SYS}[above.name]
}

// path lists e and what is above it.
func (e *Element) path() []*Element {
	if e == nil {
		return nil
	}
	return append(e.parent.path(), e)
}
