package snapshot

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of a snapshot. One of a machine with 8 GPUs and 100 PCI functions has 90
// KB, 2000 entries, and 100 names in a directory.
const (
	maxText    = 16 << 20
	maxEntries = 1 << 17 // answers, names in directories and pieces of files
	maxNames   = 1 << 12 // in one directory: every GPU is paired with every NIC
	maxOffset  = 1 << 40
)

var errMagic = errors.New("not a snapshot: does not begin with \"" + magic + "\"")

// Parse reads a snapshot. A person may have taken entries out, put blank lines in or
// changed their order; what is not of the form that Text writes is an error.
func Parse(text string) (*Tape, error) {
	if len(text) > maxText {
		return nil, errSize
	}
	p := parser{rest: text, t: Tape{nodes: map[string]*node{}}}
	if line, _ := p.next(); line != magic {
		return nil, errMagic
	}
	for strings.HasPrefix(p.rest, "#") {
		line, _ := p.next()
		p.t.Header = append(p.t.Header, strings.TrimPrefix(line[1:], " "))
	}
	if err := p.entries(); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line, err)
	}
	p.t.replay()
	return &p.t, nil
}

type parser struct {
	rest    string
	line    int
	entered int // of maxEntries
	t       Tape
}

// next takes a line. An editor or a mail program may have ended it with CR LF.
func (p *parser) next() (line string, ok bool) {
	if p.rest == "" {
		return "", false
	}
	p.line++
	line, p.rest, _ = strings.Cut(p.rest, "\n")
	return strings.TrimSuffix(line, "\r"), true
}

func (p *parser) enter() error {
	if p.entered++; p.entered > maxEntries {
		return errCount
	}
	return nil
}

func (p *parser) entries() error {
	for {
		line, ok := p.next()
		switch {
		case !ok:
			return errors.New("it is cut off: the line \"end\" is missing")
		case line == "end" && strings.TrimSpace(p.rest) == "":
			return nil
		case line == "":
			continue
		}
		if err := cmp.Or(p.enter(), p.entry(line)); err != nil {
			return err
		}
	}
}

var (
	errForm  = errors.New("not a line of a snapshot")
	errSize  = errors.New("larger than a snapshot can be")
	errCount = errors.New("more entries than a machine has")
)

// entry reads the line that begins an entry, and those that belong to it.
func (p *parser) entry(line string) error {
	name, rest, err := token(line)
	if err != nil {
		return err
	}
	dir := strings.HasPrefix(rest, "/")
	rest = strings.TrimPrefix(rest, "/")
	if len(name) < 2 || name[0] != '/' || rest != "" && rest[0] != ' ' {
		return errForm
	}
	n := p.t.nodes[name[1:]]
	if n == nil {
		n = &node{}
		p.t.nodes[name[1:]] = n
	}
	kind, value, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	switch {
	case dir && rest == "":
		return cmp.Or(set(&n.dir, struct{}{}, ""), p.list(&n.names))
	case dir:
		return setFault(&n.dir, kind)
	case rest == "":
		return cmp.Or(set(&n.open, struct{}{}, ""), p.content(&n.content))
	case kind == "=":
		n.content.store([]byte(value+"\n"), 0)
		n.content.finish(n.content.last())
		return set(&n.open, struct{}{}, "")
	case kind == "->" && !strings.HasPrefix(value, "!"):
		to, more, err := token(value)
		if more != "" {
			err = errForm
		}
		return cmp.Or(err, set(&n.link, to, ""))
	case kind == "->":
		return setFault(&n.link, value)
	case kind == "exists" && (value == "yes" || value == "no"):
		return set(&n.exists, value == "yes", "")
	case kind == "exists":
		return setFault(&n.exists, value)
	}
	return setFault(&n.open, strings.TrimPrefix(rest, " "))
}

// longestName is PATH_MAX of Linux: no link and no path that is asked for is longer.
const longestName = 4096

// token takes a name, quoted or plain, from the beginning of a line. The "/" that
// makes a plain one a directory stays behind.
func token(line string) (name, rest string, err error) {
	name, rest, err = anyToken(line)
	if err == nil && len(name) > longestName {
		err = errForm
	}
	return name, rest, err
}

