package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli/imagecommand"
	"gdr-features/internal/cli/nodescommand"
)

// everyCommand are the commands in the order of the help: those of gdr-features, those below
// them, and those of kubectl gdr alone. The shells of completion are left out.
func everyCommand() []*cobra.Command {
	var all []*cobra.Command
	add := func(c *cobra.Command) {
		if c.IsAvailableCommand() && c.Name() != "help" {
			all = append(all, c)
		}
	}
	for _, c := range new(app).command().Commands() {
		add(c)
		if c.Name() != "completion" {
			for _, below := range c.Commands() {
				add(below)
			}
		}
	}
	plugin := &cobra.Command{Use: "gdr", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gdr"}}
	image, job := imagecommand.New(nil, os.Getenv), nodescommand.Example(&nodescommand.Flags{}, nil)
	plugin.AddCommand(job, image)
	return append(all, job, image)
}

// called is what a command is called, with the arguments that it needs: "gdr-features copy DIR".
func called(c *cobra.Command) string {
	use, _, _ := strings.Cut(c.Use, " [")
	return strings.TrimSuffix(c.CommandPath(), c.Name()) + use
}

// exitStatus is what a help says after "Exit status:", to the end of the paragraph. The help is
// broken into lines, also between these two words.
func exitStatus(help string) string {
	for paragraph := range strings.SplitSeq(help, "\n\n") {
		if _, said, ok := strings.Cut(strings.Join(strings.Fields(paragraph), " "), "Exit status: "); ok {
			return strings.TrimSuffix(said, ".")
		}
	}
	return "0; 1 on an error"
}

// cell is text in a table of Markdown.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// commandsPage is docs/commands.md.
func commandsPage() string {
	var b strings.Builder
	b.WriteString(`# Commands

<!-- Made from the help of the commands by make golden -->

` + "`gdr-features COMMAND --help`" + ` and the [manual pages](../man) say more, with examples. Without a command,
` + "`gdr-features`" + ` shows the matrix and the verdict on a terminal, and otherwise the labels, so that it works as an NFD hook.

| command | what it does | options | exit status |
|---|---|---|---|
`)
	for _, c := range everyCommand() {
		var options []string
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				name := "`--" + f.Name + "`"
				if formats, ok := strings.CutPrefix(f.Usage, "output format: "); ok {
					name += " (" + cell(formats) + ")"
				}
				options = append(options, name)
			}
		})
		names := "`" + called(c) + "`"
		if of, ok := strings.CutPrefix(called(c), "gdr-features nodes"); ok {
			names += ", `kubectl gdr" + of + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", names, cell(c.Short), strings.Join(options, " "), cell(exitStatus(c.Long)))
	}
	b.WriteString(`
An error prints one line on standard error. On a terminal, tables and texts are broken at its width, each line below the
beginning of its last column; a matrix that is too wide is printed in parts. Files, pipes, and what programs read stay as
they are.

## Options of all commands

Those about a machine go with every command but ` + "`nodes`" + `. A variable counts where the option is not given, and not with
` + "`--root`; `snapshot` heeds only those of `--sysfs` and `--procfs`" + `.

| option | what it is | variable |
|---|---|---|
`)
	new(app).command().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		variable := ""
		if slices.Contains(reportFlags, f.Name) {
			variable = "`GDR_FEATURES_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", f.Name, cell(f.Usage), variable)
	})
	b.WriteString("\n`--expect` of `check` and `labels` has the variable `GDR_FEATURES_EXPECT`.\n")
	return b.String()
}

// TestCommandsPage: docs/commands.md is what the help says.
func TestCommandsPage(t *testing.T) {
	golden(t, filepath.Join(repository, "docs/commands.md"), []byte(commandsPage()))
}

// TestExitStatus: wherever the help is broken into lines.
func TestExitStatus(t *testing.T) {
	for _, tt := range []struct{ help, want string }{
		{"It reads.\n\nIt writes.", "0; 1 on an error"},
		{"It reads. Exit status: 0; 2 if\nnot.", "0; 2 if not"},
		{"It reads. Exit\nstatus: 0; 2 if not.", "0; 2 if not"},
		{"It reads. Exit status:\n0; 2 if not.", "0; 2 if not"},
		{"It reads.\n\nExit\nstatus: 0; 2 if not.\n\nIt writes.", "0; 2 if not"},
		{"Of its exit\n\nstatus: nothing.", "0; 1 on an error"},
	} {
		if got := exitStatus(tt.help); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.help, got, tt.want)
		}
	}
}

// TestCommandsInREADME: the table in README.md has every command but those that every program has,
// and the root's help every option that has a variable.
func TestCommandsInREADME(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, c := range everyCommand() {
		name := "`" + c.CommandPath()
		if of, ok := strings.CutPrefix(c.CommandPath(), "gdr-features nodes"); ok {
			name = "`kubectl gdr" + of
		}
		if !slices.Contains([]string{"version", "completion"}, c.Name()) && !strings.Contains(table, name) {
			t.Errorf("README.md, Commands: no row begins with %s", name)
		}
	}
	help := new(app).command().Long
	for _, name := range reportFlags {
		if !strings.Contains(help, "--"+name) {
			t.Errorf("the help of gdr-features does not say that --%s has a variable", name)
		}
	}
}
