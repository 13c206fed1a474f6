package topology

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ncclElements is how many elements NCCL holds, those it adds itself included
// (src/graph/topo.h, NCCL_TOPO_XML_MAX_NODES).
const ncclElements = 256

// ncclText is the longest name or value that NCCL's reader accepts, in bytes
// (src/graph/xml.h, MAX_STR_LEN with its end).
const ncclText = 253

// Refused says why NCCL would not start with a topology file, nil where it would.
// Its reader (src/graph/xml.cc, xmlGetNode and xmlLoadSub) is no XML parser: it
// wants one system of version 1, and accepts only spaces and line ends between tags,
// and only spaces within them.
func Refused(data []byte) error {
	r := ncclReader{rest: data}
	if err := r.content("", 0); err != nil {
		read := data[:len(data)-len(r.rest)]
		return fmt.Errorf("line %d: %w", 1+bytes.Count(read, []byte{'\n'}), err)
	}
	return nil
}

// known are the elements that NCCL reads, by their parent.
var known = map[string][]string{
	"": {"system"}, "system": {"cpu"}, "cpu": {"pci", "nic"}, "pci": {"pci", "gpu", "nic", "pcilink"},
	"gpu": {"nvlink", "c2c"}, "nic": {"net"},
}

type ncclReader struct {
	rest  []byte
	count int // elements that NCCL reads
}

var errEnds = errors.New("it ends within an element")

// next takes one byte.
func (r *ncclReader) next() (byte, error) {
	if len(r.rest) == 0 {
		return 0, errEnds
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c, nil
}

// ignored stands for the elements that NCCL does not know. To NCCL any end tag ends one.
const ignored = "other"

// content reads what an element contains up to its end tag, or the whole file.
func (r *ncclReader) content(within string, depth int) error {
	if depth > maxDepth {
		return errors.New("elements nested deeper than any machine's")
	}
	for {
		if r.count == ncclElements {
			return fmt.Errorf("%d elements or more; NCCL accepts fewer", ncclElements)
		}
		t, err := r.tag()
		switch {
		case err != nil:
			return err
		case t.kind == noTag && depth == 0:
			return nil
		case t.kind == noTag:
			return errEnds
		case t.kind == endTag && (within == ignored || depth > 0 && t.name == within):
			return nil
		case t.kind == endTag:
			return errors.New("an end tag without a start tag")
		}
		inside := ignored
		if slices.Contains(known[within], t.name) {
			r.count++
			inside = t.name
		}
		if inside == "system" && t.version != 1 {
			return errors.New(`the element system has no version="1"`)
		}
		if t.kind == openTag {
			if err := r.content(inside, depth+1); err != nil {
				return err
			}
		}
	}
}

type tagKind uint8

const (
	noTag tagKind = iota // the end of the file
	openTag
	endTag
	emptyTag // <a/>
)

type tag struct {
	kind    tagKind
	name    string
	version int64 // the attribute, 0 for none
}

// tag reads the next tag, comments left out.
func (r *ncclReader) tag() (tag, error) {
	for {
		r.rest = bytes.TrimLeft(r.rest, " \n\r")
		if len(r.rest) == 0 {
			return tag{}, nil
		}
		if r.rest[0] != '<' {
			return tag{}, errors.New("text or a tab between tags; NCCL accepts only spaces and line ends")
		}
		r.rest = r.rest[1:]
		switch {
		case bytes.HasPrefix(r.rest, []byte{'?'}):
			return tag{}, errors.New("an XML declaration (<?xml ... ?>); NCCL accepts none")
		case !bytes.HasPrefix(r.rest, []byte("!--")):
			return r.named()
		}
		if err := r.comment(); err != nil {
			return tag{}, err
		}
	}
}

// comment skips a comment after its "<". NCCL reads its first word as a
// name, in which "=" is an error (xmlSkipComment).
func (r *ncclReader) comment() error {
	r.rest = r.rest[len("!--"):]
	text, rest, ended := bytes.Cut(r.rest, []byte("-->"))
	if !ended {
		return errors.New("a comment without end")
	}
	first := text[:len(text)-len(bytes.TrimLeftFunc(text, func(c rune) bool { return !strings.ContainsRune(" />\n\r", c) }))]
	switch {
	case bytes.IndexByte(first, '=') >= 0:
		return errors.New(`"=" in the first word of a comment`)
	case len(first) > ncclText-len("!--"):
		return fmt.Errorf("a name of more than %d characters", ncclText)
	}
	r.rest = rest
	return nil
}

// named reads a tag after its "<".
func (r *ncclReader) named() (tag, error) {
	w, err := r.word()
	switch {
	case err != nil:
		return tag{}, err
	case w.valued:
		return tag{}, errors.New("a name with a value, or a tab after a name")
	case w.name == "" && w.last == '/':
		w, err = r.word()
		if err == nil && (w.valued || w.last != '>') {
			err = errors.New("more than a name in an end tag")
		}
		return tag{kind: endTag, name: w.name}, err
	}
	t := tag{kind: openTag, name: w.name}
	for err == nil && w.last == ' ' {
		w, err = r.word()
		if w.valued && w.name == "version" && t.version == 0 {
			t.version = leadingInt(w.value)
		}
	}
	if err == nil && w.last == '/' {
		t.kind = emptyTag
		w, err = r.word()
	}
	if err == nil && w.last != '>' {
		err = errors.New("a tab, a line end or another character within a tag; NCCL accepts one space between attributes")
	}
	return t, err
}

// word is a name, with a value in quotation marks where "=" follows, and the byte after it.
type word struct {
	name, value string
	valued      bool
	last        byte
}

// word reads one (xmlGetToken, xmlGetValue).
func (r *ncclReader) word() (w word, err error) {
	for {
		var c byte
		c, err = r.next()
		switch {
		case err != nil:
			return word{}, err
		case c == '=':
			w.valued = true
			w.value, w.last, err = r.quoted()
			return w, err
		case len(w.name) > ncclText:
			return word{}, fmt.Errorf("a name of more than %d characters", ncclText)
		case strings.IndexByte(" >/\n\r", c) >= 0:
			w.last = c
			return w, nil
		}
		w.name += string([]byte{c})
	}
}

func (r *ncclReader) quoted() (value string, last byte, err error) {
	quote, err := r.next()
	if err == nil && quote != '"' && quote != '\'' {
		err = errors.New("a value without quotation marks")
	}
	if err != nil {
		return "", 0, err
	}
	end := bytes.IndexByte(r.rest, quote)
	switch {
	case end < 0:
		return "", 0, errEnds
	case end > ncclText:
		return "", 0, fmt.Errorf("a value of more than %d characters", ncclText)
	}
	value = string(r.rest[:end])
	r.rest = r.rest[end+1:]
	last, err = r.next()
	return value, last, err
}

// leadingInt reads the number that a text begins with, as C's strtol does; 0 for
// none.
func leadingInt(s string) int64 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	for end := len(s); end > 0; end-- {
		if n, err := strconv.ParseInt(s[:end], 0, 32); err == nil && !strings.ContainsRune(s[:end], '_') {
			return n
		}
	}
	return 0
}
