package topology

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gdr-features/source/pci"
)

// File is an NCCL topology file: what NCCL takes for the truth where a machine
// has one, as virtual machines do (src/graph/xml.cc, ncclTopoGetXmlFromFile).
type File struct {
	byAddress map[pci.Address]filePlace
}

// filePlace is the place of one element: its CPU, then the switches above it,
// the topmost first.
type filePlace struct {
	cpu      string
	switches []ncclSwitch
}

// MaxFile is the largest topology file read, in bytes: many times the largest in
// use.
const MaxFile = 4 << 20

// Bounds of a topology file; the largest that NCCL itself accepts is far below.
const (
	maxDepth    = 64
	maxElements = 1 << 16
)

// ParseFile reads the elements cpu and pci; others are passed over. A file without any pci element is an error.
func ParseFile(data []byte) (*File, error) {
	f := &File{byAddress: map[pci.Address]filePlace{}}
	var stack []element
	dec := xml.NewDecoder(bytes.NewReader(data))
	for count := 0; ; {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF) && len(f.byAddress) == 0:
			return nil, errors.New("no pci element in it")
		case errors.Is(err, io.EOF):
			return f, nil
		case err != nil:
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if count++; count > maxElements || len(stack) >= maxDepth {
				return nil, errors.New("more elements than a machine has")
			}
			e := newElement(t)
			if err := f.add(e, stack); err != nil {
				return nil, err
			}
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
}

// element is what matters of an XML element.
type element struct {
	name  string
	attrs map[string]string
}

func newElement(t xml.StartElement) element {
	e := element{t.Name.Local, make(map[string]string, len(t.Attr))}
	for _, a := range t.Attr {
		e.attrs[a.Name.Local] = a.Value
	}
	return e
}

// add notes the place of a pci element.
func (f *File) add(e element, above []element) error {
	if e.name != "pci" {
		return nil
	}
	a, err := pci.ParseAddress(e.attrs["busid"])
	if err != nil {
		return fmt.Errorf("pci element: busid: %w", err)
	}
	f.byAddress[a] = placeBelow(above)
	return nil
}

func placeBelow(above []element) filePlace {
	p := filePlace{cpu: "-1"}
	for _, e := range above {
		switch e.name {
		case "cpu":
			p.cpu = e.attrs["host_hash"] + "/" + e.attrs["numaid"]
		case "pci":
			p.switches = append(p.switches, ncclSwitch{name: strings.ToLower(e.attrs["busid"]), ids: e.ids()})
		}
	}
	return p
}

// ids joins the four ids as NCCL does; what is missing adds nothing.
func (e element) ids() uint64 {
	var ids uint64
	for _, key := range [...]string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
		n, err := strconv.ParseUint(e.attrs[key], 0, 16)
		if err != nil {
			n = 0
		}
		ids = ids<<16 | n
	}
	return ids
}

// find looks for a function by its address, for an adapter also by the one NCCL
// merges its ports and virtual functions into. Names of RDMA devices do not
// count: they come and go with the driver.
func (f *File) find(fn *pci.Function) (filePlace, bool) {
	if p, ok := f.byAddress[fn.Address]; ok {
		return p, true
	}
	if fn.Kind() == pci.GPU {
		return filePlace{}, false
	}
	merged := fn.Address
	merged.Function = 0
	if p, ok := f.byAddress[merged]; ok {
		return p, true
	}
	merged.Device = 0
	p, ok := f.byAddress[merged]
	return p, ok
}

// levels rates two places of the file in both vocabularies. The file knows
// switches and NUMA nodes and no host bridges: two switches apart below one CPU
// is PHB in both.
func (p filePlace) levels(q filePlace) (level, nccl Level) {
	return p.nccl(false).level(q.nccl(false)), p.nccl(true).level(q.nccl(true))
}

// nccl gives the place as NCCL has it, with or without flattening.
func (p filePlace) nccl(flat bool) ncclPlace {
	place := ncclPlace{known: true, switches: p.switches, cpu: p.cpu}
	if flat {
		place.switches, _ = flatten(p.switches)
	}
	return place
}

// numaText names the CPU of a NUMA node as a topology file does; -1 is one too.
func numaText(n int) string {
	if n == pci.Unread {
		return ""
	}
	return "/" + strconv.Itoa(n)
}
