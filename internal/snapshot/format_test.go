package snapshot

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// every has each form that a snapshot knows.
const every = magic + `
# gdr-features v1.2.3
# taken 2026-01-02T03:04:05Z

/proc/cpuinfo
|processor	: 0
|
|flags		: fpu
\no newline here
/proc/empty
/proc/kallsyms
|0000000000000000 T _text
...
/sys/bus/pci/devices/0000:15:01.0/config
:100 0100811400000000
:148 0d0001005f001d00
...
/sys/bus/pci/devices/0000:18:00.0/config
:0 0001
.40
/sys/bus/pci/devices/0000:18:00.0/vpd !EACCES
/sys/bus/pci/devices/0000:19:00.0/config
:0 0001
!EIO 100
.200
/sys/class/infiniband/
- mlx5_0
- "with space"
/sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:15/0000:19:00.0/infiniband/mlx5_0
/sys/class/infiniband/mlx5_0/ports/ !no-answer
/sys/class/infiniband/mlx5_0/ports/1/rate
!EIO
/sys/class/infiniband/mlx5_0/ports/1/state
|4: 
!no-answer
/sys/class/infiniband/mlx5_1 -> !EINVAL
/sys/class/infiniband/mlx5_1/
/sys/devices/many/
- a
!too-large
/sys/devices/node -> "\xff \u00fc"
/sys/kernel/mm exists no
/sys/module/
...
/sys/module/mlx_compat exists yes
/sys/module/nvidia exists !EACCES
/sys/module/nvidia/initstate = live
/sys/module/odd
|two
|lines
/sys/module/spaces
| live
"/sys/with space" = x
"/sys/with space"/
- x
end
`

// TestForms: what is written is read, and written again the same.
func TestForms(t *testing.T) {
	got := again(t, every)
	// By name in bytes, "/" comes after " ": that order is not the one above.
	want := strings.Replace(every, `"/sys/with space" = x
"/sys/with space"/
- x
`, `"/sys/with space"/
- x
"/sys/with space" = x
`, 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := again(t, strings.ReplaceAll(every, "\n", "\r\n")); got != want {
		t.Error("lines that end in CR LF are read otherwise")
	}
}

// again reads a snapshot and writes it.
func again(t *testing.T, text string) string {
	t.Helper()
	return written(t, parse(t, text))
}

// Files are written so that people can read them.
func TestContentForms(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{"live\n", "/f = live\n"},
		{"32.0 GT/s PCIe\n", "/f = 32.0 GT/s PCIe\n"},
		{"\n", "/f\n|\n"},
		{"", "/f\n"},
		{"live", "/f\n\\live\n"},
		{" live\n", "/f\n| live\n"},
		{"one\ntwo\n", "/f\n|one\n|two\n"},
		{"one\r\n", "/f\n:0 6f6e650d0a\n"},
		{"caf\u00e9\n", "/f\n:0 636166c3a90a\n"},
		{strings.Repeat("\x00", 33), "/f\n:0 " + strings.Repeat("00", 32) + "\n:20 00\n"},
	} {
		a := &answer{}
		a.note([]byte(tt.content), 0, io.EOF)
		var w bytes.Buffer
		a.write(&w, "/f", read)
		if w.String() != tt.want {
			t.Errorf("%q is written as\n%s", tt.content, w.String())
		}
	}
}

