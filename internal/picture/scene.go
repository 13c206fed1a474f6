package picture

import "strings"

// scene is a layout: parts in the order in which they are painted and stepped
// through, in whole pixels from the upper left.
type scene struct {
	w, h  int
	parts []part
}

// part is what belongs together: one box with its words, or some lines.
type part struct {
	id string
	// class says how it is coloured; marks are the devices with which it stays
	// bright. label is what a screen reader says; "" for mere decoration.
	class string
	marks []string
	label string
	rects []rect
	paths []path
	texts []text
}

type rect struct {
	x, y, w, h, radius int
	class              string
}

// path is a line along its points.
type path struct {
	points []point
	class  string
}

type point struct{ x, y int }

// text stands on its baseline at y, and at x begins, has its middle, or ends.
type text struct {
	x, y  int
	align align
	style style
	class string
	s     string
}

type align uint8

const (
	start align = iota
	middle
	end
)

// add takes over another scene's parts, moved.
func (s *scene) add(o scene, dx, dy int) {
	for _, p := range o.parts {
		s.parts = append(s.parts, p.moved(dx, dy))
	}
	s.w, s.h = max(s.w, o.w+dx), max(s.h, o.h+dy)
}

// moved moves a part, which is not to be used any more.
func (p part) moved(dx, dy int) part {
	for i := range p.rects {
		p.rects[i].x += dx
		p.rects[i].y += dy
	}
	for i := range p.texts {
		p.texts[i].x += dx
		p.texts[i].y += dy
	}
	for i := range p.paths {
		for j := range p.paths[i].points {
			p.paths[i].points[j].x += dx
			p.paths[i].points[j].y += dy
		}
	}
	return p
}

// below stacks scenes with a gap; empty ones take no room.
func below(gap int, scenes ...scene) scene {
	var out scene
	for _, s := range scenes {
		if len(s.parts) == 0 {
			continue
		}
		y := out.h
		if y > 0 {
			y += gap
		}
		out.add(s, 0, y)
	}
	return out
}

// flow puts scenes side by side with a gap, and goes on below where a width is
// used up.
func flow(width, gap, between int, scenes []scene) scene {
	var out, row scene
	for _, s := range scenes {
		if len(row.parts) > 0 && row.w+gap+s.w > width {
			out = below(between, out, row)
			row = scene{}
		}
		x := row.w
		if x > 0 {
			x += gap
		}
		row.add(s, x, 0)
	}
	return below(between, out, row)
}

// classes joins the classes of a part: i takes part in dimming.
func (p *part) classes() string {
	words := []string{}
	if p.class != "" {
		words = append(words, p.class)
	}
	if len(p.marks) > 0 {
		words = append(words, "i")
		words = append(words, p.marks...)
	}
	return strings.Join(words, " ")
}
