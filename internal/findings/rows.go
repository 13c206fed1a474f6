package findings

import (
	"cmp"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Checks that are tables of rows: the first row whose condition holds is the finding.

// check is one thing that is looked at.
type check struct {
	name string
	// sources are the files it is read from, names, patterns and directories, and
	// facts are those of whose files kmod keeps a record. Files of evidence beyond
	// them are added.
	sources []string
	facts   []kmod.Fact
	// tail and evidence are added to the text and evidence of every row.
	tail     string
	evidence func(*judged) []string
	// byReason: a row holds only where its reason is that of the verdict's step of this name,
	// which is "" when the step is met.
	byReason bool
	// reason is that of failed rows that have none of their own.
	reason func(*judged) verdict.Reason
	rows   []row
}

// row is one thing that a check may find.
type row struct {
	status Status
	// reason is the verdict's, where the check is one of its prerequisites.
	reason verdict.Reason
	// code is "" where the reason is the code, and for OK.
	code Code
	// The row holds when this does; nil: always. If which is set, it must also name
	// something that the row is about.
	when  func(*judged) bool
	which func(*judged) subjects
	whom  func(*judged) finding.Subjects
	// text says what was found, with words in braces that are filled in: see words. fix is
	// what to do about it; nil for nothing.
	text string
	fix  func(*judged) []string
	// evidence is what the files held that matter, beyond that of which; nil for nothing.
	evidence func(*judged) []string
}

// asChecks are checks by functions, of checks by rows.
func asChecks(all ...check) []Check {
	return finding.Map(all, func(c check) Check { return c.asCheck() })
}

func (c *check) asCheck() Check {
	codes := finding.Map(c.rows, func(r row) Code { return r.codeOr(r.reason) })
	return Check{
		Name: c.name, Sources: c.sources, Facts: c.facts, Judge: c.judge,
		Codes: finding.Unique(slices.DeleteFunc(codes, func(code Code) bool { return code == "" })),
	}
}

// codeOr is the row's code, or else the verdict's reason.
func (r *row) codeOr(reason verdict.Reason) Code {
	if r.status == Undecidable {
		reason = cmp.Or(reason, verdict.Unreadable)
	}
	return cmp.Or(r.code, Code(reason))
}

// judge says what the first row that holds does.
func (c *check) judge(f *judged) finding.Said {
	for i := range c.rows {
		r := &c.rows[i]
		if c.byReason && r.reason != f.stepReason(c.name) || r.when != nil && !r.when(f) {
			continue
		}
		facts := *f
		if r.which != nil {
			if facts.about = r.which(f); len(facts.about.names) == 0 {
				continue
			}
		}
		if r.whom != nil {
			on := r.whom(f)
			if facts.about = (subjects{on.Names, on.Evidence}); !on.Any() {
				continue
			}
		}
		return c.said(r, &facts)
	}
	return finding.Said{}
}

func (c *check) said(r *row, f *judged) finding.Said {
	reason := r.reason
	if reason == "" && r.status == Fail && c.reason != nil {
		reason = c.reason(f)
	}
	return finding.Said{
		Status: r.status, Reason: reason, Code: r.codeOr(reason), Detail: fill(f, r.text+c.tail), Fix: of(r.fix, f),
		Evidence: slices.Concat(f.about.evidence, of(c.evidence, f), of(r.evidence, f)),
	}
}

// of is the value of a function for these facts, the zero value without a function.
func of[T any](value func(*judged) T, f *judged) (none T) {
	if value == nil {
		return none
	}
	return value(f)
}

// subjects are what a row is about, with the evidence for it.
type subjects struct{ names, evidence []string }

func (s *subjects) add(name string, evidence ...string) {
	s.names, s.evidence = append(s.names, name), append(s.evidence, evidence...)
}

// about names what the row is about.
func about(f *judged) string { return finding.FirstFew(f.about.names) }

func saw(file, value string) string                    { return finding.Saw(file, value) }
func sawFile(file string, there tristate.State) string { return finding.SawFile(file, there) }
func sawMissing(file string) string                    { return finding.SawMissing(file) }
func steps(all ...string) []string                     { return finding.Steps(all...) }
func unique(all []string) []string                     { return finding.Unique(all) }
func firstFew(all []string) string                     { return finding.FirstFew(all) }

func texts[T any](list []T, text func(T) string) []string { return finding.Map(list, text) }

func choose(state tristate.State, yes, no, unknown string) string {
	return finding.Choose(state, yes, no, unknown)
}

func throughClientCPU(f *judged) subjects { return subjects{names: writeOnly(f).Names} }
