package topology

import (
	"bytes"
	"encoding/xml"
	"slices"
)

// keptAttrs are the attributes that ParseFile looks at, and others of NCCL's that say
// what a machine is and not which.
var keptAttrs = [...]string{
	"host_hash", "numaid", "busid", "vendor", "device", "subsystem_vendor", "subsystem_device",
	"version", "affinity", "arch", "familyid", "modelid", "class", "link_speed", "link_width",
	"name", "dev", "port", "speed", "latency", "maxconn", "gdr", "sm", "rank", "count", "target", "tclass",
}

// DecidingText gives a topology file of the same length and lines that ParseFile comes
// to the same with: comments, texts and attributes that are not NCCL's are overwritten,
// and so is all behind the first error.
func DecidingText(data []byte) []byte {
	blank := withoutComments(data)
	out := bytes.Clone(data)
	for i := range out {
		if blank[i] != data[i] { // within a comment
			overwrite(out[i : i+1])
		}
	}
	dec := xml.NewDecoder(bytes.NewReader(blank))
	for {
		from := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			overwrite(out[min(int(dec.InputOffset())+1, len(out)):]) // one byte ahead was looked at
			return out
		}
		raw := out[from:dec.InputOffset()]
		switch t := token.(type) {
		case xml.CharData:
			overwrite(bytes.TrimPrefix(raw, []byte("<![CDATA[")))
		case xml.Directive:
			overwrite(raw)
		case xml.ProcInst:
			if t.Target != "xml" {
				overwrite(bytes.TrimPrefix(raw, []byte("<?"+t.Target)))
			}
		case xml.StartElement:
			overwriteAttrs(raw)
		}
	}
}

// overwriteAttrs goes from one name="value" to the next in a start tag that was
// accepted. A prefix of the name is no part of it.
func overwriteAttrs(tag []byte) {
	for {
		before, behind, ok := bytes.Cut(tag, []byte{'='})
		behind = bytes.TrimLeft(behind, " \t\r\n")
		if !ok || len(behind) == 0 {
			return
		}
		name := bytes.TrimRight(before, " \t\r\n")
		name = name[bytes.LastIndexAny(name, " \t\r\n:")+1:]
		value, rest, _ := bytes.Cut(behind[1:], behind[:1]) // between quotation marks, of either kind
		if !slices.Contains(keptAttrs[:], string(name)) {
			overwrite(value)
		}
		tag = rest
	}
}

// overwrite leaves of a text what XML gives a meaning to, entities too.
func overwrite(text []byte) {
	entity := false
	for i, b := range text {
		switch {
		case b == '&':
			entity = true
		case b == ';':
			entity = false
		case !entity && (b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'):
			text[i] = 'x'
		}
	}
}
