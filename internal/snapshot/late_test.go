package snapshot

import (
	"strings"
	"testing"
)

// TestReaderLeftBehind: a recording that ends while a reader still has its file open
// knows where the file ends.
func TestReaderLeftBehind(t *testing.T) {
	tape := Record(oddTree(t))
	file, err := tape.FS("").Open("sys/line")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := file.Read(make([]byte, 256)); n != len("value\n") || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	tape.Finish()
	if got := text(t, tape); !strings.Contains(got, "\n/sys/line = value\n") {
		t.Error(got)
	}
	_ = file.Close()
}

// TestScrubBesideReader: what a reader that was left behind may still hold is not
// overwritten; the race detector tells.
func TestScrubBesideReader(t *testing.T) {
	tape := Record(oddTree(t))
	fs, done := tape.FS(""), make(chan struct{})
	if names, err := fs.Names("sys"); len(names) == 0 || err != nil {
		t.Fatal(names, err)
	}
	go func() {
		defer close(done)
		for range 10_000 {
			_, _ = fs.Names("sys")
		}
	}()
	tape.Finish()
	for {
		select {
		case <-done:
			return
		default:
			tape.Scrub()
		}
	}
}
