package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// within fails the test if something took longer than its limit, and skips it if other programs
// used the machine meanwhile. busy is from watchLoad.
func within(t *testing.T, what string, took, limit time.Duration, busy func() string) {
	t.Helper()
	switch reason := busy(); {
	case reason != "":
		t.Skipf("not judged, %s %v against %v: the machine is busy: %s", what, took, limit, reason)
	case took > limit:
		t.Errorf("%s %v, more than %v", what, took, limit)
	}
}

// watchLoad measures the CPU time of other programs than this test and those it has
// started. The function that it gives tells why times measured meanwhile are meaningless,
// or "".
func watchLoad(t *testing.T) func() string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "watch")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./test/busy/watch")
	build.Dir = repository
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	cmd := exec.CommandContext(t.Context(), program, strconv.Itoa(os.Getpid()))
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	end, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		if err := errors.Join(end.Close(), cmd.Wait()); err != nil {
			t.Fatalf("%v: %s", err, &wrong)
		}
		return strings.TrimSpace(said.String())
	}
}
