package terminal

import (
	"regexp"
	"strings"
)

// tie stands for a space where a line must not be broken. Nothing that is printed has it:
// sanitize.Terminal takes it out of what a machine says.
const tie = "\u00a0"

// Whole keeps a command from being broken: it runs over the edge of a terminal, which shows it in
// two lines and copies it as one. Only a Writer with columns may write it.
func Whole(command string) string { return strings.ReplaceAll(command, " ", tie) }

func spaced(text string) string { return strings.ReplaceAll(text, tie, " ") }

// Colors of how checks ended, and of variables: ANSI's own, which terminals let their users choose.
var colors = map[string]string{
	"OK": "32", "WARN": "33", "PART": "33", "FAIL": "31", "WRONG": "31", "UNKNOWN": "36",
}

// ended is how a check ended, at the beginning of its line and before the next column.
var ended = regexp.MustCompile(`(?m)^(OK|WARN|PART|FAIL|WRONG|UNKNOWN)(  +\S)`)

func paint(text string) string {
	return ended.ReplaceAllStringFunc(text, func(found string) string {
		word, rest, _ := strings.Cut(found, " ")
		return "\x1b[" + colors[word] + "m" + word + "\x1b[0m " + rest
	})
}

// Colors reports whether a terminal is to have colors: not where NO_COLOR is set (no-color.org),
// nor where the terminal can do nothing.
func Colors(isTerminal bool, getenv func(string) string) bool {
	return isTerminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// item begins a line that does not go on with the line before: of a list, a table, a heading.
var item = regexp.MustCompile(`^(#|\||[-*] |[0-9]+\. )`)

// Unwrap joins the lines of each paragraph of a page in Markdown, or of a help text, so that they
// are broken once, where the terminal ends. Commands within a text are kept whole.
func Unwrap(page string) string {
	var out []string
	fenced, open := false, false // open: the next line may go on with the last
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimLeft(line, " ")
		fence := strings.HasPrefix(text, "```")
		switch {
		case fence, fenced:
			out = append(out, line)
			open, fenced = false, fenced != fence
		case text == "":
			out, open = append(out, ""), false
		case open && !item.MatchString(text):
			out[len(out)-1] += " " + text
		default:
			out = append(out, line)
			open = !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, "|")
		}
	}
	for i := range out {
		out[i] = span.ReplaceAllStringFunc(out[i], Whole)
	}
	return strings.Join(out, "\n") + "\n"
}

// span is a command within a text.
var span = regexp.MustCompile("`[^`]+`")
