package nccl

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// maxNodes is how many elements NCCL holds, those it adds itself included (src/graph/topo.h,
// NCCL_TOPO_XML_MAX_NODES).
const maxNodes = 256

// maxValue is the longest value that NCCL's reader accepts, in bytes (src/graph/xml.h, MAX_STR_LEN
// with its end).
const maxValue = 253

// What NCCL's reader takes for a tag (src/graph/xml.cc, xmlGetNode, xmlGetToken, xmlGetValue): names
// hold any byte but those that end them, and exactly one space is in front of an attribute.
var (
	tagForm       = regexp.MustCompile(`^<(?:/([^= >/\n\r]*)>|([^= >/\n\r]*)((?: [^= >/\n\r]*(?:=(?:"[^"]*"|'[^']*'))?)*)(/[^= >/\n\r]*)?>)`)
	attributeForm = regexp.MustCompile(` ([^= >/\n\r]*)(?:="([^"]*)"|='([^']*)')?`)
	// A comment's first word is read as a name (xmlSkipComment).
	commentForm = regexp.MustCompile(`(?s)^<!--.*?-->`)
	valueForm   = regexp.MustCompile(`^<!--[^= >/\n\r]*=`)
)

// Refused says why NCCL would not start with a topology file, nil where it would. Its reader
// (src/graph/xml.cc) is no XML parser: it wants one system of version 1, and accepts only spaces
// and line ends between tags, and only spaces within them.
func Refused(data []byte) error {
	r := reader{rest: data}
	if err := r.loadSub("", 0); err != nil {
		read := data[:len(data)-len(r.rest)]
		return fmt.Errorf("line %d: %w", 1+bytes.Count(read, []byte{'\n'}), err)
	}
	return nil
}

type reader struct {
	rest  []byte
	count int // elements that NCCL keeps
}

// tag is a tag of a file, the zero value at its end.
type tag struct {
	name           string
	attributes     []byte
	closes, single bool // </a>, <a/>
}

// getNode is xmlGetNode (src/graph/xml.cc): it reads the next tag.
func (r *reader) getNode() (t tag, end bool, err error) {
	r.rest = bytes.TrimLeft(r.rest, " \n\r")
	for bytes.HasPrefix(r.rest, []byte("<!--")) {
		comment := commentForm.Find(r.rest)
		switch {
		case valueForm.Match(r.rest):
			return t, false, errors.New(`"=" in the first word of a comment`)
		case comment == nil:
			return t, false, errors.New("a comment without end")
		}
		r.rest = bytes.TrimLeft(r.rest[len(comment):], " \n\r")
	}
	found := tagForm.FindSubmatch(r.rest)
	switch {
	case len(r.rest) == 0:
		return t, true, nil
	case bytes.HasPrefix(r.rest, []byte("<?")):
		return t, false, errors.New("an XML declaration (<?xml ... ?>); NCCL accepts none")
	case found == nil:
		return t, false, errors.New("text or a tag that NCCL does not read: it accepts only spaces and line ends between tags, and one space between attributes")
	}
	r.rest = r.rest[len(found[0]):]
	return tag{string(found[1]) + string(found[2]), found[3], found[1] != nil, found[4] != nil}, false, nil
}

// handlers are the elements that NCCL reads, by those they are in (src/graph/xml.cc,
// ncclTopoXmlLoadSystem and the like). To NCCL any end tag ends one that it ignores.
var handlers = map[string][]string{
	"": {"system"}, "system": {"cpu"}, "cpu": {"pci", "nic"}, "pci": {"pci", "gpu", "nic", "pcilink"},
	"gpu": {"nvlink", "c2c"}, "nic": {"net"},
}

const ignored = "other"

// loadSub is xmlLoadSub (src/graph/xml.cc): it reads what an element contains up to its end tag, or
// the whole file.
func (r *reader) loadSub(within string, depth int) error {
	for {
		switch {
		case depth > maxNested:
			return errors.New("elements nested deeper than any machine's")
		case r.count == maxNodes:
			return fmt.Errorf("%d elements or more; NCCL accepts fewer", maxNodes)
		}
		t, end, err := r.getNode()
		switch {
		case err != nil:
			return err
		case end && depth == 0, t.closes && (within == ignored || depth > 0 && t.name == within):
			return nil
		case end:
			return errors.New("it ends within an element")
		case t.closes:
			return errors.New("an end tag without a start tag")
		}
		name := ignored
		if slices.Contains(handlers[within], t.name) {
			r.count++
			name = t.name
		}
		version := ""
		for _, a := range slices.Backward(attributeForm.FindAllSubmatch(t.attributes, -1)) {
			switch value := string(a[2]) + string(a[3]); {
			case len(value) > maxValue:
				return fmt.Errorf("a value of more than %d characters", maxValue)
			case string(a[1]) == "version":
				version = value
			}
		}
		if name == "system" && strtol(version) != 1 {
			return errors.New(`the element system has no version="1"`)
		}
		if !t.single {
			if err := r.loadSub(name, depth+1); err != nil {
				return err
			}
		}
	}
}
