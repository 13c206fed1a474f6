package picture

import (
	"fmt"
	"io"
	"strings"

	"gdr-features/internal/report"
)

// margin is around a picture that stands alone.
const margin = 16

// SVG writes one picture of all: the verdict, the tree, the matrix.
func SVG(w io.Writer, r *report.Report) error {
	m := newModel(r)
	var sheet scene
	sheet.add(drawWhole(m), margin, margin)
	sheet.w += margin
	sheet.h += margin
	var out page
	out.f("%s", raw(`<?xml version="1.0" encoding="UTF-8"?>`+"\n"))
	out.svg(sheet, m, "<style>"+palette+drawing+levels()+dimming(m)+"</style>\n"+
		fmt.Sprintf(`<rect class="paper" width="%d" height="%d"/>`+"\n", sheet.w, sheet.h))
	_, err := io.WriteString(w, out.String())
	return err
}

// page is text for XML or HTML.
type page struct{ strings.Builder }

// raw is markup; every other string is escaped.
type raw string

// f writes by a format. Whatever is no number and no raw is escaped.
func (p *page) f(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case raw, int:
		default:
			args[i] = escape(fmt.Sprint(arg))
		}
	}
	fmt.Fprintf(p, format, args...)
}

// svg writes a scene as an SVG element, after what is to come first in it. GPUs
// and NICs can be stepped through with the Tab key.
func (p *page) svg(s scene, m *model, first string) {
	p.f(`<svg xmlns="http://www.w3.org/2000/svg" class="gdr" role="group" aria-labelledby="gdr-title" aria-describedby="gdr-desc" `+
		`width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", s.w, s.h, s.w, s.h)
	p.f("<title id=\"gdr-title\">%s</title>\n", "PCI tree of "+m.counts)
	p.f("<desc id=\"gdr-desc\">%s</desc>\n%s", m.description(), raw(first))
	for _, part := range s.parts {
		p.part(part)
	}
	p.f("</svg>\n")
}

// description says what the picture shows.
func (m *model) description() string {
	if m.nothing != "" {
		return m.nothing
	}
	var words []string
	for _, g := range m.gpus {
		words = append(words, g.name+" "+g.nearest())
	}
	return m.title + ". Nearest NICs: " + strings.Join(words, "; ") + "."
}

func (p *page) part(x part) {
	switch {
	case x.id != "":
		p.f(`<g id="%s" class="%s" role="img" tabindex="0" aria-label="%s"><title>%s</title>`, x.id, x.classes(), x.label, x.label)
	case x.label != "":
		p.f(`<g class="%s" role="img" aria-label="%s"><title>%s</title>`, x.classes(), x.label, x.label)
	default:
		p.f(`<g class="%s">`, x.classes())
	}
	for _, l := range x.paths {
		p.f(`<path class="%s" d="%s"/>`, l.class, l.d())
	}
	for _, r := range x.rects {
		p.f(`<rect class="%s" x="%d" y="%d" width="%d" height="%d"`, r.class, r.x, r.y, r.w, r.h)
		if r.radius > 0 {
			p.f(` rx="%d"`, r.radius)
		}
		p.f("/>")
	}
	for _, t := range x.texts {
		p.text(t)
	}
	p.f("</g>\n")
}

func (p *page) text(t text) {
	class := t.class
	if t.style.mono {
		class += " mono"
	}
	if t.style.bold {
		class += " b"
	}
	anchor := [...]raw{start: "", middle: ` text-anchor="middle"`, end: ` text-anchor="end"`}[t.align]
	p.f(`<text class="%s" x="%d" y="%d" font-size="%d"%s>%s</text>`, class, t.x, t.y, t.style.size, anchor, t.s)
}

// d is the path in SVG's words.
func (l path) d() string {
	var words strings.Builder
	for i, at := range l.points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&words, "%s%d %d", letter, at.x, at.y)
	}
	return words.String()
}
