package snapshot

import (
	"bytes"
	"encoding/xml"
	"regexp"

	"gdr-features/topology/nccl"
)

// overwriteTopology overwrites in an NCCL topology file comments, texts, attributes
// that are not NCCL's, and everything after the first error, in place. Its length and
// lines stay, so that reading it gives the same result and the same errors.
func overwriteTopology(data []byte) []byte {
	text := bytes.Clone(data) // to NCCL a comment ends at the first "-->", whatever it contains
	for _, at := range regexp.MustCompile(`(?s)<!--.*?-->`).FindAllIndex(data, -1) {
		overwrite(data[at[0]:at[1]])
		for i := at[0]; i < at[1]; i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	attr := regexp.MustCompile(`([^\s:=]+)\s*=\s*("[^"]*"|'[^']*')`)
	dec := xml.NewDecoder(bytes.NewReader(text))
	for {
		from := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			overwrite(data[min(int(dec.InputOffset())+1, len(data)):]) // the decoder has read one byte ahead
			return data
		}
		raw := data[from:dec.InputOffset()]
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
			for _, at := range attr.FindAllSubmatchIndex(raw, -1) {
				if !nccl.IsAttribute(string(raw[at[2]:at[3]])) {
					overwrite(raw[at[4]:at[5]])
				}
			}
		}
	}
}

// overwrite overwrites a text but for what has a meaning in XML, entities too.
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
