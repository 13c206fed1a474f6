package nccl

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"

	"gdr-features/source/pci"
)

// dialect is how one library wants topology files.
type dialect struct {
	library  string
	version  int64 // of the element system (src/graph/xml.h, NCCL_TOPO_XML_VERSION)
	maxNodes int   // how many elements it holds, its own included (src/graph/xml.h, MAX_NODES)
}

var (
	ofNCCL = dialect{"NCCL", 1, 256}
	// ofRCCL is that of ROCm/rccl 0cbce2a7, and the same in ROCm/rocm-systems 0eda3644
	// (src/graph/xml.h): what writes version 1 for NCCL is refused.
	ofRCCL = dialect{"RCCL", 2, 8192}

	dialects = []dialect{ofNCCL, ofRCCL}
)

// dialectOf is that of the library that GPUs use: RCCL's where all are AMD's.
func dialectOf(gpus []*pci.Function) dialect {
	ofNVIDIA := func(gpu *pci.Function) bool { return gpu.GPU == nil || !gpu.GPU.RCCL }
	if len(gpus) == 0 || slices.ContainsFunc(gpus, ofNVIDIA) {
		return ofNCCL
	}
	return ofRCCL
}

// maxValue is the longest value that NCCL's reader accepts (src/graph/xml.h, MAX_STR_LEN).
const maxValue = 253

// What NCCL's reader takes for a tag (src/graph/xml.cc, xmlGetNode, xmlGetToken, xmlGetValue): names
// hold any byte but those that end them, and exactly one space is in front of an attribute.
var tagForm = regexp.MustCompile(`^<(/[^= >/\n\r]*|[^= >/\n\r]*( [^= >/\n\r]*(=("[^"]*"|'[^']*'))?)*(/[^= >/\n\r]*)?)>$`)

var (
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	// A comment's first word is read as a name (xmlSkipComment).
	valueInComment = regexp.MustCompile(`^<!--[^= >/\n\r]*=`)
)

const unread = "text or a tag that NCCL does not read: it accepts only spaces and line ends between tags, and one space between attributes"

// reader finds out why NCCL would not start with a topology file. Its reader (src/graph/xml.cc) is no
// XML parser: it wants one system of its version, and accepts only spaces and line ends between tags,
// and only spaces within them.
type reader struct {
	data    []byte
	count   int // elements that NCCL keeps
	refused map[dialect]refusal
}

// refusal is the first thing in a file that a library refuses.
type refusal struct {
	at  int
	why error
}

func (r *reader) refuse(at int, why string, by ...dialect) {
	for _, d := range by {
		if first, ok := r.refused[d]; !ok || at < first.at {
			r.refused[d] = refusal{at, fmt.Errorf("line %d: %s", 1+bytes.Count(r.data[:at], []byte{'\n'}), why)}
		}
	}
}

// skipComments leaves of comments their line ends. To NCCL a comment ends at the first "-->",
// whatever it contains; XML forbids two hyphens in it.
func (r *reader) skipComments() {
	for _, at := range comment.FindAllIndex(r.data, -1) {
		text := r.data[at[0]:at[1]]
		if valueInComment.Match(text) {
			r.refuse(at[0], `"=" in the first word of a comment`, dialects...)
		}
		for i, b := range text {
			if b != '\n' {
				text[i] = ' '
			}
		}
	}
}

// see looks at what is in the data from one place to another, within an element.
func (r *reader) see(token xml.Token, from, to int, within string) {
	raw := r.data[from:to]
	switch t := token.(type) {
	case xml.ProcInst:
		r.refuse(from, "an XML declaration (<?xml ... ?>); NCCL accepts none", dialects...)
	case xml.Directive: // to NCCL, an element without end
		r.refuse(from, unread, dialects...)
	case xml.CharData:
		if text := bytes.TrimLeft(raw, " \n\r"); len(text) > 0 {
			r.refuse(to-len(text), unread, dialects...)
		}
	default:
		if len(raw) > 0 && !tagForm.Match(raw) {
			r.refuse(from, unread, dialects...)
		}
		if start, ok := t.(xml.StartElement); ok {
			r.seeElement(start, bytes.Contains(raw, []byte("&")), to, within)
		}
	}
}

// seeElement looks at an element. encoded: some character of its tag is written as a reference,
// such as &#49;, which NCCL does not decode.
func (r *reader) seeElement(t xml.StartElement, encoded bool, end int, within string) {
	version := ""
	for _, a := range slices.Backward(t.Attr) {
		if len(a.Value) > maxValue {
			r.refuse(end, fmt.Sprintf("a value of more than %d characters", maxValue), dialects...)
		}
		if a.Name.Local == "version" && a.Name.Space == "" {
			version = a.Value
		}
	}
	if t.Name.Space != "" || !slices.Contains(handlers[within], t.Name.Local) {
		return
	}
	r.count++
	for _, d := range dialects {
		if t.Name.Local == "system" && (encoded || strtol(version) != d.version) {
			r.refuse(end, fmt.Sprintf(`the element system has no version="%d", which %s wants`, d.version, d.library), d)
		}
		if r.count == d.maxNodes {
			r.refuse(end, fmt.Sprintf("%d elements or more; %s accepts fewer", d.maxNodes, d.library), d)
		}
	}
}
