package reasons_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gdr-features/docs/reasons"
	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/internal/rooms/pod"
)

// TestTokens: every code of a finding has a page, and every page is about a code.
func TestTokens(t *testing.T) {
	var codes []string
	for _, code := range finding.Unique(append(findings.Codes(), pod.Codes()...)) {
		codes = append(codes, string(code))
		if _, ok := reasons.Page(string(code)); !ok {
			t.Errorf("%s has no page", code)
		}
	}
	for _, token := range reasons.Tokens() {
		if !slices.Contains(codes, token) {
			t.Errorf("%s.md is of no word that a finding can bear", token)
		}
	}
	for _, token := range []string{"", "README", "Nothing", "../fleet", "reasons.go"} {
		if _, ok := reasons.Page(token); ok {
			t.Errorf("%q has a page", token)
		}
	}
}

// TestPages: all pages are built alike and fit a screen; the index lists them all.
func TestPages(t *testing.T) {
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range reasons.Tokens() {
		page, _ := reasons.Page(token)
		if !strings.HasPrefix(page, "# "+token+"\n\n") {
			t.Errorf("%s: no title", token)
		}
		for _, section := range []string{"## How it shows", "## What does not help"} {
			if !strings.Contains(page, "\n"+section+"\n") {
				t.Errorf("%s: no %q", token, section)
			}
		}
		if n := strings.Count(page, "\n"); n < 15 || n > 45 {
			t.Errorf("%s: %d lines", token, n)
		}
		if !strings.Contains(string(index), "["+token+"]("+token+".md)") {
			t.Errorf("the index does not list %s", token)
		}
	}
}
