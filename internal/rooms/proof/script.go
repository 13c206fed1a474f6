package proof

import (
	_ "embed" // for head.sh
	"fmt"
	"io"
	"strings"

	"gdr-features/internal/sanitize"
)

// The list of steps in the folder: what Read expects there, so that a run which was broken off does
// not look complete.
const (
	planFile   = "plan"
	planBegins = "gdr-features proof 1"
	planEnds   = "end"
	planStep   = "step"
	planLacks  = "lacks"
	planNote   = "note"
)

//go:embed head.sh
var head string

// Script writes a plan as a script for sh. It has no characters of a machine but names that need no
// quotes (assign takes no others), and reasons within one document that is not expanded.
func (p *Plan) Script(w io.Writer) error {
	var b strings.Builder
	b.WriteString(head + "cat >" + planFile + " <<'PLAN'\n" + planBegins + "\n")
	for i := range p.Steps {
		b.WriteString(p.Steps[i].line())
	}
	b.WriteString(p.reasons(planLacks, planNote) + planEnds + "\nPLAN\n")
	fmt.Fprintf(&b, "of=%d\n", len(p.Steps))
	for i := range p.Steps {
		b.WriteString("\n" + p.Steps[i].script())
	}
	if reasons := p.Reasons(); reasons != "" {
		b.WriteString("\n" + reasons)
	}
	b.WriteString("\necho \"written to $dir; now: gdr-features proof read $dir\"\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Reasons are comments about what is not measured, or not used.
func (p *Plan) Reasons() string { return p.reasons("# Not measured:", "# Not used:") }

func (p *Plan) reasons(notMeasured, notUsed string) string {
	var b strings.Builder
	for _, r := range p.NotMeasured {
		fmt.Fprintf(&b, "%s %s\n", notMeasured, r.line())
	}
	for _, r := range p.NotUsed {
		fmt.Fprintf(&b, "%s %s\n", notUsed, r.line())
	}
	return b.String()
}

func (r Reason) line() string { return sanitize.Terminal(r.What + ": " + r.Why) }

func (s *Step) script() string {
	options := strings.Join(s.Options, " ")
	if s.Way == Host {
		return fmt.Sprintf("# %s: host memory on both sides, the baseline\nrun %s '%s'\n", s.NIC, s.Name, options)
	}
	return fmt.Sprintf("# GPU %s, NIC %s (%s), %s: GPU memory on both sides; if that fails, on one side\ngpu %s '%s' '%s'\n",
		s.GPU, s.NIC, s.Level, s.Way, s.Name, options, strings.Join(s.Server, " "))
}
