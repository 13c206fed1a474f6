package picture

import (
	"io"
	"strings"

	"gdr-features/internal/findings"
	"gdr-features/internal/report"
	"gdr-features/internal/view"
)

// sheet styles the page around the picture.
const sheet = `*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:14px/1.45 ` + sans + `}
main{max-width:1264px;margin:0 auto;padding:16px}
h1{font-size:20px;line-height:1.3;margin:0}h2{font-size:16px;margin:24px 0 8px}
header{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:center;margin-bottom:12px}
header p{margin:0;color:var(--mut);flex-basis:100%}
header .why{padding:8px 12px;background:var(--panel);border-left:4px solid var(--fail);color:var(--ink)}
.status{font-size:12px;font-weight:700;padding:3px 9px;border:2px solid;border-radius:5px;white-space:nowrap}
.OK{color:var(--good)}.WARN{color:var(--warn)}.FAIL{color:var(--fail)}.UNKNOWN{color:var(--mut)}
figure{margin:0;overflow-x:auto}figcaption,.hint{color:var(--mut);font-size:12px;margin:6px 0 0}
svg{display:block}
.beside{display:flex;flex-wrap:wrap;gap:12px 32px}
dl{display:grid;gap:8px;margin:28px 0 0;align-content:start;font-size:12px}
dl div{display:flex;gap:8px;align-items:baseline}dt{font-weight:600;padding:2px 0;border-radius:3px;width:46px;text-align:center}dd{margin:0;color:var(--mut)}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:separate;border-spacing:2px;font-size:12px}
caption{text-align:left;color:var(--mut);padding-bottom:6px}
th{text-align:left;font-weight:600;padding:3px 8px 3px 0;white-space:nowrap}
.matrix th{padding:4px 6px 4px 0}.matrix thead th,.matrix td{padding:4px 8px;text-align:center;min-width:50px}.matrix thead th:first-child{text-align:left;padding-left:0}
.matrix .cell{border-radius:3px;font-weight:600}.matrix th .code{color:var(--mut);padding-left:4px}
.list{border-spacing:0;width:100%}.list td,.list th{padding:5px 12px 5px 0;border-top:1px solid var(--rim);vertical-align:top;overflow-wrap:anywhere}
.list thead th{border-top:0;color:var(--mut)}.list p{margin:2px 0 0}.list .from{color:var(--mut);font-size:12px}
code,.code{font-family:` + fixed + `;font-size:12px;font-weight:400}
:focus-visible{outline:3px solid var(--focus);outline-offset:1px}
@media print{main{max-width:none;padding:0}.hint{display:none}section,figure{break-inside:avoid}figure svg{width:100%;height:auto}
.cell,.box,.panel,.switch{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
`

