package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const begin2 = `{"format":"gdr-features snapshot 2","notes":[]}` + "\n"

const begin = `{"format":"gdr-features snapshot 3","notes":["gdr-features v1.2.3"]}` + "\n"

// every has each form that a snapshot knows.
const every = begin +
	`{"read":"/proc/cpuinfo","text":"processor\t: 0\n\nflags\t\t: fpu\nno newline here"}
{"read":"/proc/empty"}
{"read":"/proc/kallsyms","text":"0000000000000000 T _text\n","stop":"more"}
{"read":"/sys/bus/pci/devices/0000:15:01.0/config","hex":"00000000010081140d000100","stop":"more"}
{"read":"/sys/bus/pci/devices/0000:18:00.0/vpd","error":"EACCES"}
{"read":"/sys/bus/pci/devices/0000:19:00.0/config","hex":"0001","stop":"EIO"}
{"list":"/sys/class/infiniband","names":["mlx5_0","with space"]}
{"link":"/sys/class/infiniband/mlx5_0","to":"../../devices/pci0000:15/0000:19:00.0/infiniband/mlx5_0"}
{"list":"/sys/class/infiniband/mlx5_0/ports","error":"no-answer"}
{"read":"/sys/class/infiniband/mlx5_0/ports/1/rate","stop":"EIO"}
{"read":"/sys/class/infiniband/mlx5_0/ports/1/state","error":"no-answer"}
{"link":"/sys/class/infiniband/mlx5_1","error":"EINVAL"}
{"list":"/sys/class/infiniband/mlx5_1"}
{"list":"/sys/devices/many","names":["a"],"stop":"too-large"}
{"link":"/sys/devices/node","to":"<\u00fc> &"}
{"exists":"/sys/kernel/mm","error":"ENOENT"}
{"exists":"/sys/module/mlx_compat"}
{"exists":"/sys/module/nvidia","error":"EACCES"}
{"read":"/sys/module/nvidia/initstate","text":"live\n"}
{"list":"/sys/with space","names":["x"]}
{"read":"/sys/with space","text":"x\n"}
{"end":true}
`

