package sanitize_test

import (
	"testing"

	"gdr-features/internal/sanitize"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"mlx5_0 ä … \"x\"":        "mlx5_0 ä … \"x\"",
		"a\r\x1b[2Jb\u009b\u202e": "a??[2Jb??",
		"line\nline\ttab":         "line?line?tab",
		"\xff\x00":                "\ufffd?",
	} {
		if got := sanitize.Terminal(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
