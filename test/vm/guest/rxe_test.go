package main

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A header (length, type, flags, sequence number, port), then for each attribute
// its length, its number and a string.
func TestNewLink(t *testing.T) {
	want := strings.ReplaceAll("2c000000 0314 0500 00000000 00000000"+
		"0900 0200 7278653000 000000"+ // rxe0
		"0800 4100 72786500"+ // rxe
		"0700 3300 6c6f00 00", " ", "") // lo
	if got := hex.EncodeToString(newLink("rxe0", "lo")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The attribute is one byte, 0 for exclusive.
func TestExclusive(t *testing.T) {
	want := strings.ReplaceAll("18000000 0714 0500 00000000 00000000 0500 4200 00 000000", " ", "")
	if got := hex.EncodeToString(message(nldevSetSystem, attribute(attrNetnsMode, ""))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestVerdict(t *testing.T) {
	head := "24000000 0200 0000 00000000 00000000"
	for answer, want := range map[string]error{
		head + "00000000": nil,
		head + "efffffff": unix.EEXIST,
		head + "feffffff": unix.ENOENT,
	} {
		if err := verdict(unhex(t, answer)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", answer, err, want)
		}
	}
	for _, answer := range []string{"", head, strings.Replace(head, "0200", "0300", 1) + "00000000"} {
		if err := verdict(unhex(t, answer)); err == nil {
			t.Errorf("%q is no answer", answer)
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	out, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
