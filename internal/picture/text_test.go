package picture

import (
	"strings"
	"testing"
)

// FuzzText: a text that is fitted or wrapped takes no more room than there is,
// and what is cut says so.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "mlx5_0", "H100 SXM5 80GB", strings.Repeat("W", 50), "a b  c\td", "\xff", "\u4e2d\u6587", "e\u0301", strings.Repeat("word ", 30)} {
		f.Add(text, uint8(60), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, w, n uint8) {
		width, lines := int(w)+20, int(n%5)+1
		for _, s := range []style{heading, name, strong, small, plain, mono} {
			cut := s.fit(text, width)
			if s.width(cut) > width {
				t.Errorf("%q is %d wide, there is room for %d", cut, s.width(cut), width)
			}
			if cut != clean(text) && !strings.HasSuffix(cut, "…") {
				t.Errorf("%q became %q", text, cut)
			}
			wrapped := s.wrap(text, width, lines)
			if len(wrapped) == 0 || len(wrapped) > lines {
				t.Errorf("%d lines for %d", len(wrapped), lines)
			}
			for _, line := range wrapped {
				if s.width(line) > width {
					t.Errorf("%q is wider than %d", line, width)
				}
			}
			all := strings.Join(strings.Fields(clean(text)), " ")
			if got := strings.Join(wrapped, " "); got != all && !strings.Contains(got, "…") {
				t.Errorf("%q became %q", all, got)
			}
		}
	})
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"mlx5_0": "mlx5_0", "a\nb": "a\ufffdb", "\x00": "\ufffd", "\u202eabc": "\ufffdabc", "e\u0301": "e\ufffd", "\xff": "\ufffd", "é": "é",
	} {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
	if got := escape(`<a href="x">&'`); got != "&lt;a href=&#34;x&#34;&gt;&amp;&#39;" {
		t.Errorf("escape: %s", got)
	}
}
