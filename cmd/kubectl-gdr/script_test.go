package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this program by its name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-gdr": main})
}

// TestScripts are the contract of the command line where there is no cluster. The
// end-to-end test has one.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// fails COMMAND... runs a command that must end with status 1, say
			// nothing on standard output and one line on standard error.
			"fails": func(ts *testscript.TestScript, _ bool, args []string) {
				var exit *exec.ExitError
				if err := ts.Exec(args[0], args[1:]...); !errors.As(err, &exit) || exit.ExitCode() != 1 {
					ts.Fatalf("ended with %v, not with status 1", err)
				}
				if out := ts.ReadFile("stdout"); out != "" {
					ts.Fatalf("said on standard output: %s", out)
				}
				if err := ts.ReadFile("stderr"); strings.Count(err, "\n") != 1 || !strings.HasPrefix(err, "gdr-features: ") {
					ts.Fatalf("said on standard error: %s", err)
				}
			},
		},
	})
}
