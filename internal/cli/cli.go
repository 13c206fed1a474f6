// Package cli has what the command lines of all programs share: flags and errors. It
// reads no machine, so that kubectl-gdr can be built for macOS and Windows.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gdr-features/internal/sanitize"
	"gdr-features/tristate"
)

// OneOf checks the value of a flag.
func OneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s %s: must be one of %s", flag, value, strings.Join(values, ", "))
}

// Words offers the values of a flag to shell completion.
func Words(c *cobra.Command, flag string, values ...string) {
	offerBy(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Output defines the flag --output with the formats that a command has, the first by
// default. Another one fails the command before it runs.
func Output(c *cobra.Command, to *string, help string, formats ...string) {
	const flag = "output"
	c.Flags().StringVarP(to, flag, "o", formats[0], "output format: "+help)
	Words(c, flag, formats...)
	c.PreRunE = func(*cobra.Command, []string) error { return OneOf(flag, *to, formats...) }
}

// List offers the values of a flag that takes a list of them, separated by commas.
func List(c *cobra.Command, flag string, values ...string) {
	offer := func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		given := begun[:strings.LastIndex(begun, ",")+1]
		var lists []string
		for _, value := range values {
			if !slices.Contains(strings.Split(given, ","), value) {
				lists = append(lists, given+value)
			}
		}
		return lists, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	offerBy(c, flag, offer)
}

func offerBy(c *cobra.Command, flag string, offer cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // no such flag: a mistake of the caller, found by every test
	}
}

// Status is the error that ends a command with an exit status and without a message.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// StatusOf returns the exit status of a command that answers a question: 2 no, 3 not known; nil yes.
func StatusOf(answer tristate.State) error {
	return map[tristate.State]error{tristate.False: Status(2), tristate.Unknown: Status(3)}[answer]
}

// Run runs a command and returns the exit status of the program: 0, that of a Status, or
// 1 after any other error. Help goes to page.
func Run(ctx context.Context, c *cobra.Command, args []string, page io.WriteCloser, errs io.Writer) int {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(page)
	c.SetErr(errs)
	err := cmp.Or(c.ExecuteContext(ctx), page.Close())
	var status Status
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	oneLine(errs, err)
	return 1
}

// oneLine prints an error as one line, without control characters of a server or a file.
func oneLine(w io.Writer, err error) {
	fmt.Fprintf(w, "gdr-features: %s\n", sanitize.Terminal(strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// Args lets a command have from least to most arguments.
func Args(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("an argument is missing; usage: %s", c.UseLine())
		case len(args) > most:
			return fmt.Errorf("unexpected argument %q; usage: %s", args[most], c.UseLine())
		}
		return nil
	}
}

// Version is the version set by the linker, or else the one that the toolchain
// recorded: the module's version, or the commit it was built from.
func Version(linked string) string {
	if linked != "" {
		return linked
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}

// VersionCommand is the command version of a program; linked is what the linker set.
func VersionCommand(program, linked string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s %s %s/%s\n", program, Version(linked), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
