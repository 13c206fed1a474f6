package topology

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"slices"
)

// keptAttrs are the attributes that ParseFile looks at, and others of NCCL's that say
// what a machine is and not which.
var keptAttrs = [...]string{
	"host_hash", "numaid", "busid", "vendor", "device", "subsystem_vendor", "subsystem_device",
	"version", "affinity", "arch", "familyid", "modelid", "class", "link_speed", "link_width",
	"name", "dev", "port", "speed", "latency", "maxconn", "gdr", "sm", "rank", "count", "target", "tclass",
}

// attribute is one in a start tag that was accepted: the name without its prefix, and
// the value without its quotation marks.
var attribute = regexp.MustCompile(`([^\s=<>"'/:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')`)

// DecidingText gives a topology file of the same length and lines that ParseFile comes
// to the same with: comments, texts and attributes that it does not look at are
// overwritten, and so is all behind the first error.
func DecidingText(data []byte) []byte {
	out := bytes.Clone(data)
	dec := xml.NewDecoder(bytes.NewReader(data))
	for {
		from := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			overwrite(out[min(int(dec.InputOffset())+1, len(out)):]) // one byte ahead was looked at
			return out
		}
		raw := out[from:dec.InputOffset()]
		switch t := token.(type) {
		case xml.Comment:
			overwrite(raw[len("<!--"):])
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

func overwriteAttrs(tag []byte) {
	for _, at := range attribute.FindAllSubmatchIndex(tag, -1) {
		if slices.Contains(keptAttrs[:], string(tag[at[2]:at[3]])) {
			continue
		}
		for _, value := range [...][]int{at[4:6], at[6:8]} {
			if value[0] >= 0 {
				overwrite(tag[value[0]:value[1]])
			}
		}
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