// TestForms: what is written is read, and written again the same.
func TestForms(t *testing.T) {
	want := strings.ReplaceAll(every, `\u00fc`, "ü")
	if diff := cmp.Diff(want, again(t, every)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := again(t, strings.ReplaceAll(every, "\n", "\r\n")+"\n\n"); got != want {
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
	for content, want := range map[string]string{
		"live\n":                   `"text":"live\n"`,
		"\n":                       `"text":"\n"`,
		"no newline":               `"text":"no newline"`,
		"one\r\n":                  `"hex":"6f6e650d0a"`,
		"caf\u00e9\n":              `"hex":"636166c3a90a"`,
		strings.Repeat("\x00", 33): `"hex":"` + strings.Repeat("00", 33) + `"`,
	} {
		r := &Recording{answers: map[question]*answer{{name: "f", kind: read}: {data: []byte(content)}}}
		if got := written(t, r); !strings.Contains(got, `{"read":"/f",`+want+"}\n") {
			t.Errorf("%q is written as\n%s", content, got)
		}
	}
}

// A file from a stranger may contain anything: one clear line says what is wrong
// with it.
func TestMalformed(t *testing.T) {
	const none, again = "not a snapshot of gdr-features", "a snapshot of an older format; take it again with this version of gdr-features"
	const end = `{"end":true}` + "\n"
	form := func(line string) string { return begin + line + "\n" + end }
	longest := strings.Repeat("a/", 2048)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", none},
		{"something else", "\x7fELF\x02\x01", none},
		{"other JSON", "{\"kind\":\"Pod\"}\n", none},
		{"a later format", `{"format":"gdr-features snapshot 4"}` + "\n" + end, `format "gdr-features snapshot 4"; this version of gdr-features reads "gdr-features snapshot 3"`},
		{"an older format", begin2 + end, again},
		{"the oldest format", "gdr-features snapshot 1\n\nend\n", again},
		{"cut off", begin + `{"exists":"/sys/a"}` + "\n", "line 2: it is cut off: the last line is missing"},
		{"cut off within a line", begin + `{"exists":"/sys/`, "line 2: not a line of a snapshot"},
		{"something after the end", begin + end + `{"exists":"/sys/a"}`, "line 3: a line after the end"},
		{"no JSON", form("live"), "line 2: not a line of a snapshot"},
		{"two objects", form(`{"exists":"/sys/a"} {}`), "line 2: not a line of a snapshot"},
		{"no question", form(`{"text":"live"}`), "line 2: not a line of a snapshot"},
		{"two questions", form(`{"link":"/a","read":"/a"}`), "line 2: not a line of a snapshot"},
		{"the root itself", form(`{"list":"/"}`), "line 2: not a line of a snapshot"},
		{"no such field", form(`{"exists":"/sys/a","mode":1}`), "line 2: not a line of a snapshot"},
		{"another kind of value", form(`{"exists":"/sys/a","names":1}`), "line 2: not a line of a snapshot"},
		{"no such error", form(`{"exists":"/sys/a","error":"ENOSUCH"}`), "line 2: not a line of a snapshot"},
		{"a question twice", begin + "\n" + strings.Repeat(`{"exists":"/sys/a"}`+"\n", 2) + end, "line 4: this was answered in an earlier line"},
		{"an entry that leads up", form(`{"list":"/sys/a","names":["../../etc"]}`), "line 2: not a line of a snapshot"},
		{"an entry without a name", form(`{"list":"/sys/a","names":[""]}`), "line 2: not a line of a snapshot"},
		{"a name for the terminal", form(`{"list":"/sys/a","names":["\u001b[2J"]}`), "line 2: not a line of a snapshot"},
		{"a target for the terminal", form(`{"link":"/sys/a","to":"\u009b2J"}`), "line 2: not a line of a snapshot"},
		{"a path for the terminal", form(`{"exists":"/sys/a\u001b[2J"}`), "line 2: not a line of a snapshot"},
		{"an entry that turns text", form("{\"list\":\"/sys/a\",\"names\":[\"mlx5_\u202e0\"]}"), "line 2: not a line of a snapshot"},
		{"a name longer than any path", form(`{"exists":"/` + longest + `a"}`), "line 2: not a line of a snapshot"},
		{"a target longer than any link", form(`{"link":"/a","to":"` + longest + `a"}`), "line 2: not a line of a snapshot"},
		{"half a byte", form(`{"read":"/a","hex":"012"}`), "line 2: not a line of a snapshot"},
		{"two contents", form(`{"read":"/a","hex":"01","text":"a"}`), "line 2: not a line of a snapshot"},
		{"ranges of an older format", form(`{"read":"/a","bytes":[{"at":8,"hex":"01"}]}`), "line 2: not a line of a snapshot"},
		{"too large", begin + strings.Repeat("\n", maxText), "larger than a snapshot can be"},
		{"too many pairs", form(classes("0x030200", 520) + `{"list":"/sys/class/infiniband","names":["b"` + strings.Repeat(`,"b"`, 519) + `]}`), "more than a machine has: 520 GPUs and 520 NICs"},
		{"too many entries", form(`{"list":"/a","names":["b"` + strings.Repeat(`,"b"`, maxNames) + `]}`), "line 2: more than a machine has"},
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
		f.Add(begin + line + `{"end":true}`)
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

// classes are lines about functions of a PCI class.
func classes(class string, count int) string {
	var b strings.Builder
	for n := range count {
		fmt.Fprintf(&b, `{"read":"/sys/bus/pci/devices/0000:%02x:%02x.%d/class","text":"%s\n"}`+"\n", n>>8, n>>3&31, n&7, class)
	}
	return b.String()
}