// HTML writes one page that stands alone: the verdict, the picture, the matrix,
// checks and devices as tables. It has no script, and its policy lets it load and
// send nothing; its styles are in it, and what is a machine's own is escaped.
func HTML(w io.Writer, r *report.Report) error {
	m := newModel(r)
	var p page
	p.f("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"/>\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"referrer\" content=\"no-referrer\"/>\n")
	p.f("<title>%s</title>\n<style>\n%s</style>\n</head>\n<body class=\"gdr\">\n<main>\n", m.title,
		raw(palette+sheet+drawing+levels()+dimming(m)))
	p.header(m)
	p.figure(m)
	p.matrix(m)
	p.checks(m)
	p.unread(m)
	p.devices(m)
	p.f("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// header is the verdict, and where it is a bad one the check that decides it.
func (p *page) header(m *model) {
	p.f("<header><span class=\"status %s\">%s</span><h1>%s</h1>\n<p>%s</p>", string(m.status.like), m.status.word, m.title, m.counts)
	if f := m.cause; f != nil {
		p.f("\n<p class=\"why\">%s: %s", f.Check, f.Detail)
		if f.Fix != "" {
			p.f("<br/><strong>fix:</strong> %s", f.Fix)
		}
		p.f("</p>")
	}
	p.f("</header>\n")
}

// figure holds the picture.
func (p *page) figure(m *model) {
	if m.nothing != "" {
		p.f("<p>%s</p>\n", m.nothing)
	}
	if len(m.panels) > 0 {
		p.f("<figure>\n")
		p.svg(drawTree(m), m, "")
		if m.nothing == "" {
			p.f("<figcaption class=\"hint\">Click a GPU or a NIC, or step with Tab: what is nearest to it stays bright.</figcaption>\n")
		}
		p.f("</figure>\n")
	}
	for _, note := range m.notes {
		p.f("<p class=\"hint\">%s</p>\n", note)
	}
}

// matrix is the table of levels, with what they mean beside it.
func (p *page) matrix(m *model) {
	if m.nothing != "" {
		return
	}
	p.f("<section><h2>Matrix</h2>\n<div class=\"beside\"><div class=\"scroll\"><table class=\"matrix\">\n<caption>How near each GPU is to each NIC</caption>\n<thead><tr><th scope=\"col\">GPU</th>")
	for _, n := range m.nics {
		p.f("<th scope=\"col\">%s</th>", n.name)
	}
	p.f("<th scope=\"col\">NUMA</th></tr></thead>\n<tbody>\n")
	for i, g := range m.gpus {
		p.f("<tr class=\"i %s\"><th scope=\"row\">%s <span class=\"code\">%s</span></th>", strings.Join(rowMarks(g), " "), g.name, view.Short(g.address))
		for _, level := range m.levels[i] {
			p.f("<td class=\"cell %s on-%s\">%s</td>", levelClass(level), levelClass(level), levelWord(level))
		}
		p.f("<td>%s</td></tr>\n", g.numa)
	}
	p.f("</tbody></table></div>\n<dl>\n")
	for _, e := range m.legend {
		p.f("<div><dt class=\"cell %s on-%s\">%s</dt><dd>%s</dd></div>\n", levelClass(e.level), levelClass(e.level), levelWord(e.level), e.meaning)
	}
	p.f("</dl></div></section>\n")
}

func (p *page) devices(m *model) {
	if len(m.gpus)+len(m.nics) == 0 {
		return
	}
	p.f("<section><h2>Devices</h2>\n<div class=\"scroll\"><table class=\"list\">\n<caption>What each GPU and NIC is</caption>\n<thead><tr>")
	for _, head := range []string{"Name", "Address", "Product", "NUMA", "Driver", "State", "Nearest"} {
		p.f("<th scope=\"col\">%s</th>", head)
	}
	p.f("</tr></thead>\n<tbody>\n")
	for _, list := range [][]*device{m.gpus, m.nics} {
		for _, d := range list {
			p.f("<tr><th scope=\"row\">%s</th><td><code>%s</code></td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
				d.name, d.address, d.product, d.numa, d.driver, d.said, d.nearest())
		}
	}
	p.f("</tbody></table></div></section>\n")
}

func (p *page) checks(m *model) {
	p.f("<section><h2>Checks</h2>\n<div class=\"scroll\"><table class=\"list\">\n<caption>What GPUDirect RDMA needs</caption>\n" +
		"<thead><tr><th scope=\"col\">Status</th><th scope=\"col\">Check</th><th scope=\"col\">Found, and what to do</th></tr></thead>\n<tbody>\n")
	for _, f := range m.checks {
		p.f("<tr><td class=\"%s\"><strong>%s</strong></td><th scope=\"row\">%s</th><td>%s", string(f.Status), string(f.Status), f.Check, detail(f))
		if f.Fix != "" {
			p.f("<p><strong>fix:</strong> %s</p>", f.Fix)
		}
		if f.Status != findings.OK {
			p.f("<p class=\"from\">read from: <span class=\"code\">%s</span></p>", strings.Join(f.Sources, " "))
		}
		p.f("</td></tr>\n")
	}
	p.f("</tbody></table></div></section>\n")
}

// unread lists what could not be read, as the tables do.
func (p *page) unread(m *model) {
	if len(m.unread) == 0 {
		return
	}
	const room = 20
	p.f("<section><h2>Not readable</h2>\n<ul>\n")
	for i, problem := range m.unread {
		if i == room {
			p.f("<li>and %d more (check -o json lists them)</li>\n", len(m.unread)-room)
			break
		}
		p.f("<li class=\"code\">%s</li>\n", problem)
	}
	p.f("</ul></section>\n")
}
