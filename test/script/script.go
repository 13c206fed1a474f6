// Package script is what the scripts that test our command lines have in common.
package script

import (
	"errors"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Main is testscript.Main, with the directories of scripts in TMPDIR, which may be in memory:
// the machines in them are thousands of files. testscript prefers GOTMPDIR, which is for programs.
func Main(m testscript.TestingM, commands map[string]func()) {
	if err := os.Setenv("GOTMPDIR", os.TempDir()); err != nil {
		panic(err)
	}
	testscript.Main(m, commands)
}

// Fails runs a command that must end with status 1, say nothing on standard output
// and one line on standard error: "fails COMMAND...".
func Fails(ts *testscript.TestScript, _ bool, args []string) {
	var exit interface{ ExitCode() int }
	if err := ts.Exec(args[0], args[1:]...); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		ts.Fatalf("ended with %v, not with status 1", err)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("said on standard output: %s", out)
	}
	if err := ts.ReadFile("stderr"); strings.Count(err, "\n") != 1 || !strings.HasPrefix(err, "gdr-features: ") {
		ts.Fatalf("said on standard error: %s", err)
	}
}
