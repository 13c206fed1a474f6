package picture

import (
	"strings"
	"unicode"
)

// replacement stands for what is no printable character: names from a machine
// may hold anything.
const replacement = '\ufffd'

// clean makes text fit for a line of any form: control characters, marks that
// turn the direction of writing, those that go with the letter before, and broken
// UTF-8 become visible.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && !unicode.Is(unicode.Mn, r) {
			return r
		}
		return replacement
	}, s)
}

// escape makes text fit for XML and HTML, between tags and in quotes.
func escape(s string) string { return escaper.Replace(clean(s)) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// style is how a text is set.
type style struct {
	size       int
	bold, mono bool
}

// width is how wide a text is at the most, in pixels.
func (s style) width(text string) int {
	sum := 0
	for _, r := range text {
		sum += s.advance(r)
	}
	return (sum*s.size + 99) / 100
}

// Widths of the characters from space to ~ in hundredths of an em. Which font a
// reader has is not known: these are those of DejaVu Sans, or of Arial where it
// is wider; what else is in use is narrower.
var (
	regular = [...]uint8{
		32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, 64, 64, 64,
		64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 56, 102, 69, 69, 73, 78, 67,
		62, 78, 76, 30, 50, 67, 56, 87, 75, 79, 67, 79, 73, 67, 62, 74, 69, 99, 69,
		67, 69, 40, 34, 40, 84, 56, 50, 62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58,
		28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
	}
	heavy = [...]uint8{
		35, 46, 53, 84, 70, 101, 88, 31, 46, 46, 53, 84, 38, 42, 38, 37, 70, 70, 70,
		70, 70, 70, 70, 70, 70, 70, 40, 40, 84, 84, 84, 62, 100, 78, 77, 74, 84, 69,
		69, 83, 84, 38, 56, 78, 64, 100, 84, 86, 74, 86, 78, 73, 69, 82, 78, 111, 78,
		73, 73, 46, 37, 46, 84, 56, 50, 68, 72, 60, 72, 68, 44, 72, 72, 35, 35, 67,
		35, 105, 72, 69, 72, 72, 50, 60, 48, 72, 66, 93, 65, 66, 59, 72, 37, 72, 84,
	}
)

// advance is the width of a character in hundredths of an em. Scripts beyond
// ASCII are as wide as their widest.
func (s style) advance(r rune) int {
	switch {
	case r == '…':
		return 100
	case r < ' ' || r > '~':
		return 135
	case s.mono:
		return 62
	case s.bold:
		return int(heavy[r-' '])
	}
	return int(regular[r-' '])
}

// fit cuts a text to a width, in pixels, with an ellipsis.
func (s style) fit(text string, width int) string {
	text = clean(text)
	if s.width(text) <= width {
		return text
	}
	runes := []rune(text)
	sum := s.advance('…')
	for i, r := range runes {
		if sum += s.advance(r); sum*s.size > width*100 {
			return strings.TrimRight(string(runes[:i]), " ") + "…"
		}
	}
	return text
}

// wrap breaks a text into lines of a width, at most a number of them.
func (s style) wrap(text string, width, lines int) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(clean(text)) {
		switch {
		case line == "":
			line = word
		case s.width(line+" "+word) <= width:
			line += " " + word
		default:
			out = append(out, s.fit(line, width))
			line = word
		}
	}
	out = append(out, s.fit(line, width))
	if len(out) > lines {
		out = out[:lines]
		out[lines-1] = s.fit(out[lines-1]+" …", width)
	}
	return out
}
