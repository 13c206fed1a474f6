package snapshot

import (
	"cmp"
	"slices"
)

// content is what was read of a file, in pieces: of configuration space only a
// few bytes here and there are.
type content struct {
	parts []part // sorted, neither overlapping nor touching
	// ended: a read at end gave nothing.
	ended bool
	end   int64
	// fault is what a read at failed gave.
	fault  fault
	failed int64
	// busy: a read at asked has not come back.
	busy  bool
	asked int64
}

type part struct {
	at   int64
	data []byte
}

func (p part) end() int64 { return p.at + int64(len(p.data)) }

// read fills buf from an offset. ok is false where nothing is known; on a tape
// that was read back, a file that failed somewhere fails there too.
func (c *content) read(buf []byte, offset int64, replay bool) (n int, f fault, ok bool) {
	for _, p := range c.parts {
		if p.at <= offset && offset < p.end() {
			return copy(buf, p.data[offset-p.at:]), "", true
		}
	}
	switch {
	case c.ended && offset >= c.end:
		return 0, "", true
	case c.fault != "" && (offset == c.failed || replay):
		return 0, c.fault, true
	}
	return 0, "", false
}

// keep takes down what a read at an offset gave: bytes, the end, or an error.
func (c *content) keep(data []byte, offset int64, err error) {
	f := faultOf(err)
	if f == "" && len(data) == 0 {
		c.finish(offset)
		return
	}
	c.store(data, offset)
	if f != "" {
		c.fail(f, offset+int64(len(data)))
	}
}

// store keeps what a read at an offset gave that was not known.
func (c *content) store(data []byte, offset int64) {
	i, _ := slices.BinarySearchFunc(c.parts, offset, func(p part, at int64) int { return cmp.Compare(p.at, at) })
	if i < len(c.parts) && offset+int64(len(data)) > c.parts[i].at {
		data = data[:c.parts[i].at-offset]
	}
	if len(data) == 0 {
		return
	}
	if i > 0 && c.parts[i-1].end() == offset {
		i--
		c.parts[i].data = append(c.parts[i].data, data...)
	} else {
		c.parts = slices.Insert(c.parts, i, part{offset, slices.Clone(data)})
	}
	if i+1 < len(c.parts) && c.parts[i].end() == c.parts[i+1].at {
		c.parts[i].data = append(c.parts[i].data, c.parts[i+1].data...)
		c.parts = slices.Delete(c.parts, i+1, i+2)
	}
}

// finish keeps that the file ends at an offset.
func (c *content) finish(offset int64) {
	if !c.ended || offset < c.end {
		c.ended, c.end = true, offset
	}
}

// fail keeps that reading failed at an offset.
func (c *content) fail(f fault, offset int64) {
	if c.fault == "" {
		c.fault, c.failed = f, offset
	}
}

// last is the offset behind the last byte.
func (c *content) last() int64 {
	if len(c.parts) == 0 {
		return 0
	}
	return c.parts[len(c.parts)-1].end()
}

// whole gives the bytes of a file of which everything from the beginning up to
// where reading stopped is known.
func (c *content) whole() (data []byte, ok bool) {
	switch {
	case len(c.parts) == 0:
		return nil, true
	case len(c.parts) == 1 && c.parts[0].at == 0:
		return c.parts[0].data, true
	}
	return nil, false
}
