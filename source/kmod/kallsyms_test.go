package kmod

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/tristate"
)

// reader is a function that reads, and gives no bytes at the end.
type reader func([]byte) (int, error)

func (read reader) Read(buf []byte) (int, error) {
	n, err := read(buf)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// inChunks reads text like a file that gives at most size bytes at once.
func inChunks(text string, size int) func([]byte) (int, error) {
	return func(buf []byte) (int, error) {
		n := copy(buf[:min(size, len(buf))], text)
		text = text[n:]
		return n, nil
	}
}

// all are the symbols that are looked for on a machine with ConnectX.
var all = []string{peer, umem, mlx5}

// finds is what searchSymbols found, by symbol, with the owner.
type finds map[string]string

func search(read func([]byte) (int, error), names ...string) (finds, error) {
	if names == nil {
		names = all
	}
	found, err := searchSymbols(reader(read), names)
	f := finds{}
	for name, symbol := range found {
		if symbol.Found == tristate.True {
			f[name] = symbol.Owner
		}
	}
	return f, err
}

const (
	peer = "ib_register_peer_memory_client"
	umem = "ib_umem_dmabuf_get"
	mlx5 = "mlx5_ib_reg_user_mr_dmabuf"
)

func TestSearchSymbolsNames(t *testing.T) {
	tests := []struct {
		line string // behind the address
		want finds
	}{
		{"T ib_umem_dmabuf_get\t[ib_uverbs]", finds{umem: "ib_uverbs"}},
		{"t ib_umem_dmabuf_get\t[ib_uverbs]", finds{umem: "ib_uverbs"}},
		{"T ib_umem_dmabuf_get", finds{umem: ""}},
		{"T ib_umem_dmabuf_get [ib_uverbs]", finds{umem: "ib_uverbs"}},
		{"T ib_umem_dmabuf_get\t[ib_uverbs]\r", finds{umem: "ib_uverbs"}},
		{"T ib_umem_dmabuf_get\r", finds{umem: ""}},
		{"t ib_umem_dmabuf_get.cold\t[ib_uverbs]", finds{umem: "ib_uverbs"}},
		{"t ib_umem_dmabuf_get.llvm.123456\t[ib_uverbs]", finds{umem: "ib_uverbs"}},
		{"t ib_umem_dmabuf_get.isra.0", finds{umem: ""}},
		{"r __ksymtab_ib_umem_dmabuf_get\t[ib_uverbs]", finds{umem: "ib_uverbs"}},
		{"R __ksymtab_ib_umem_dmabuf_get", finds{umem: ""}},
		{"d __ksymtab_ib_register_peer_memory_client\t[ib_core]", finds{peer: "ib_core"}},
		{"t ib_register_peer_memory_client\t[ib_core]", finds{peer: "ib_core"}},
		{"t mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]", finds{mlx5: "mlx5_ib"}},
		{"T ib_umem_dmabuf_get\t[ib_uverbs", finds{umem: "ib_uverbs"}},

		{"T ib_umem_dmabuf_get_pinned\t[ib_uverbs]", finds{}},
		{"T ib_umem_dmabuf_get_pinned_with_dma_device\t[ib_uverbs]", finds{}},
		{"T ib_umem_dmabuf_gets", finds{}},
		{"T ib_umem_dmabuf_get0", finds{}},
		{"T ib_umem_dmabuf_ge", finds{}},
		{"T my_ib_umem_dmabuf_get", finds{}},
		{"T _ib_umem_dmabuf_get", finds{}},
		{"T __pfx_ib_umem_dmabuf_get\t[ib_uverbs]", finds{}},
		{"T .ib_umem_dmabuf_get", finds{}},
		{"t __mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]", finds{}},
		{"t mlx5_ib_reg_user_mr\t[mlx5_ib]", finds{}},
		{"T IB_UMEM_DMABUF_GET", finds{}},
		{"d ib_umem_dmabuf_get", finds{}},
		{"r ib_umem_dmabuf_get\t[ib_uverbs]", finds{}},
		{"b ib_umem_dmabuf_get", finds{}},
		{"U ib_umem_dmabuf_get", finds{}},
		{"Tt ib_umem_dmabuf_get", finds{}},
		{"T  ib_umem_dmabuf_get", finds{}},
		{"T\tib_umem_dmabuf_get", finds{}},
		{"r __ksymtab_ib_umem_dmabuf_get_pinned", finds{}},
		{"r __ksymtab_ib_umem_dmabuf_get.cold", finds{}},
		{"r my__ksymtab_ib_umem_dmabuf_get", finds{}},
		{"r __kstrtab_ib_umem_dmabuf_get\t[ib_uverbs]", finds{}},
		{"r __kstrtabns_ib_umem_dmabuf_get\t[ib_uverbs]", finds{}},
		{"r __crc_ib_umem_dmabuf_get", finds{}},
		{"t vfs_read\t[ib_umem_dmabuf_get]", finds{}},
	}
	const before, after = "ffffffff81000000 T _stext\n0000000000000000 ", "\n0000000000000000 t gg_last\t[last]\n"
	for _, tt := range tests {
		got, err := search(inChunks(before+tt.line+after, 1<<20))
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.line, diff)
		}
	}
}