// A stranger's file may hold anything: one clear line tells what is wrong with it.
func TestMalformed(t *testing.T) {
	begin := magic + "\n\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", `not a snapshot: does not begin with "gdr-features snapshot 1"`},
		{"something else", "\x7fELF\x02\x01", `not a snapshot: does not begin with "gdr-features snapshot 1"`},
		{"a later format", "gdr-features snapshot 2\n\nend\n", `not a snapshot: does not begin with "gdr-features snapshot 1"`},
		{"cut off", begin + "/sys/a = 1\n", `line 3: it is cut off: the line "end" is missing`},
		{"something behind the end", begin + "end\n/sys/a = 1\n", "line 3: not a line of a snapshot"},
		{"no name", begin + "live\nend\n", "line 3: not a line of a snapshot"},
		{"the root itself", begin + "/ = 1\nend\n", "line 3: not a line of a snapshot"},
		{"no such form", begin + "/sys/a is 1\nend\n", "line 3: not a line of a snapshot"},
		{"no such error", begin + "/sys/a !ENOSUCH\nend\n", "line 3: not a line of a snapshot"},
		{"content of nothing", begin + "|text\nend\n", "line 3: not a line of a snapshot"},
		{"open quotation", begin + "\"/sys/a = 1\nend\n", "line 3: not a line of a snapshot"},
		{"told twice", begin + "/sys/a = 1\n/sys/a = 2\nend\n", "line 4: told twice"},
		{"linked twice", begin + "/sys/a -> b\n/sys/a -> c\nend\n", "line 4: told twice"},
		{"listed twice", begin + "/sys/a/\n- b\n/sys/a/\nend\n", "line 5: told twice"},
		{"an entry that leads up", begin + "/sys/a/\n- ../../etc\nend\n", "line 4: not a line of a snapshot"},
		{"an entry without a name", begin + "/sys/a/\n- \"\"\nend\n", "line 4: not a line of a snapshot"},
		{"a name for the terminal", begin + "/sys/a/\n- \"\\x1b[2J\"\nend\n", "line 4: not a line of a snapshot"},
		{"a target for the terminal", begin + "/sys/a -> \"\\u009b2J\"\nend\n", "line 3: not a line of a snapshot"},
		{"a plain name for the terminal", begin + "/sys/a\x1b[2J -> b\nend\n", "line 3: not a line of a snapshot"},
		{"a plain target for the terminal", begin + "/sys/a -> \x1b[2J\nend\n", "line 3: not a line of a snapshot"},
		{"a plain entry for the terminal", begin + "/sys/a/\n- mlx5_\u202e0\nend\n", "line 4: not a line of a snapshot"},
		{"an entry that turns text", begin + "/sys/a/\n- \"mlx5_\\u202e0\"\nend\n", "line 4: not a line of a snapshot"},
		{"a name longer than any path", begin + "/sys/" + strings.Repeat("a/", 2048) + " = 1\nend\n", "line 3: not a line of a snapshot"},
		{"a target longer than any link", begin + "/sys/a -> " + strings.Repeat("0000:00:00.0/", 316) + "\nend\n", "line 3: not a line of a snapshot"},
		{"half a list", begin + "/sys/a/\n....\nend\n", "line 4: not a line of a snapshot"},
		{"half a byte", begin + "/sys/a\n:0 012\nend\n", "line 4: not a line of a snapshot"},
		{"backwards", begin + "/sys/a\n:8 01\n:0 01\nend\n", "line 5: not a line of a snapshot"},
		{"a negative offset", begin + "/sys/a\n:-8 01\nend\n", "line 4: not a line of a snapshot"},
		{"beyond any file", begin + "/sys/a\n:7fffffffffffffff 01\nend\n", "line 4: not a line of a snapshot"},
		{"an end of nowhere", begin + "/sys/a\n.x\nend\n", "line 4: not a line of a snapshot"},
		{"two links", begin + "/sys/a -> b c\nend\n", "line 3: not a line of a snapshot"},
		{"too large", begin + strings.Repeat("\n", maxText), "larger than a snapshot can be"},
		{"too many", begin + strings.Repeat("/sys/a/\n", maxEntries+1), "line 4: told twice"},
		{"too many entries", begin + "/sys/a/\n" + strings.Repeat("- a\n", maxNames+1), "line 4100: more entries than a machine has"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// FuzzParse reads anything: no panic, and what is accepted is written in a form
// that is read and written the same.
func FuzzParse(f *testing.F) {
	f.Add(every)
	for line := range strings.Lines(every) {
		f.Add(magic + "\n\n" + line + "end\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		recording, err := Parse(text)
		if err != nil {
			return
		}
		first := written(t, recording)
		if diff := cmp.Diff(first, again(t, first)); diff != "" {
			t.Errorf("written again (-first +second):\n%s", diff)
		}
		recording.Scrub()
		again(t, written(t, recording))
	})
}
