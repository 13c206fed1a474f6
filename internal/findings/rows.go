package findings

import (
	"cmp"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/tristate"
)

// What follows is for the checks of a Pod alone, which are tables of rows: the first row whose
// condition holds is the finding.

// check is one thing that is looked at. sources are the files it is read from.
type check struct {
	name    string
	sources []string
	rows    []row
}

// row is one thing that a check may find.
type row struct {
	status Status
	code   Code // "" for OK, and where a file cannot be read
	// The row holds when this does; nil: always. If which is set, it must also name
	// something that the row is about.
	when  func(*judged) bool
	which func(*judged) subjects
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
	codes := finding.Map(c.rows, func(r row) Code { return r.codeOr() })
	return Check{
		Name: c.name, Sources: c.sources, Judge: c.judge,
		Codes: finding.Unique(slices.DeleteFunc(codes, func(code Code) bool { return code == "" })),
	}
}

func (r *row) codeOr() Code {
	if r.status == Undecidable {
		return cmp.Or(r.code, finding.Unreadable)
	}
	return r.code
}

// judge says what the first row that holds does.
func (c *check) judge(f *judged) finding.Said {
	for i := range c.rows {
		r := &c.rows[i]
		if r.when != nil && !r.when(f) {
			continue
		}
		facts := *f
		if r.which != nil {
			if facts.about = r.which(f); len(facts.about.names) == 0 {
				continue
			}
		}
		return finding.Said{
			Status: r.status, Code: r.codeOr(), Detail: fill(&facts, r.text), Fix: of(r.fix, &facts),
			Evidence: slices.Concat(facts.about.evidence, of(r.evidence, &facts)),
		}
	}
	return finding.Said{}
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
