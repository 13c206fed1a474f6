package nccl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// maxNodes is how many elements NCCL holds, those it adds itself included (src/graph/topo.h,
// NCCL_TOPO_XML_MAX_NODES).
const maxNodes = 256

// maxText is the longest name or value that NCCL's reader accepts, in bytes (src/graph/xml.h,
// MAX_STR_LEN with its end).
const maxText = 253

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

var errEnds = errors.New("it ends within an element")

// getChar is xmlGetChar (src/graph/xml.cc).
func (r *reader) getChar() (byte, error) {
	if len(r.rest) == 0 {
		return 0, errEnds
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c, nil
}

// token is a name, with a value in quotation marks where "=" follows, and the byte after it.
type token struct {
	name, value string
	valued      bool
	last        byte
}

// getValue is xmlGetValue (src/graph/xml.cc).
func (r *reader) getValue() (value string, last byte, err error) {
	quote, err := r.getChar()
	end := bytes.IndexByte(r.rest, quote)
	switch {
	case err != nil:
		return "", 0, err
	case quote != '"' && quote != '\'':
		return "", 0, errors.New("a value without quotation marks")
	case end < 0:
		return "", 0, errEnds
	case end > maxText:
		return "", 0, fmt.Errorf("a value of more than %d characters", maxText)
	}
	value, r.rest = string(r.rest[:end]), r.rest[end+1:]
	last, err = r.getChar()
	return value, last, err
}

// getToken is xmlGetToken (src/graph/xml.cc).
func (r *reader) getToken() (t token, err error) {
	end := bytes.IndexAny(r.rest, "= >/\n\r")
	switch {
	case end < 0:
		return t, errEnds
	case end > maxText:
		return t, fmt.Errorf("a name of more than %d characters", maxText)
	}
	t.name, t.last, r.rest = string(r.rest[:end]), r.rest[end], r.rest[end+1:]
	if t.last == '=' {
		t.valued = true
		t.value, t.last, err = r.getValue()
	}
	return t, err
}

// skipComment is xmlSkipComment (src/graph/xml.cc): it skips a comment after its "<". NCCL reads
// its first word as a name, in which "=" is an error.
func (r *reader) skipComment() error {
	text, rest, ended := bytes.Cut(r.rest[len("!--"):], []byte("-->"))
	word := text
	if end := bytes.IndexAny(text, " />\n\r"); end >= 0 {
		word = text[:end]
	}
	switch {
	case !ended:
		return errors.New("a comment without end")
	case bytes.IndexByte(word, '=') >= 0:
		return errors.New(`"=" in the first word of a comment`)
	case len(word) > maxText-len("!--"):
		return fmt.Errorf("a name of more than %d characters", maxText)
	}
	r.rest = rest
	return nil
}

// tag is a tag of a file.
type tag struct {
	kind    tagKind
	name    string
	version string // the attribute
}

type tagKind uint8

// The kinds of tags (src/graph/xml.h, NODE_TYPE_NONE to NODE_TYPE_SINGLE).
const (
	noTag tagKind = iota // the end of the file
	openTag
	closeTag
	singleTag
)

// getNode is xmlGetNode (src/graph/xml.cc): it reads the next tag, comments left out.
func (r *reader) getNode() (tag, error) {
	for {
		r.rest = bytes.TrimLeft(r.rest, " \n\r")
		switch {
		case len(r.rest) == 0:
			return tag{}, nil
		case r.rest[0] != '<':
			return tag{}, errors.New("text or a tab between tags; NCCL accepts only spaces and line ends")
		}
		r.rest = r.rest[1:]
		switch {
		case bytes.HasPrefix(r.rest, []byte{'?'}):
			return tag{}, errors.New("an XML declaration (<?xml ... ?>); NCCL accepts none")
		case !bytes.HasPrefix(r.rest, []byte("!--")):
			return r.getTag()
		}
		if err := r.skipComment(); err != nil {
			return tag{}, err
		}
	}
}

// getTag is the rest of xmlGetNode: it reads a tag after its "<".
func (r *reader) getTag() (tag, error) {
	t, err := r.getToken()
	switch {
	case err != nil:
		return tag{}, err
	case t.valued:
		return tag{}, errors.New("a name with a value, or a tab after a name")
	case t.name == "" && t.last == '/':
		if t, err = r.getToken(); err == nil && (t.valued || t.last != '>') {
			err = errors.New("more than a name in an end tag")
		}
		return tag{kind: closeTag, name: t.name}, err
	}
	found := tag{kind: openTag, name: t.name}
	for err == nil && t.last == ' ' {
		if t, err = r.getToken(); t.name == "version" && found.version == "" {
			found.version = t.value
		}
	}
	if err == nil && t.last == '/' {
		found.kind = singleTag
		t, err = r.getToken()
	}
	if err == nil && t.last != '>' {
		err = errors.New("a tab, a line end or another character within a tag; NCCL accepts one space between attributes")
	}
	return found, err
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
	if depth > maxNested {
		return errors.New("elements nested deeper than any machine's")
	}
	for {
		if r.count == maxNodes {
			return fmt.Errorf("%d elements or more; NCCL accepts fewer", maxNodes)
		}
		t, err := r.getNode()
		switch {
		case err != nil:
			return err
		case t.kind == noTag && depth == 0:
			return nil
		case t.kind == noTag:
			return errEnds
		case t.kind == closeTag && (within == ignored || depth > 0 && t.name == within):
			return nil
		case t.kind == closeTag:
			return errors.New("an end tag without a start tag")
		}
		name := ignored
		if slices.Contains(handlers[within], t.name) {
			r.count++
			name = t.name
		}
		if name == "system" && strtol(t.version) != 1 {
			return errors.New(`the element system has no version="1"`)
		}
		if t.kind == openTag {
			if err := r.loadSub(name, depth+1); err != nil {
				return err
			}
		}
	}
}
