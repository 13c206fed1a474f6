package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// install copies this program, which is gdr-features by that name, into a
// directory of its own.
func install(t *testing.T) (path string) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	path = filepath.Join(t.TempDir(), "gdr-features")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, self); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// run executes the agent in the same directory: one process, with the same command
// line, environment and exit status.
func TestRunBecomes(t *testing.T) {
	program := install(t)
	const agent = "#!/bin/sh\necho \"pid $$ of $0 has $# words: $* and $WORD\"\necho mistakes >&2\nexit 7\n"
	if err := os.WriteFile(program+"-agent", []byte(agent), 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "--log-level", "info", "run", "--once", "--node-name", "a b", "--config=x")
	c.Env = append(os.Environ(), "WORD=hello")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	want := fmt.Sprintf("pid %d of %s-agent has 7 words: --log-level info run --once --node-name a b --config=x and hello\n", c.Process.Pid, program)
	if c.ProcessState.ExitCode() != 7 || out.String() != want || errs.String() != "mistakes\n" {
		t.Errorf("ended with %v\nsaid %swant %son standard error %s", err, out.String(), want, errs.String())
	}
}

// Without the agent, run says what to do; help and mistakes do not need it.
func TestRunWithoutAgent(t *testing.T) {
	program := install(t)
	for _, test := range []struct {
		args   string
		mode   os.FileMode // of the agent, 0 for none
		status int
		want   string // standard error
	}{
		{"run", 0, 1, "gdr-features: " + program + "-agent: no such file or directory; install gdr-features-agent beside gdr-features\n"},
		{"run --once", 0o644, 1, "gdr-features: " + program + "-agent: permission denied; install gdr-features-agent beside gdr-features\n"},
		{"run --no-such-flag", 0, 1, "gdr-features: unknown flag: --no-such-flag\n"},
		{"run --interval soon", 0, 1, `gdr-features: invalid argument "soon" for "--interval" flag: time: invalid duration "soon"` + "\n"},
		{"run too many", 0, 1, `gdr-features: unexpected argument "too"; usage: gdr-features run [flags]` + "\n"},
		{"run --help", 0, 0, ""},
		{"help run", 0, 0, ""},
	} {
		t.Run(test.args, func(t *testing.T) {
			agent := program + "-agent"
			if err := os.RemoveAll(agent); err != nil {
				t.Fatal(err)
			}
			if test.mode != 0 {
				if err := os.WriteFile(agent, []byte("#!/bin/sh\n"), test.mode); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.CommandContext(t.Context(), program, strings.Fields(test.args)...)
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			if err := c.Run(); c.ProcessState.ExitCode() != test.status {
				t.Errorf("ended with %v, want status %d", err, test.status)
			}
			if got := errs.String(); got != test.want {
				t.Errorf("said %q, want %q", got, test.want)
			}
			if helps := strings.Contains(out.String(), "--features-dir"); helps != (test.status == 0) {
				t.Errorf("on standard output: %s", out.String())
			}
		})
	}
}
