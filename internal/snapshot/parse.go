package snapshot

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// Bounds of a snapshot. One of a machine with 8 GPUs and 100 PCI functions has 90
// KB, 2000 entries, and 100 names in a directory.
const (
	maxText    = 16 << 20
	maxEntries = 1 << 17 // answers, names in directories and pieces of files
	maxNames   = 1 << 12 // in one directory: every GPU is paired with every NIC
	maxName    = 4096    // PATH_MAX of Linux
	maxOffset  = 1 << 40
)

var (
	errMagic = errors.New("not a snapshot: does not begin with \"" + magic + "\"")
	errForm  = errors.New("not a line of a snapshot")
	errSize  = errors.New("larger than a snapshot can be")
	errCount = errors.New("more entries than a machine has")
)

// Parse reads a snapshot. A person may have taken entries out, put blank lines in or
// changed their order; what is not of the form that Text writes is an error.
func Parse(text string) (*Recording, error) {
	if len(text) > maxText {
		return nil, errSize
	}
	timeout := make(chan struct{})
	p := parser{rest: text, r: Recording{answers: map[question]*answer{}, timeout: timeout}}
	if line, _ := p.next(); line != magic {
		return nil, errMagic
	}
	for strings.HasPrefix(p.rest, "#") {
		line, _ := p.next()
		p.r.Header = append(p.r.Header, strings.TrimPrefix(line[1:], " "))
	}
	if err := p.entries(); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line, err)
	}
	time.AfterFunc(answerTimeout, func() { close(timeout) })
	return &p.r, nil
}

type parser struct {
	rest    string
	line    int
	entered int // of maxEntries
	r       Recording
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

// nextWith takes a line if it begins with a mark.
func (p *parser) nextWith(mark string) (line string, ok bool) {
	if !strings.HasPrefix(p.rest, mark) {
		return "", false
	}
	line, _ = p.next()
	return line[len(mark):], true
}

func (p *parser) count() error {
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
		if err := cmp.Or(p.count(), p.entry(line)); err != nil {
			return err
		}
	}
}

// entry reads the line that begins an entry, and those that belong to it.
func (p *parser) entry(line string) error {
	name, rest, err := token(line)
	if err != nil {
		return err
	}
	rest, isDir := strings.CutPrefix(rest, "/")
	form, spaced := strings.CutPrefix(rest, " ")
	if len(name) < 2 || name[0] != '/' || rest != "" && !spaced {
		return errForm
	}
	word, value, _ := strings.Cut(form, " ")
	q, a := question{name[1:], read}, &answer{}
	switch {
	case isDir:
		q.kind = list
		if rest != "" {
			a.err, err = parseFault(word)
		} else {
			err = p.list(a)
		}
	case rest == "":
		err = p.content(&a.content)
	case word == "=":
		a.note([]byte(value+"\n"), 0, nil)
		a.finish(a.last())
	case word == "->":
		q.kind = link
		err = a.parseLink(value)
	case word == "exists":
		q.kind = exists
		if value == "no" {
			a.err = unix.ENOENT
		} else if value != "yes" {
			a.err, err = parseFault(value)
		}
	default:
		a.err, err = parseFault(form)
	}
	if err == nil && p.r.answers[q] != nil {
		err = errors.New("told twice")
	}
	p.r.answers[q] = a
	return err
}

func (a *answer) parseLink(value string) (err error) {
	if strings.HasPrefix(value, "!") {
		a.err, err = parseFault(value)
		return err
	}
	to, more, err := token(value)
	if more != "" {
		return errForm
	}
	a.target = to
	return err
}

// token takes a name, quoted or plain, from the beginning of a line. The "/" that
// makes a plain one a directory is not part of it. Names get to terminals: what may
// act on one is refused.
func token(line string) (name, rest string, err error) {
	quote, err := strconv.QuotedPrefix(line)
	if err == nil && quote[0] == '"' {
		name, err = strconv.Unquote(quote)
		rest = line[len(quote):]
	} else {
		name, _, _ = strings.Cut(line, " ")
		name = strings.TrimSuffix(name, "/")
		rest, err = line[len(name):], nil
		if strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) { // Text quotes them
			err = errForm
		}
	}
	if err != nil || len(name) > maxName || strings.ContainsFunc(name, acts) {
		return "", "", errForm
	}
	return name, rest, nil
}

// acts tells what a terminal or a browser may act on: control characters and those
// that change the direction of text.
func acts(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func parseFault(mark string) (error, error) {
	word, ok := strings.CutPrefix(mark, "!")
	if err := faultNamed(word); ok && err != nil {
		return err, nil
	}
	return nil, errForm
}

// list reads the entries of a directory.
func (p *parser) list(a *answer) (err error) {
	for {
		line, ok := p.nextWith("- ")
		if !ok {
			break
		}
		name, rest, err := token(line)
		if err != nil || rest != "" || name == "" || strings.Contains(name, "/") {
			return errForm
		}
		a.names = append(a.names, name)
		if err := p.count(); err != nil || len(a.names) > maxNames {
			return errCount
		}
	}
	if line, ok := p.nextWith("."); ok {
		a.listed = ErrNotRecorded
		if line != ".." {
			return errForm
		}
	} else if line, ok := p.nextWith("!"); ok {
		a.listed, err = parseFault("!" + line)
	}
	return err
}

// content reads what a file held.
func (p *parser) content(c *content) error {
	at := int64(0)
	for {
		var data []byte
		if line, ok := p.nextWith("|"); ok {
			data = append([]byte(line), '\n')
		} else if line, ok := p.nextWith(`\`); ok {
			data = []byte(line)
		} else if line, ok := p.nextWith(":"); ok {
			offset, digits, _ := strings.Cut(line, " ")
			from, err := parseOffset(offset)
			if err != nil || from < at {
				return errForm
			}
			at = from
			if data, err = hex.DecodeString(digits); err != nil || len(data) == 0 {
				return errForm
			}
			if err := p.count(); err != nil {
				return err
			}
		} else {
			break
		}
		c.note(data, at, nil)
		at += int64(len(data))
	}
	return p.contentEnd(c)
}

// contentEnd reads what is behind the last byte.
func (p *parser) contentEnd(c *content) error {
	c.ended, c.end = true, c.last()
	if line, ok := p.nextWith("!"); ok {
		word, offset, far := strings.Cut(line, " ")
		err, bad := parseFault("!" + word)
		at := c.last()
		if far && bad == nil {
			at, bad = parseOffset(offset)
		}
		if bad != nil {
			return bad
		}
		c.fail(err, at)
		c.ended = false
	}
	line, ok := p.nextWith(".")
	c.ended = c.ended && !ok || ok && line != ".."
	if !ok || !c.ended {
		return nil
	}
	var err error
	c.end, err = parseOffset(line)
	return err
}

func parseOffset(digits string) (int64, error) {
	n, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || n < 0 || n > maxOffset {
		return 0, errForm
	}
	return n, nil
}
