// Package show writes what several outputs share.
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Count returns "1 GPU" or "8 GPUs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// JSON writes a value as indented JSON, without escapes that only HTML needs, and with those
// that a terminal needs: see Escape. All JSON that a program of this project prints is written
// by it.
func JSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(Escape(text.Bytes()))
	return err
}

// Escape escapes in JSON the characters that a terminal may obey and encoding/json leaves:
// DEL, C1 controls such as U+009B, and those that change the direction of text, such as U+202E.
func Escape(text []byte) []byte {
	if !bytes.ContainsFunc(text, acts) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		switch {
		case !acts(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func acts(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// Hex is a number of 16 bits as PCI ids are written: four hexadecimal digits.
func Hex(n uint16) string { return fmt.Sprintf("%04x", n) }
