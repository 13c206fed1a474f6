package machine

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// config makes configuration space: 256 bytes for a bridge without ACS as root
// sees it, 4096 with the capability after another one, and for anything but a bridge
// without ATS the 64 bytes that everybody sees.
func config(f *Function) string {
	id := func(s string) uint16 {
		n, err := strconv.ParseUint(s, 16, 16)
		if err != nil {
			return 0
		}
		return uint16(n)
	}
	size := 64
	if f.IsBridge() {
		size = 256
	}
	acs, hasACS := f.Attrs["acs"]
	if acs == "denied" {
		hasACS, size = false, 64
	}
	ats, hasATS := f.Attrs["ats"]
	if hasACS || hasATS {
		size = 4096
	}
	c := make([]byte, size)
	binary.LittleEndian.PutUint16(c[0:], id(f.Vendor))
	binary.LittleEndian.PutUint16(c[2:], id(f.Device))
	if hasACS {
		const version, aer, acsID, second = 1 << 16, 0x0001, 0x000d, 0x148
		binary.LittleEndian.PutUint32(c[0x100:], aer|version|second<<20)
		binary.LittleEndian.PutUint32(c[second:], acsID|version)
		binary.LittleEndian.PutUint16(c[second+4:], 0x005f)
		binary.LittleEndian.PutUint16(c[second+6:], id(acs))
	}
	if hasATS {
		const version, aer, atsID, second, enable = 1 << 16, 0x0001, 0x000f, 0x480, 1 << 15
		binary.LittleEndian.PutUint32(c[0x100:], aer|version)
		if ats != "none" {
			binary.LittleEndian.PutUint32(c[0x100:], aer|version|second<<20)
			binary.LittleEndian.PutUint32(c[second:], atsID|version)
		}
		if ats == "on" {
			binary.LittleEndian.PutUint16(c[second+6:], enable)
		}
	}
	return string(c)
}

// vpd makes vital product data from "product name" or "KEY:text".
func vpd(text string) string {
	product, keywords := text, ""
	if len(text) > 3 && text[2] == ':' && strings.ToUpper(text[:2]) == text[:2] {
		product = "ConnectX"
		keywords = text[:2] + string(rune(len(text)-3)) + text[3:]
	}
	keywords += "RV\x01\x00"
	size := func(s string) string { return string([]byte{byte(len(s)), byte(len(s) >> 8)}) }
	return "\x82" + size(product) + product + "\x90" + size(keywords) + keywords + "\x78"
}

// Kallsyms makes a symbol table of at least size bytes that ends in the given
// symbols, "name" or "name\t[module]". Addresses are zero, as everybody but root
// sees them.
func Kallsyms(size int, symbols []string) string {
	var t strings.Builder
	words := []string{"ib_umem_get", "mlx5_core_create", "ib_umem_dmabuf_get_pinned", "vfs_read", "peer_memory", "tcp_v4_rcv", "dma_buf_attach"}
	for i := 0; t.Len() < size || i < len(words); i++ {
		fmt.Fprintf(&t, "0000000000000000 %c %s_%d\n", "tTrd"[i%4], words[i%len(words)], i)
	}
	for _, s := range symbols {
		fmt.Fprintf(&t, "0000000000000000 t %s\n", s)
	}
	return t.String()
}
