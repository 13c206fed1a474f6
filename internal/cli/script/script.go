// Package script is what the scripts that test our command lines have in common.
package script

import (
	"errors"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

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
