// Package show writes what several outputs share.
package show

import (
	"encoding/json"
	"fmt"
	"io"
)

// Count returns "1 GPU" or "8 GPUs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// JSON writes a value as indented JSON, without escapes that only HTML needs.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Hex is a number of 16 bits as PCI ids are written: four hexadecimal digits.
func Hex(n uint16) string { return fmt.Sprintf("%04x", n) }
