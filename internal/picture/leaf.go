package picture

import (
	"gdr-features/internal/view"
	"gdr-features/topology"
)

// drawLeaf draws a device as a box of a width, and gives its height: its name
// with the level it reaches, product, address, notes.
func drawLeaf(n *node, x, y, w int) (part, int) {
	d := n.device
	class := [...]string{gpu: "gpu", nic: "nic", dataDirect: "dd"}[d.kind]
	if !d.counted {
		class += " faint"
	}
	p := part{id: d.id, class: class, marks: n.marks, label: d.label()}
	left, room := x+stripe+padding, w-stripe-2*padding
	at := y + 19
	write := func(s style, class, t string, width int) {
		p.texts = append(p.texts, text{x: left, y: at, style: s, class: class, s: s.fit(t, width)})
		at += 16
	}
	nameRoom := room
	if d.rated {
		badge := badgeFor(d.level, x+w-padding, y+6)
		p.rects, p.texts = append(p.rects, badge.rects...), append(p.texts, badge.texts...)
		nameRoom -= badge.rects[0].w + 4
	}
	write(name, "name", d.name, nameRoom)
	at++
	write(plain, "second", d.product, room)
	if d.address != "" {
		write(mono, "second", view.Short(d.address), room)
	}
	for _, note := range d.notes {
		class := "note"
		if note.bad {
			class = "bad"
		}
		write(plain, class, note.text, room)
	}
	h := at - y - 7
	p.rects = append([]rect{{x, y, w, h, 5, "box"}, {x, y + 5, stripe + 1, h - 10, 0, "stripe " + levelClass(d.level)}}, p.rects...)
	return p, h
}

// badgeFor writes a level on its colour, ending at x.
func badgeFor(l topology.Level, x, y int) part {
	word := levelWord(l)
	w := strong.width(word) + 10
	return part{
		rects: []rect{{x - w, y, w, 17, 3, "cell " + levelClass(l)}},
		texts: []text{{x: x - w/2, y: y + 13, align: middle, style: strong, class: "on-" + levelClass(l), s: word}},
	}
}

func levelWord(l topology.Level) string {
	if l == topology.Unknown {
		return "?"
	}
	return l.String()
}

// levelClass is the class that colours a level.
func levelClass(l topology.Level) string {
	if l == topology.Unknown {
		return "unknown"
	}
	return l.String()
}
