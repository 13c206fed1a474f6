package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gdr-features/test/machine"
	"gdr-features/test/script"
)

// TestMain lets scripts run this program by its name.
func TestMain(m *testing.M) {
	script.Main(m, map[string]func(){"gdr-features-agent": main})
}

// TestAgentScripts are the contract of the command line: flags, files, output, exit
// status.
func TestAgentScripts(t *testing.T) {
	machines, err := filepath.Abs("../../testdata/machines")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts, error %v", err)
	}
	testscript.Run(t, testscript.Params{
		Files: scripts,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// machine NAME STATE DIR lays a machine out.
			"machine": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(machine.LayOut(filepath.Join(machines, args[0]+".txt"), args[1], ts.MkAbs(args[2])))
			},
			"fails": script.Fails,
			// large FILE N makes a file of N bytes of comment.
			"large": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[1])
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("#"+strings.Repeat("x", n-2)+"\n"), 0o644))
			},
			// terminate sends SIGTERM to the program in the background.
			"terminate": func(ts *testscript.TestScript, _ bool, _ []string) {
				for _, c := range ts.BackgroundCmds() {
					ts.Check(c.Process.Signal(syscall.SIGTERM))
				}
			},
			// within FILE TEXT waits until a file contains a text.
			"within": func(ts *testscript.TestScript, _ bool, args []string) {
				for range 1200 {
					found, _ := filepath.Glob(ts.MkAbs(args[0]))
					if len(found) == 1 && strings.Contains(ts.ReadFile(args[0]), args[1]) {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
				ts.Fatalf("no %q in %s within a minute", args[1], args[0])
			},
		},
	})
}
