package sanitize_test

import (
	"errors"
	"slices"
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

func TestErrors(t *testing.T) {
	got := sanitize.Errors([]error{errors.New("a\x1b[2Jb"), errors.New("c")})
	if want := []string{"a?[2Jb", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