func anyToken(line string) (name, rest string, err error) {
	if strings.HasPrefix(line, `"`) {
		q, err := strconv.QuotedPrefix(line)
		if err != nil {
			return "", "", errForm
		}
		name, err = strconv.Unquote(q)
		if err != nil || strings.ContainsFunc(name, acts) {
			return "", "", errForm
		}
		return name, line[len(q):], nil
	}
	end := strings.IndexByte(line, ' ')
	if end < 0 {
		end = len(line)
	}
	name = strings.TrimSuffix(line[:end], "/")
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) { // Text quotes them
		return "", "", errForm
	}
	return name, line[len(name):], nil
}

// acts tells what a terminal or a browser may act on: control characters and those
// that turn the direction of text.
func acts(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func set[T any](a *answer[T], value T, f fault) error {
	if a.known {
		return errors.New("told twice")
	}
	a.known, a.value, a.fault = true, value, f
	return nil
}

func setFault[T any](a *answer[T], word string) error {
	f, err := parseFault(word)
	var none T
	return cmp.Or(err, set(a, none, f))
}

func parseFault(word string) (fault, error) {
	name, ok := strings.CutPrefix(word, "!")
	if f := fault(name); ok && f.valid() {
		return f, nil
	}
	return "", errForm
}

// list reads the entries of a directory.
func (p *parser) list(a *answer[[]string]) error {
	*a = answer[[]string]{known: true}
	for {
		switch {
		case strings.HasPrefix(p.rest, "- "):
			line, _ := p.next()
			name, rest, err := token(line[2:])
			if err != nil || rest != "" || name == "" || strings.Contains(name, "/") {
				return errForm
			}
			a.value = append(a.value, name)
			if err := p.enter(); err != nil || len(a.value) > maxNames {
				return errCount
			}
		case strings.HasPrefix(p.rest, "."):
			line, _ := p.next()
			if line != "..." {
				return errForm
			}
			a.known = false
			return nil
		case strings.HasPrefix(p.rest, "!"):
			line, _ := p.next()
			var err error
			a.fault, err = parseFault(line)
			return err
		default:
			return nil
		}
	}
}

// content reads what a file held.
func (p *parser) content(c *content) error {
	c.ended = true
	var last []byte // text since the last bytes that were told with their offset
	at := int64(0)
	flush := func() { c.store(last, at); at += int64(len(last)); last = nil }
	for p.rest != "" && strings.IndexByte(`|\:`, p.rest[0]) >= 0 {
		line, _ := p.next()
		switch line[0] {
		case '|':
			last = append(append(last, line[1:]...), '\n')
		case '\\':
			last = append(last, line[1:]...)
		case ':':
			flush()
			from, data, err := hexLine(line[1:])
			if err != nil || from < at || len(data) == 0 {
				return errForm
			}
			c.store(data, from)
			at = from + int64(len(data))
			if err := p.enter(); err != nil {
				return err
			}
		}
	}
	flush()
	c.end = c.last()
	return p.contentEnd(c)
}

// contentEnd reads what is behind the last byte.
func (p *parser) contentEnd(c *content) error {
	if strings.HasPrefix(p.rest, "!") {
		line, _ := p.next()
		word, offset, far := strings.Cut(line, " ")
		f, err := parseFault(word)
		at := c.last()
		if far && err == nil {
			at, err = parseOffset(offset)
		}
		if err != nil {
			return err
		}
		c.fail(f, at)
		c.ended = false
	}
	if !strings.HasPrefix(p.rest, ".") {
		return nil
	}
	line, _ := p.next()
	c.ended = line != "..."
	if !c.ended {
		return nil
	}
	var err error
	c.end, err = parseOffset(line[1:])
	return err
}

func hexLine(line string) (offset int64, data []byte, err error) {
	from, digits, _ := strings.Cut(line, " ")
	if offset, err = parseOffset(from); err != nil {
		return 0, nil, err
	}
	data, err = hex.DecodeString(digits)
	return offset, data, err
}

func parseOffset(digits string) (int64, error) {
	n, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || n < 0 || n > maxOffset {
		return 0, errForm
	}
	return n, nil
}
