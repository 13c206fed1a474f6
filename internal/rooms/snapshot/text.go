package snapshot

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
)

// header is the first line of a snapshot.
type header struct {
	Format string   `json:"format"`
	Notes  []string `json:"notes"`
}

const format, older = "gdr-features snapshot 3", "gdr-features snapshot "

// entry is a question and its answer, a line of the text.
type entry struct {
	// One of these is what was asked, with the path.
	Link   string `json:"link,omitempty"`   // where a link leads to
	Exists string `json:"exists,omitempty"` // whether it is there
	List   string `json:"list,omitempty"`   // the names in a directory
	Read   string `json:"read,omitempty"`   // the content of a file

	// Error in place of an answer: the name of an errno, or one of words.
	Error string   `json:"error,omitempty"`
	To    string   `json:"to,omitempty"`
	Names []string `json:"names,omitempty"`
	// Text or Hex is the file from its beginning.
	Text string `json:"text,omitempty"`
	Hex  string `json:"hex,omitempty"`
	// Stop is why listing or reading ended: "more" if the rest was not asked for, an
	// error as above, or nothing if this is all.
	Stop string `json:"stop,omitempty"`

	// End marks the last line.
	End bool `json:"end,omitempty"`
}

// Bounds of a snapshot. One of a machine with 8 GPUs and 100 PCI functions has 150
// KB, 2000 answers, and 100 names in a directory.
const (
	maxText    = 16 << 20
	maxAnswers = 1 << 17
	maxNames   = 1 << 12 // in one directory
	maxPairs   = 1 << 18 // of a GPU and a NIC: 128 GPUs and 1,024 virtual functions with RDMA devices
	maxName    = 4096    // PATH_MAX of Linux
)

// Text writes the recording, and checks that it can be read back: a machine may have
// more files, or odder names, than Parse accepts.
func (r *Recording) Text() ([]byte, error) {
	var w bytes.Buffer
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	err := enc.Encode(header{format, r.Notes})
	for _, q := range slices.SortedFunc(maps.Keys(r.answers), compareQuestions) {
		err = cmp.Or(err, enc.Encode(r.answers[q].entry(q)))
	}
	err = cmp.Or(err, enc.Encode(entry{End: true}))
	text := show.Escape(w.Bytes())
	if err == nil {
		_, err = Parse(string(text))
	}
	if err != nil {
		return nil, fmt.Errorf("what was read cannot be written: %w", err)
	}
	return text, nil
}

// asked returns the field of the question.
func (e *entry) asked(k kind) *string {
	return [...]*string{link: &e.Link, exists: &e.Exists, list: &e.List, read: &e.Read}[k]
}

func (a *answer) entry(q question) *entry {
	e := &entry{Error: word(a.err), To: a.target, Names: a.names, Stop: word(a.stop)}
	*e.asked(q.kind) = "/" + q.name
	if isText(a.data) {
		e.Text = string(a.data)
	} else {
		e.Hex = hex.EncodeToString(a.data)
	}
	return e
}

// isText accepts printable ASCII, tabs and newlines.
func isText(data []byte) bool {
	return !slices.ContainsFunc(data, func(b byte) bool { return (b < ' ' || b > '~') && b != '\t' && b != '\n' })
}

// Parse reads a snapshot. A person may have taken lines out or changed their order.
func Parse(text string) (*Recording, error) {
	timeout := make(chan struct{})
	r := &Recording{answers: map[question]*answer{}, timeout: timeout}
	first, rest, _ := strings.Cut(text, "\n")
	var h header
	switch err := decode(first, &h); {
	case len(text) > maxText:
		return nil, errors.New("larger than a snapshot can be")
	case strings.HasPrefix(text, older+"1"), h.Format == older+"2":
		return nil, errors.New("a snapshot of an older format; take it again with this version of gdr-features")
	case err != nil || h.Format == "":
		return nil, errors.New("not a snapshot of gdr-features")
	case h.Format != format:
		return nil, fmt.Errorf("format %q; this version of gdr-features reads %q", h.Format, format)
	}
	r.Notes = h.Notes
	number, ended := 1, false
	for line := range strings.Lines(rest) {
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		var e entry
		err := decode(line, &e)
		switch {
		case ended:
			err = errors.New("a line after the end")
		case err == nil && e.End:
			ended = true
			continue
		case err == nil:
			err = r.add(&e)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if !ended {
		return nil, fmt.Errorf("line %d: it is cut off: the last line is missing", number)
	}
	if gpus, nics := r.devices(); gpus*nics > maxPairs {
		return nil, fmt.Errorf("more than a machine has: %d GPUs and %d NICs", gpus, nics)
	}
	time.AfterFunc(answerTimeout, func() { close(timeout) })
	return r, nil
}

// devices counts what may be a GPU, by its PCI class, and what may be a NIC.
func (r *Recording) devices() (gpus, nics int) {
	for q, a := range r.answers {
		switch {
		case q == question{"sys/class/infiniband", list}:
			nics += len(a.names)
		case q.kind != read || !strings.HasSuffix(q.name, "/class") || len(a.data) < len("0x03"):
		case slices.Contains([]string{"0x03", "0x0b", "0x12"}, string(a.data[:4])):
			gpus++
		case string(a.data[:4]) == "0x02":
			nics++
		}
	}
	return gpus, nics
}

var errForm = errors.New("not a line of a snapshot")

// decode reads a line. Fields that are not known are an error.
func decode(line string, to any) error {
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil || dec.More() {
		return errForm
	}
	return nil
}

// add adds an entry, which a stranger may have written.
func (r *Recording) add(e *entry) error {
	var q question
	for k := link; k <= read; k++ {
		if name := *e.asked(k); name != "" && q.name == "" {
			q = question{name: strings.TrimPrefix(name, "/"), kind: k}
		} else if name != "" {
			return errForm
		}
	}
	if q.name == "" || !shows(append(e.Names, q.name, e.To)...) || slices.ContainsFunc(e.Names, func(name string) bool {
		return name == "" || strings.Contains(name, "/")
	}) {
		return errForm
	}
	if r.answers[q] != nil {
		return errors.New("this was answered in an earlier line")
	}
	if len(r.answers) == maxAnswers || len(e.Names) > maxNames {
		return errors.New("more than a machine has")
	}
	a, err := e.answer()
	r.answers[q] = a
	return err
}

// shows reports whether names can be shown on a terminal.
func shows(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return len(name) > maxName || name != sanitize.Terminal(name)
	})
}

func (e *entry) answer() (*answer, error) {
	is, err := errorOf(e.Error)
	stop, stopErr := errorOf(e.Stop)
	data, hexErr := hex.DecodeString(e.Hex)
	if err = cmp.Or(err, stopErr, hexErr); err != nil || e.Text != "" && e.Hex != "" {
		return nil, errForm
	}
	return &answer{err: is, target: e.To, names: e.Names, data: append([]byte(e.Text), data...), stop: stop}, nil
}
