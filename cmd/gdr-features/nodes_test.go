package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// nodes and nodes diff execute kubectl-gdr with the flags and names that they were given; help
// and mistakes do not need it.
func TestNodesBecomes(t *testing.T) {
	program := install(t)
	other := strings.TrimSuffix(program, "gdr-features") + "kubectl-gdr"
	const script = "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n"
	for _, test := range []struct {
		args      []string
		there     bool // kubectl-gdr
		status    int
		out, errs string
	}{
		{[]string{"nodes"}, true, 7, "--\n", ""},
		{
			[]string{"--log-level", "debug", "nodes", "n1", "-Ao", "wide", "--reason", "A,B", "--reason=C", "-l", "gdr.level in (PIX, PXB)", "n 2", "--chunk-size=2"},
			true, 7, "--all-namespaces=true\n--chunk-size=2\n--output=wide\n--reason=A\n--reason=B\n--reason=C\n--selector=gdr.level in (PIX, PXB)\n--\nn1\nn 2\n", "",
		},
		{[]string{"nodes", "--", "-n1"}, true, 7, "--\n-n1\n", ""},
		{[]string{"nodes", "diff", "-owide", "-l", "pool=train", "n1"}, true, 7, "diff\n--output=wide\n--selector=pool=train\n--\nn1\n", ""},
		{[]string{"nodes", "diff", "--root", "/"}, true, 1, "", "gdr-features: --root is about one machine and does not go with diff, which reads a cluster\n"},
		{[]string{"nodes"}, false, 1, "", "gdr-features: " + other + ": no such file or directory; install kubectl-gdr beside gdr-features\n"},
		{[]string{"nodes", "--root", "/"}, true, 1, "", "gdr-features: --root is about one machine and does not go with nodes, which reads a cluster\n"},
		{[]string{"nodes", "--probe-verbs"}, true, 1, "", "gdr-features: --probe-verbs is about one machine and does not go with nodes, which reads a cluster\n"},
		{[]string{"nodes", "--no-such-flag"}, true, 1, "", "gdr-features: unknown flag: --no-such-flag\n"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			if err := os.RemoveAll(other); err != nil {
				t.Fatal(err)
			}
			if test.there {
				if err := os.WriteFile(other, []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.CommandContext(t.Context(), program, test.args...)
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			err := c.Run()
			if c.ProcessState.ExitCode() != test.status || out.String() != test.out || errs.String() != test.errs {
				t.Errorf("ended with %v\nsaid %swant %son standard error %s", err, out.String(), test.out, errs.String())
			}
		})
	}
}
