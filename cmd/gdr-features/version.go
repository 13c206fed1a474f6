package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "gdr-features %s %s %s/%s\n", cli.Version(version), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
