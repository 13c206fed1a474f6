package show_test

import (
	"strings"
	"testing"

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
