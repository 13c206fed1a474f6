package image

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"gdr-features/test/library"
)

// TestCache: both forms of the loader's cache, and what is none.
func TestCache(t *testing.T) {
	newer := library.Cache("/lib/libc.so.6", "/usr/lib/libibverbs.so.1", "/opt/libibverbs.so.1")
	old := append([]byte("ld.so-1.7.0\x00"), make([]byte, 4+12)...)
	binary.LittleEndian.PutUint32(old[12:], 1)
	old = append(old, make([]byte, (8-len(old)%8)%8)...)
	hardware := bytes.Clone(newer)
	binary.LittleEndian.PutUint64(hardware[48+24+16:], 1<<62)
	for name, test := range map[string]struct {
		data []byte
		want []string
		err  bool
	}{
		"newer":                      {newer, []string{"/usr/lib/libibverbs.so.1", "/opt/libibverbs.so.1"}, false},
		"behind the old one":         {append(old, newer...), []string{"/usr/lib/libibverbs.so.1", "/opt/libibverbs.so.1"}, false},
		"for some processors":        {hardware, []string{"/opt/libibverbs.so.1"}, false},
		"no text":                    {newer[:48+72], nil, false},
		"cut":                        {newer[:48+71], nil, true},
		"old alone":                  {old, nil, true},
		"an old one of a great size": {append([]byte("ld.so-1.7.0\x00\xff\xff\xff\xff"), newer...), nil, true},
		"empty":                      {nil, nil, true},
	} {
		paths, err := parseCache(test.data)
		if (err != nil) != test.err || !slices.Equal(paths["libibverbs.so.1"], test.want) {
			t.Errorf("%s: %q, %v", name, paths, err)
		}
	}
}

func FuzzCache(f *testing.F) {
	f.Add(library.Cache("/lib/libc.so.6", "/usr/lib/libibverbs.so.1"))
	f.Add([]byte("ld.so-1.7.0\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		paths, err := parseCache(data)
		if (err != nil) != (paths == nil) {
			t.Errorf("%q, %v", paths, err)
		}
		for _, list := range paths {
			if slices.Contains(list, "") {
				t.Error("an empty path")
			}
		}
	})
}
