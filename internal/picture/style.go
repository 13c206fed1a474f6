package picture

import (
	"fmt"
	"strings"
)

// palette gives every colour a name, for light and for dark. The five levels
// differ for the colour-blind, too (hue and lightness both), and always have
// their words; the nearer, the stronger.
const palette = `:root{color-scheme:light dark;
--paper:#fff;--ink:#17202b;--mut:#515d6e;--panel:#f3f5f8;--rim:#d5dbe4;--edge:#8d99aa;--bar:#3d4a5c;
--gpu:#222e3f;--gpu-ink:#fff;--gpu-mut:#c6d0dd;--nic:#fff;--nic-rim:#9aa6b6;--switch:#dfe5ed;
--PIX:#0a7a55;--PIX-ink:#fff;--PIX-line:#0a7a55;--PXB:#1d63b8;--PXB-ink:#fff;--PXB-line:#1d63b8;
--PHB:#fbe6ae;--PHB-ink:#614300;--PHB-line:#b78103;--NODE:#fbe0cf;--NODE-ink:#7d340a;--NODE-line:#d0601a;
--SYS:#f5e3ec;--SYS-ink:#80204f;--SYS-line:#b0447c;--unknown:#e7eaef;--unknown-ink:#47525f;--unknown-line:#8d99aa;
--good:#0a6b4b;--warn:#8a5300;--fail:#b3261e;--focus:#0b57d0}
@media (prefers-color-scheme:dark){:root{
--paper:#10151c;--ink:#e8edf4;--mut:#a5b1c0;--panel:#19212b;--rim:#2d3846;--edge:#67758a;--bar:#93a1b5;
--gpu:#33445c;--gpu-ink:#fff;--gpu-mut:#cdd7e4;--nic:#10151c;--nic-rim:#56647a;--switch:#263140;
--PIX:#22a97c;--PIX-ink:#03130d;--PIX-line:#22a97c;--PXB:#6aa7f2;--PXB-ink:#04101f;--PXB-line:#6aa7f2;
--PHB:#43370f;--PHB-ink:#f5d478;--PHB-line:#d6a625;--NODE:#472a12;--NODE-ink:#f7b585;--NODE-line:#e2853f;
--SYS:#401d30;--SYS-ink:#f3abce;--SYS-line:#d36a9f;--unknown:#2a3340;--unknown-ink:#c3ccd8;--unknown-line:#67758a;
--good:#4fd1a5;--warn:#f0b95b;--fail:#ff8a80;--focus:#8ab4f8}}
`

// Font stacks: what a system has. Widths are reckoned for the widest of them.
const (
	sans  = `"Segoe UI",Roboto,"Helvetica Neue",Arial,"Liberation Sans","DejaVu Sans",sans-serif`
	fixed = `ui-monospace,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace`
)

// drawing styles what is in the SVG.
const drawing = `.gdr text{font-family:` + sans + `}
.gdr text.mono{font-family:` + fixed + `}
.gdr .b{font-weight:600}
.gdr .ink{fill:var(--ink)}.gdr .mut,.gdr .second{fill:var(--mut)}.gdr .name{fill:var(--ink)}
.gdr .note{fill:var(--good)}.gdr .bad{fill:var(--fail)}
.gdr rect.paper{fill:var(--paper)}
.gdr rect.panel{fill:var(--panel);stroke:var(--rim)}
.gdr rect.bar{fill:var(--bar)}
.gdr rect.switch{fill:var(--switch)}
.gdr .nic .box,.gdr .dd .box{fill:var(--nic);stroke:var(--nic-rim)}
.gdr .gpu .box{fill:var(--gpu)}
.gdr .gpu .name{fill:var(--gpu-ink)}.gdr .gpu .second,.gdr .gpu .note,.gdr .gpu .bad{fill:var(--gpu-mut)}
.gdr .faint .box{fill:var(--panel);stroke:var(--edge);stroke-dasharray:4 3}
.gdr .faint .name,.gdr .faint .second,.gdr .faint .note,.gdr .faint .bad{fill:var(--mut)}
.gdr path.edge{fill:none;stroke:var(--edge);stroke-width:1.5}
.gdr [tabindex]{cursor:pointer;outline:none}
.gdr [tabindex]:focus .box{stroke:var(--focus);stroke-width:3;stroke-dasharray:none}
.gdr .i{transition:opacity .12s}
@media (prefers-reduced-motion:reduce){.gdr .i{transition:none}}
@media print{.gdr .i{opacity:1!important}}
`

// levels colours cells, the words on them, and lines.
func levels() string {
	var css strings.Builder
	for _, l := range []string{"PIX", "PXB", "PHB", "NODE", "SYS", "unknown"} {
		fmt.Fprintf(&css, ".gdr .cell.%[1]s{fill:var(--%[1]s);background:var(--%[1]s)}"+
			".gdr .on-%[1]s{fill:var(--%[1]s-ink);color:var(--%[1]s-ink)}.gdr .stripe.%[1]s{fill:var(--%[1]s-line)}", l)
		if l != "unknown" {
			fmt.Fprintf(&css, ".gdr path.%[1]s{stroke:var(--%[1]s-line);stroke-width:3}", l)
		}
		css.WriteString("\n")
	}
	return css.String()
}

// dimming leaves bright what belongs to the device that has the focus: a rule a
// device, no script.
func dimming(m *model) string {
	var css strings.Builder
	for _, list := range [][]*device{m.gpus, m.nics} {
		for _, d := range list {
			fmt.Fprintf(&css, ".gdr:has(#%[1]s:focus) .i:not(.%[1]s){opacity:.22}\n", d.id)
		}
	}
	return css.String()
}