// Any symbol can be looked for, whatever letters it has.
func TestSearchSymbolsOfAnyName(t *testing.T) {
	for _, symbol := range []string{"ib_uverbs_client", "efa_reg_user_mr_dmabuf", "g", "ag", "ga", "_", "p2pdma_0", "aaa", "printk"} {
		const around = "0000000000000000 t ibibib_uvuverbs_aaaa\n"
		for text, want := range map[string]finds{
			around + "0000000000000000 t " + symbol + "\t[owner]\n" + around: {symbol: "owner"},
			around + "0000000000000000 t " + symbol:                          {symbol: ""},
			around + "0000000000000000 t x" + symbol + "\n" + around:         {},
			around + symbol + symbol + "\n" + around:                         {},
		} {
			got, err := search(inChunks(text, 1<<20), symbol)
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("%q in %q: %v, %v; want %v", symbol, text, got, err, want)
			}
		}
	}
}

func TestSearchSymbols(t *testing.T) {
	line := func(name string) string { return "0000000000000000 t " + name + "\n" }
	three := line(peer+"\t[ib_uverbs]") + line(umem) + line(mlx5+"\t[mlx5_ib]")
	filler := strings.Repeat(line("gadget_go_ing\t[gig]"), 5000)
	tests := []struct {
		name string
		text string
		want finds
		err  error
	}{
		{"all", three, finds{peer: "ib_uverbs", umem: "", mlx5: "mlx5_ib"}, nil},
		{"all behind much else", filler + three, finds{peer: "ib_uverbs", umem: "", mlx5: "mlx5_ib"}, nil},
		{"all before much else", three + filler, finds{peer: "ib_uverbs", umem: "", mlx5: "mlx5_ib"}, nil},
		{"none", filler, finds{}, nil},
		{"a last line without newline", filler + strings.TrimSuffix(line(umem+"\t[ib_uverbs]"), "\n"), finds{umem: "ib_uverbs"}, nil},
		{"a last line that ends in the symbol", filler + strings.TrimSuffix(line(umem), "\n"), finds{umem: ""}, nil},
		{"a last line that ends in the midst of the symbol", filler + strings.TrimSuffix(line(umem), "t\n"), finds{}, nil},
		{"one line without newline", strings.TrimSuffix(line(umem), "\n"), finds{umem: ""}, nil},
		{"the first owner counts", line(umem+"\t[ib_uverbs]") + line("x") + line(umem+"\t[ib_core]"), finds{umem: "ib_uverbs"}, nil},
		{"an owner that comes later is another's", line(umem) + line(umem+".cold\t[ib_core]"), finds{umem: ""}, nil},
		{"blank lines in between", line("x") + "\n\n" + line(umem), finds{umem: ""}, nil},
		{"lines that begin with the letter searched for", line("x") + "g\nget\ng_get\n" + line(umem), finds{umem: ""}, nil},
		{"lines that end with it", line("ib_reg") + line("mlx5_ib_reg") + line("ib_umem_dmabuf_g") + line(umem) + line("ib_reg"), finds{umem: ""}, nil},
		{"addresses of 32 bits", "c0100000 T _stext\n" + line(umem), finds{umem: ""}, nil},

		{"empty", "", finds{}, host.ErrEmpty},
		{"garbage", "\x7fELF\x02\x01\x01 not a symbol table\n" + three, finds{}, errNoTable},
		{"a blank first line", "\n" + three, finds{}, errNoTable},
		{"a line of 64 KiB", three[:len(three)/2] + strings.Repeat("g", 64<<10) + three, finds{peer: "ib_uverbs"}, errNoTable},
	}
	for _, tt := range tests {
		for _, chunk := range []int{27, 100, 4096, 65536, 1 << 20} {
			got, err := search(inChunks(tt.text, chunk))
			if !errors.Is(err, tt.err) {
				t.Errorf("%s, %d at once: error %v, want %v", tt.name, chunk, err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s, %d at once (-want +got):\n%s", tt.name, chunk, diff)
			}
		}
	}
}

// A symbol is found wherever the reader's buffer happens to end.
func TestSearchSymbolsAtBoundaries(t *testing.T) {
	const buffer = 64 << 10
	for _, symbol := range all {
		line := "0000000000000000 t " + symbol + "\t[owner]\n"
		want := finds{symbol: "owner"}
		for start := buffer - len(line) - 2; start <= buffer+2; start++ {
			// Short lines, and one of the right length before the start.
			text := strings.Repeat("0000000000000000 t filler_symbol\n", start/33-1)
			text += "0000000000000000 t " + strings.Repeat("x", start-len(text)-20) + "\n" + line + "0000000000000000 t end\n"
			for _, chunk := range []int{buffer, 4000, 50} {
				got, err := search(inChunks(text, chunk))
				if err != nil || !cmp.Equal(want, got) {
					t.Fatalf("%s at %d, %d at once: %v, %v; want %v", symbol, start, chunk, got, err, want)
				}
			}
		}
	}
}

func TestIsSymbolLine(t *testing.T) {
	tests := map[string]bool{
		"ffffffff81000000 T _stext":            true,
		"0000000000000000 A fixed_percpu_data": true,
		"c0100000 t x\nmore":                   true,
		"c0100000 t x":                         true,
		"C0100000 t x":                         true,
		"09afAF00 t x":                         true,

		"": false, "\n": false, "c0100000": false, "c0100000 ": false, "c0100000 t": false, "c0100000 t ": false,
		"c010000 t x": false, "00000000000000000 t x": false, "c010000g t x": false, "c010000G t x": false, "c010000: t x": false, "c010000@ t x": false, "c010000/ t x": false, "c010000` t x": false,
		"c0100000 tt x": false, " c0100000 t x": false, "c0100000\tt\tx": false, "\x7fELF\x02\x01\x01\x00\x00 t x": false,
		"c0100000\n t x": false, "c0100000 t \nx": false,
	}
	for in, want := range tests {
		if got := isSymbolLine([]byte(in)); got != want {
			t.Errorf("isSymbolLine(%q) = %v, want %v", in, got, want)
		}
	}
}

// What was found before an error stays found.
func TestSearchSymbolsReadErrors(t *testing.T) {
	text := strings.Repeat("0000000000000000 t filler\n", 1000) + "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n"
	for _, fails := range []int{1, 2, 3} {
		reads, next := 0, inChunks(text, len(text)/2+1)
		got, err := search(func(buf []byte) (int, error) {
			if reads++; reads == fails {
				return 0, io.ErrUnexpectedEOF
			}
			return next(buf)
		})
		want := finds{}
		if fails == 3 {
			want[umem] = "ib_uverbs"
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || reads != fails || !cmp.Equal(want, got) {
			t.Errorf("read %d fails: %v, %v after %d reads; want %v", fails, got, err, reads, want)
		}
	}
}

// Bytes that come with an error count, as io.Reader has it.
func TestSearchSymbolsWithError(t *testing.T) {
	const line = "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n"
	for _, tt := range []struct {
		text    string
		with    error
		want    finds
		wantErr error
	}{
		{line, io.ErrUnexpectedEOF, finds{umem: "ib_uverbs"}, io.ErrUnexpectedEOF},
		{line[:len(line)-1], io.ErrUnexpectedEOF, finds{}, io.ErrUnexpectedEOF}, // there may be more of the line
		{line[:len(line)-1], io.EOF, finds{umem: "ib_uverbs"}, nil},
		{"not a symbol table", io.ErrUnexpectedEOF, finds{}, errNoTable},
		{"", io.EOF, finds{}, host.ErrEmpty},
	} {
		got, err := search(func(buf []byte) (int, error) { return copy(buf, tt.text), tt.with })
		if !errors.Is(err, tt.wantErr) || !cmp.Equal(tt.want, got) {
			t.Errorf("%q with %v: %v, %v; want %v, %v", tt.text, tt.with, got, err, tt.want, tt.wantErr)
		}
	}
}

func TestSearchSymbolsBound(t *testing.T) {
	page := strings.Repeat("0000000000000000 t filler\n", 4096/26)
	total := 0
	got, err := search(func(buf []byte) (int, error) {
		n := 0
		for n+len(page) <= len(buf) {
			n += copy(buf[n:], page)
		}
		total += n
		return n, nil
	})
	if !errors.Is(err, host.ErrTooLarge) || len(got) != 0 {
		t.Errorf("%v, %v; want %v", got, err, host.ErrTooLarge)
	}
	if limit := 128 << 20; total < limit || total > limit+64<<10 {
		t.Errorf("stopped after %d bytes, want %d", total, limit)
	}
}

// A line may be unfinished at the end of a read, but no line of a symbol table
// is longer than 64 KiB.
func TestSearchSymbolsLongLines(t *testing.T) {
	const first, last = "0000000000000000 t first\n", "\n0000000000000000 t ib_umem_dmabuf_get\n"
	for unfinished, wantErr := range map[int]error{MaxLine - 1: nil, MaxLine: nil, MaxLine + 1: errNoTable} {
		got, err := search(inChunks(first+strings.Repeat("x", unfinished)+last, 4096))
		want := finds{}
		if wantErr == nil {
			want[umem] = ""
		}
		if !errors.Is(err, wantErr) || !cmp.Equal(want, got) {
			t.Errorf("%d bytes: %v, %v; want %v, %v", unfinished, got, err, want, wantErr)
		}
	}
}
