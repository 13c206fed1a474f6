package show_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode"

	"gdr-features/internal/show"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 GPUs", 1: "1 GPU", 8: "8 GPUs"} {
		if got := show.Count(n, "GPU"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	var out strings.Builder
	if err := show.JSON(&out, map[string]string{"a": "<&>"}); err != nil || out.String() != "{\n  \"a\": \"<&>\"\n}\n" {
		t.Errorf("%q, %v", &out, err)
	}
	if err := show.JSON(&out, func() {}); err == nil {
		t.Error("a function is no JSON")
	}
}

// TestEscape: what a terminal obeys is escaped, and is the same text for a program.
func TestEscape(t *testing.T) {
	const hostile = "a\u009b2J\u202e\x7f\u200b\U000e0001\x1bä é 日\n"
	var out strings.Builder
	if err := show.JSON(&out, []string{hostile}); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U in %q", r, &out)
		}
	}
	var back []string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || len(back) != 1 || back[0] != hostile {
		t.Errorf("%q, %v", back, err)
	}
	if !strings.Contains(out.String(), "ä é 日") {
		t.Errorf("letters are escaped: %s", &out)
	}
}

// TestOneWriter: no other code of the programs writes JSON where a person may read it.
func TestOneWriter(t *testing.T) {
	writers := map[string]bool{
		"internal/show/show.go": true, "internal/rooms/snapshot/text.go": true, // with Escape
	}
	root, seen := os.DirFS("../.."), 0
	for _, dir := range []string{"cmd", "internal"} {
		err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			code, err := fs.ReadFile(root, name)
			if bytes.Contains(code, []byte("json.NewEncoder(")) || bytes.Contains(code, []byte("json.MarshalIndent(")) {
				seen++
				if !writers[name] {
					t.Errorf("%s writes JSON by itself: use show.JSON", name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != len(writers) {
		t.Errorf("%d writers, want %d", seen, len(writers))
	}
}
