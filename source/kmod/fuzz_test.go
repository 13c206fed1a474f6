package kmod

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/tristate"
)

// The forms once more, written independently of the parsers.
var (
	driverForm = regexp.MustCompile(`^[0-9]{3,4}(\.[0-9]{1,4}){1,2}$`)
	mofedForm  = regexp.MustCompile(`^([0-9]{1,4})\.([0-9]{1,4})-[0-9][0-9A-Za-z._-]*$`)
)

func FuzzParseDriver(f *testing.F) {
	for _, seed := range []string{
		openLine, closedLine, closedLine + "GCC version:  gcc version 12.3.0\n",
		"NVRM version: Kernel Module", "NVRM version: Kernel Module 418.67", "", "\n", "nouveau", "GCC version: 12.3.0\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		open, version := parseDriver(text)
		line, _, _ := strings.Cut(text, "\n")
		known := strings.HasPrefix(line, "NVRM version:") && strings.Contains(line, "Kernel Module")
		if (open != tristate.Unknown) != known || (open == tristate.True) != (known && strings.Contains(line, "Open Kernel Module")) {
			t.Errorf("open: %v", open)
		}
		want := ""
		for word := range strings.FieldsSeq(line) {
			if known && want == "" && driverForm.MatchString(word) {
				want = word
			}
		}
		if version != want {
			t.Errorf("version %q, want %q", version, want)
		}
	})
}

func FuzzRelease(f *testing.F) {
	for _, seed := range []string{
		"24.10-1.1.4", "5.8-1.1.2", "4.9-4.0.8", "5.0-0", "4.0-0", "1.0", "24.10-1.1.4.0.ubuntu22_04",
		"", "-", ".-", "24.10", "24.10-", "99999.1-1", "24.10-rc1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		major, minor, ok := release(text)
		form := mofedForm.FindStringSubmatch(text)
		if ok != (form != nil) {
			t.Fatalf("accepted: %v, has the form: %v", ok, form != nil)
		}
		if !ok {
			if major != 0 || minor != 0 || isMOFEDVersion(text) {
				t.Errorf("refused with %d.%d, MOFED's: %v", major, minor, isMOFEDVersion(text))
			}
			return
		}
		for i, n := range []int{major, minor} {
			if want, err := strconv.Atoi(form[i+1]); n != want || err != nil {
				t.Errorf("number %d is %d, want %s", i, n, form[i+1])
			}
		}
	})
}

// naive is searchSymbols in its simplest form: line by line, with regular
// expressions.
func naive(text []byte) (Symbols, error) {
	if len(text) == 0 {
		return Symbols{}, host.ErrEmpty
	}
	if !isSymbolLine(text) {
		return Symbols{}, errNoTable
	}
	found := Symbols{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if len(line) > MaxLine && len(found) < len(all) {
			return found, errNoTable
		}
		for name, form := range symbolForms {
			if m := form.FindStringSubmatch(line); m != nil && found[name].Found != tristate.True {
				found[name] = Symbol{tristate.True, m[1]}
			}
		}
	}
	for _, name := range all {
		if found[name].Found != tristate.True {
			found[name] = Symbol{Found: tristate.False}
		}
	}
	return found, nil
}

// symbolForms match a function, or the entry of its export, with its owner.
var symbolForms = func() map[string]*regexp.Regexp {
	forms := map[string]*regexp.Regexp{}
	for _, symbol := range all {
		forms[symbol] = regexp.MustCompile(`(?s)^[^ ]* (?:[tT] ` + symbol + `(?:$|[\t \r.])|. __ksymtab_` + symbol + `(?:$|[\t \r]))(?:[^\[]*\[([^\]]*))?`)
	}
	return forms
}()

func FuzzSearchSymbols(f *testing.F) {
	const head = "ffffffff81000000 T _stext\n"
	for _, seed := range []string{
		head + "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n",
		head + "0000000000000000 t ib_umem_dmabuf_get_pinned\t[ib_uverbs]\n0000000000000000 r __ksymtab_ib_umem_dmabuf_get",
		head + "0000000000000000 t mlx5_ib_reg_user_mr_dmabuf.cold\t[mlx5_ib]\n0000000000000000 t ib_register_peer_memory_client\t[ib_core]\n",
		head + "0000000000000000 t ib_umem_dmabuf_fff_pinned\t[ib_uverbs]\n0000000000000000 t __ksymtab_ib_umem_dmabuf_get",
		head + "0000000000000000 d ib_register_peer_memory_client\n0000000000000000 T ib_register_peer_memory_client [x] [y]\r\n",
		head + "0000000000000000 T mlx5_ib_reg_user_mr_dmabuf T ib_umem_dmabuf_get T ib_register_peer_memory_client\n",
		head, "", "\n", "garbage\n", "0000000000000000 T ib_umem_dmabuf_get",
	} {
		f.Add([]byte(seed), uint16(0))
		f.Add([]byte(seed), uint16(30))
	}
	f.Fuzz(func(t *testing.T, text []byte, chunk uint16) {
		// The first line comes in one piece, as the kernel gives it.
		size := max(bytes.IndexByte(text, '\n')+1, 32)
		rest := text
		got, err := searchSymbols(reader(func(buf []byte) (int, error) {
			n := copy(buf[:min(size, len(buf))], rest)
			rest, size = rest[n:], int(chunk)+1
			return n, nil
		}), all)
		want, wantErr := naive(text)
		if !errors.Is(err, wantErr) {
			t.Fatalf("error %v, want %v", err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("found (-naive +got):\n%s", diff)
		}
	})
}
