package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

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
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s %s %s/%s\n", program, Version(linked), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
