// Package manpage writes manual pages, man(7), from the commands of a cobra program.
package manpage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Pages returns the pages of a program and of each of its commands, by file name. The shells
// of completion have none.
func Pages(root *cobra.Command) map[string]string {
	pages := map[string]string{name(root) + ".1": page(root)}
	for _, c := range available(root) {
		pages[name(c)+".1"] = page(c)
		if c.Name() == "completion" {
			continue
		}
		for _, below := range available(c) {
			pages[name(below)+".1"] = page(below)
		}
	}
	return pages
}

func available(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() || sub.Name() == "help"
	})
}

// name is that of a page: "gdr-features-topo".
func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page writes the manual page of a command. It does not use cobra/doc, whose pages
// go through Markdown, which treats asterisks and angle brackets in our texts as
// markup.
func page(c *cobra.Command) string {
	var out strings.Builder
	name := name(c)
	fmt.Fprintf(&out, ".TH %s 1 \"\" gdr-features \"User Commands\"\n", strings.ToUpper(name))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	out.WriteString(".SH SYNOPSIS\n")
	if c.HasParent() || !c.HasSubCommands() {
		fmt.Fprintf(&out, ".B %s\n", roff(c.UseLine()))
	} else {
		fmt.Fprintf(&out, ".B %s\n[\\fIcommand\\fR] [\\fIflags\\fR]\n", roff(name))
	}
	out.WriteString(".SH DESCRIPTION\n" + prose(cmp.Or(c.Long, c.Short+".")))
	writeCommands(&out, c)
	writeFlags(&out, "OPTIONS", c.NonInheritedFlags())
	writeFlags(&out, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&out, ".SH EXAMPLES\n.EX\n%s\n.EE\n", roff(c.Example))
	}
	if c.HasParent() {
		out.WriteString(".SH SEE ALSO\n.BR gdr-features (1)\n")
	}
	return out.String()
}

// writeCommands lists the commands below one.
func writeCommands(out *strings.Builder, c *cobra.Command) {
	var commands []string
	for _, sub := range available(c) {
		commands = append(commands, fmt.Sprintf(".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short)))
	}
	if len(commands) > 0 {
		slices.Sort(commands)
		out.WriteString(".SH COMMANDS\n" + strings.Join(commands, ""))
	}
}

func writeFlags(out *strings.Builder, heading string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(out, ".SH %s\n", heading)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		names := "\\fB" + roff("--"+f.Name) + "\\fR"
		if f.Shorthand != "" {
			names = "\\fB" + roff("-"+f.Shorthand) + "\\fR, " + names
		}
		if kind != "" {
			names += " \\fI" + roff(kind) + "\\fR"
		}
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(out, ".TP\n%s\n%s\n", names, roff(usage))
	})
}

// prose writes paragraphs. Those whose lines are indented stay as they are.
func prose(text string) string {
	var out strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			out.WriteString(".PP\n")
		}
		if strings.Contains("\n"+paragraph, "\n ") {
			paragraph = ".EX\n" + roff(paragraph) + "\n.EE"
		} else {
			paragraph = roff(paragraph)
		}
		out.WriteString(paragraph + "\n")
	}
	return out.String()
}

// verbatim escapes the characters that roff would turn into typographic ones.
var verbatim = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// roff escapes text so that it is shown as it is: commands can be copied, and no
// line is a request.
func roff(text string) string {
	text = verbatim.Replace(text)
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n.", "\n\\&."), "\n")
}
