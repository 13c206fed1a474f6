package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const manDir = "../../man"

// TestMan compares the manual pages with the commands they are made from.
func TestMan(t *testing.T) {
	for _, name := range []string{"NODE_NAME", "POD_NAMESPACE"} { // defaults come from there
		t.Setenv(name, "")
	}
	a := &app{}
	root := a.command()
	pages := map[string]string{"gdr-features.1": page(root)}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			pages["gdr-features-"+c.Name()+".1"] = page(c)
		}
	}
	there, err := filepath.Glob(filepath.Join(manDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if _, ok := pages[filepath.Base(file)]; ok {
			continue
		}
		if !*update {
			t.Errorf("%s is of no command (make man removes it)", file)
		} else if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range pages {
		golden(t, filepath.Join(manDir, name), []byte(text))
	}
}

// page writes the manual page of a command. (The one that cobra makes goes through
// Markdown, which takes asterisks and angle brackets for its own.)
func page(c *cobra.Command) string {
	var out strings.Builder
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&out, ".TH %s 1 \"\" gdr-features \"User Commands\"\n", strings.ToUpper(name))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	out.WriteString(".SH SYNOPSIS\n")
	if c.HasParent() || !c.HasSubCommands() {
		fmt.Fprintf(&out, ".B %s\n", roff(c.UseLine()))
	} else {
		fmt.Fprintf(&out, ".B %s\n[\\fIverb\\fR] [\\fIflags\\fR]\n", roff(name))
	}
	out.WriteString(".SH DESCRIPTION\n" + prose(cmp.Or(c.Long, c.Short+".")))
	writeVerbs(&out, c)
	writeFlags(&out, "OPTIONS", c.NonInheritedFlags())
	writeFlags(&out, "OPTIONS OF ALL VERBS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&out, ".SH EXAMPLES\n.EX\n%s\n.EE\n", roff(c.Example))
	}
	if c.HasParent() {
		out.WriteString(".SH SEE ALSO\n.BR gdr-features (1)\n")
	}
	return out.String()
}

// writeVerbs lists the commands below one.
func writeVerbs(out *strings.Builder, c *cobra.Command) {
	var verbs []string
	for _, v := range c.Commands() {
		if v.IsAvailableCommand() && v.Name() != "help" {
			verbs = append(verbs, fmt.Sprintf(".TP\n.B %s\n%s\n", roff(v.Name()), roff(v.Short)))
		}
	}
	if len(verbs) > 0 {
		slices.Sort(verbs)
		out.WriteString(".SH VERBS\n" + strings.Join(verbs, ""))
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

// verbatim is how roff writes what it else makes typographic signs of.
var verbatim = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// roff writes text as it is: to be typed, and no line of it a request.
func roff(text string) string {
	text = verbatim.Replace(text)
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n.", "\n\\&."), "\n")
}
