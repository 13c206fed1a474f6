package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gdr-features/test/script"
)

// TestMain lets scripts run this program by its name.
func TestMain(m *testing.M) {
	script.Main(m, map[string]func(){"kubectl-gdr": main})
}

// TestScripts are the contract of the command line where there is no cluster. The
// end-to-end test has one.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails": script.Fails,
		},
	})
}
