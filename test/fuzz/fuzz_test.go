// Package fuzz tests hack/fuzz.sh: when it fails.
package fuzz

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A target that fails once has failed. The only exception is Go's fuzzer reporting
// the end of its time as a failure.
func TestFuzz(t *testing.T) {
	script, err := filepath.Abs("../../hack/fuzz.sh")
	if err != nil {
		t.Fatal(err)
	}
	const deadline = "    context deadline exceeded\n"
	for _, test := range []struct {
		name, said string
		status     string // of go test
		fails      bool
	}{
		{"nothing found", "PASS\nok  \tx/internal/x\t5.1s\n", "0", false},
		{"the time ended", "fuzz: elapsed: 5s, execs: 9 (1/sec)\n--- FAIL: FuzzX (5.06s)\n" + deadline + "FAIL\nexit status 1\nFAIL\tx/internal/x\t5.07s\n", "1", false},
		{
			"an input that fails",
			"--- FAIL: FuzzX (0.03s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: wrong\n    \n    Failing input written to testdata/fuzz/FuzzX/7\nFAIL\n", "1", true,
		},
		{
			"the time ended while an input that fails was made smaller",
			"fuzz: minimizing 30-byte failing input file\n--- FAIL: FuzzX (5.06s)\n" + deadline + "FAIL\n", "1", true,
		},
		{"both", "--- FAIL: FuzzX (5.06s)\n" + deadline + "    Failing input written to testdata/fuzz/FuzzX/7\nFAIL\n", "1", true},
		{"a panic", "panic: oh\n--- FAIL: FuzzX (5.06s)\n" + deadline, "2", true},
		{"a seed", "failure while testing seed corpus entry: FuzzX/1\n--- FAIL: FuzzX (0.01s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: wrong\nFAIL\n", "1", true},
		{"it does not build", "FAIL\tx/internal/x [build failed]\n", "1", true},
		{"nothing said", "", "1", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "internal/x/x_test.go", "package x\n\nfunc FuzzX(f *testing.F) {}\n")
			write(t, dir, "cmd/c/c.go", "package main\n")
			write(t, dir, "source/s/s.go", "package s\n")
			write(t, dir, "said", test.said)
			write(t, dir, "bin/go", "#!/bin/sh\necho run >>\"$DIR/runs\"\ncat \"$DIR/said\"\nexit "+test.status+"\n")
			c := exec.CommandContext(t.Context(), script, "5s")
			c.Dir = dir
			c.Env = append(os.Environ(), "DIR="+dir, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			out, err := c.CombinedOutput()
			if (err != nil) != test.fails {
				t.Errorf("ended with %v\n%s", err, out)
			}
			printed := test.said
			if test.status != "0" && !test.fails { // no FAIL for what is none
				printed = "\nfuzz: elapsed: 5s, execs: 9 (1/sec)\nended with its time: https://go.dev/issue/75804\n"
			}
			if !strings.HasSuffix(string(out), printed) {
				t.Errorf("printed %s", out)
			}
			runs, err := os.ReadFile(filepath.Join(dir, "runs"))
			if err != nil || string(runs) != "run\n" {
				t.Errorf("ran %q, %v", runs, err)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
