// Command watch reports whether the machine was busy while a test measured time. It
// watches a process, and all that it starts, until standard input ends; then it
// prints why times measured meanwhile mean nothing, in one line, or nothing.
//
//	watch PID
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"gdr-features/test/busy"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: watch PID")
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	others, err := busy.Watch(pid)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	share, err := others()
	if err != nil {
		return err
	}
	if reason := busy.Reason(share); reason != "" {
		_, err = fmt.Fprintln(out, reason)
	}
	return err
}
