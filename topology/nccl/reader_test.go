package nccl

import (
	"errors"
	"strings"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// TestRefused: what NCCL 2.30.7's own reader said of each of these texts. It refuses those that are
// no XML too.
func TestRefused(t *testing.T) {
	const good = `<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x030200"/></cpu></system>`
	with := func(old, text string) string { return strings.Replace(good, old, text, 1) }
	many := func(n int) string {
		return with(`<pci busid="0000:01:00.0" class="0x030200"/>`, strings.Repeat(`<pci busid="ffff:ff:01.0"/>`, n))
	}
	for _, tt := range []struct {
		name, text string
		want       string // "" where NCCL takes it
	}{
		{"as NCCL writes it", good, ""},
		{"line ends between tags", strings.ReplaceAll(good, "><", ">\n  <") + "\n", ""},
		{"two hyphens in a comment", "<!-- a -- b -->" + good, ""},
		{"version 1 in hexadecimal, and text behind", with(`"1"`, `"0x1 "`), ""},
		{"two spaces between attributes", with(" class", "  class"), ""},
		{"a space in front of the end of a tag", with("/>", " />"), ""},
		{"an element that NCCL does not know", with("<cpu", `<a><b c="d">`+"</b></a><cpu"), ""},
		{"values in single quotes", strings.ReplaceAll(good, `"`, "'"), ""},
		{"254 elements", many(252), ""},
		{"no version", with(` version="1"`, ""), `line 1: the element system has no version="1", which NCCL wants`},
		{"version 2", with(`"1"`, `"2"`), `line 1: the element system has no version="1", which NCCL wants`},
		{"a version that NCCL does not decode", with(`"1"`, `"&#49;"`), `line 1: the element system has no version="1", which NCCL wants`},
		{"a version in a namespace", with(`version=`, `xmlns:version=`), `line 1: the element system has no version="1", which NCCL wants`},
		{"an XML declaration", `<?xml version="1.0"?>` + good, "line 1: an XML declaration"},
		{"one with a space at its end", `<?xml version="1.0" ?>` + "\n" + good, "line 1: an XML declaration"},
		{"an equals sign in the first word of a comment", "<!--===-->" + good, `line 1: "=" in the first word of a comment`},
		{"an equals sign further behind", "<!-- = -->" + good, ""},
		{"a comment that does not end where it seems to", "<!--> " + good, "XML syntax error"},
		{"a tab between attributes", with(" class", "\tclass"), "line 1: text or a tag that NCCL does not read"},
		{"a tab after a name", with("<pci ", "<pci\t"), "line 1: text or a tag that NCCL does not read"},
		{"a line end between attributes", with(" class", "\n class"), "line 1: text or a tag that NCCL does not read"},
		{"a tab between tags", with("<cpu", "\n\t<cpu"), "line 2: text or a tag that NCCL does not read"},
		{"text behind the end", good + "\nend", "line 2: text or a tag that NCCL does not read"},
		{"an end too many", good + "</system>", "XML syntax error"},
		{"no end", strings.TrimSuffix(good, "</system>"), "XML syntax error"},
		{"cut off", good[:40], "XML syntax error"},
		{"a comment without end", good + "<!-- a", "XML syntax error"},
		{"a value behind the slash of a tag", with("/>", `/a="b">`), "XML syntax error"},
		{"no quotation marks", with(`"1"`, "1"), "XML syntax error"},
		{"a value of 254 characters", with("0x030200", strings.Repeat("0", 254)), "line 1: a value of more than 253 characters"},
		{"a value of 253 characters", with("0x030200", strings.Repeat("0", 253)), ""},
		{"256 elements", many(254), "line 1: 256 elements or more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := ParseFile([]byte(tt.text))
			if err == nil {
				err = f.RefusedFor(nil)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestReadByRCCL: RCCL wants version 2, and takes many more elements
// (ROCm/rccl src/graph/xml.h, 0cbce2a7).
func TestReadByRCCL(t *testing.T) {
	file := func(version string, elements int) string {
		return `<system version="` + version + `"><cpu numaid="0">` +
			strings.Repeat(`<pci busid="0000:01:00.0" class="0x030200"/>`, elements-2) + `</cpu></system>`
	}
	amd, nvidia := gpu(t, "0000:01:00.0"), gpu(t, "0000:01:00.0")
	amd.GPU = &family.GPU{RCCL: true}
	for _, tt := range []struct {
		text       string
		amd, other bool // accepted
	}{
		{file("1", 3), false, true},
		{file("2", 3), true, false},
		{file("2", 300), true, false},
		{file("2", 8191), true, false},
		{file("2", 8192), false, false},
		{file("1", 300), false, false},
	} {
		f, err := ParseFile([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		byAMD, byNVIDIA := f.RefusedFor([]*pci.Function{amd}), f.RefusedFor([]*pci.Function{nvidia})
		both, none := f.RefusedFor([]*pci.Function{amd, nvidia}), f.RefusedFor(nil)
		if (byAMD == nil) != tt.amd || (byNVIDIA == nil) != tt.other || !errors.Is(both, byNVIDIA) || !errors.Is(none, byNVIDIA) {
			t.Errorf("%.30s, %d bytes: %v, %v, %v, %v", tt.text, len(tt.text), byAMD, byNVIDIA, both, none)
		}
	}
}
