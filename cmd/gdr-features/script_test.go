package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"

	"gdr-features/test/machine"
	"gdr-features/test/script"
	"gdr-features/test/testsize"
)

// TestMain lets scripts run this program by its name. At the end it counts the golden files whose
// differences were not shown.
func TestMain(m *testing.M) {
	script.Main(counting{m}, map[string]func(){
		"gdr-features": func() {
			os.Exit(run(context.Background(), os.Args[1:], streams{
				in: os.Stdin, out: os.Stdout, err: os.Stderr, terminal: term.IsTerminal(int(os.Stdout.Fd())), become: become, now: time.Now, limit: patient,
			}))
		},
	})
}

// counting are the tests of this package.
type counting struct{ m *testing.M }

func (c counting) Run() int {
	status := c.m.Run()
	if more := differing.Load() - shownFiles; more > 0 {
		fmt.Fprintf(os.Stderr, "and %d more golden files differ: make golden writes them, git diff shows them\n", more)
	}
	return status
}

// TestScripts are the contract of the command line: flags, output, exit status.
func TestScripts(t *testing.T) {
	machines, err := filepath.Abs(machinesDir)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts, error %v", err)
	}
	testscript.Run(t, testscript.Params{
		Files: testsize.Share(scripts),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// machine NAME STATE DIR lays a machine out.
			"machine": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(machine.LayOut(filepath.Join(machines, args[0]+".txt"), args[1], ts.MkAbs(args[2])))
			},
			// large FILE N makes a file of N bytes of comment.
			"large": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[1])
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("#"+strings.Repeat("x", n-2)+"\n"), 0o644))
			},
			// status N COMMAND... runs a command that must end with a status.
			"status": func(ts *testscript.TestScript, _ bool, args []string) {
				got := 0
				if err := ts.Exec(args[1], args[2:]...); err != nil {
					var exit *exec.ExitError
					if !errors.As(err, &exit) {
						ts.Fatalf("%v", err)
					}
					got = exit.ExitCode()
				}
				if strconv.Itoa(got) != args[0] {
					ts.Fatalf("exit status %d, want %s", got, args[0])
				}
			},
		},
	})
}
