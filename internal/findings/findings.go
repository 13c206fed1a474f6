// Package findings says what check found: one finding for each check, with what to
// do about it and the files it was read from. It is pure: facts and their verdict in,
// findings out.
//
// Each finding is a row of a table; the first row of a check whose condition holds
// is its finding. A new finding is a new row, and a page docs/reasons/<Code>.md.
package findings

import (
	"cmp"
	"slices"
	"strings"

	"gdr-features/internal/expect"
	"gdr-features/internal/sanitize"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Status is how a check ended.
type Status string

// Statuses of a check.
const (
	OK          Status = "OK"
	Warn        Status = "WARN"
	Fail        Status = "FAIL"
	Undecidable Status = "UNKNOWN"
)

// Code names what was found, as one stable word: the verdict's Reason, or a word
// that is more exact. Each has a page, docs/reasons/<Code>.md.
type Code string

// Finding is one check: what was looked at, what was found, what to do.
type Finding struct {
	Check  string
	Status Status
	// Reason is the verdict's word for a failed prerequisite, "" for others.
	Reason verdict.Reason
	// Code names what was found; "" only where Status is OK.
	Code Code
	// Detail is what was found, in one sentence.
	Detail string
	// Fix is what to do about it: steps, or alternatives, which begin with "or".
	Fix []string
	// Sources are the files it was read from. Evidence is what those that matter
	// held, "file=value".
	Sources, Evidence []string
}

// FixText is the fix in one line: the steps, with semicolons between them.
func (f *Finding) FixText() string { return strings.Join(f.Fix, "; ") }

// judged is what findings are made of.
type judged struct {
	verdict.Pair
	// Expected is how the machine compares with what is expected of it; nil without
	// expectations.
	Expected *expect.Result
	// Pod is what a container lets this process do; nil outside `check --pod`.
	Pod *Pod

	// about and unmet are what the row at hand is about: see row.which and
	// expected.
	about subjects
	unmet *expect.Check
}

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
	// text says what was found, with words in braces that are filled in: see words. fix is
	// what to do about it; nil for nothing.
	text string
	fix  func(*judged) []string
	// evidence is what the files held that matter, beyond that of which; nil for nothing.
	evidence func(*judged) []string
}

// All returns the findings: the checks in the order of the verdict, those that advise, those
// of a container, nil outside `check --pod`, and how the machine compares with what is
// expected of it, nil without expectations.
func All(node *verdict.Node, expected *expect.Result, container *Pod) []Finding {
	f := &judged{Pair: node.Judged(), Expected: expected, Pod: container}
	var all []Finding
	for _, c := range f.checks() {
		if found, ok := c.find(f); ok {
			all = append(all, found)
		}
	}
	return append(all, f.expected()...)
}

// checks are those that apply to this machine. Drivers do not matter if the hardware
// is not capable, or not judged.
func (f *judged) checks() []check {
	switch {
	case len(f.Matrix.GPUs) == 0, f.Verdict.Capable == tristate.False, because(verdict.NICNotJudged)(f):
		return []check{hardware}
	case f.Kmod.Advice == nil:
		return prerequisites
	}
	if f.Pod != nil {
		return slices.Concat(prerequisites, advice, f.Pod.checks())
	}
	return slices.Concat(prerequisites, advice)
}

// prerequisites are the checks of the verdict, in its order, and of what makes
// GPUDirect RDMA slow.
var prerequisites = []check{
	hardware, gpuDriver, nicDriver, rdmaDevice, port, peermem, dmabuf, rdmaStack, level, ncclDefault, iommu, acs,
}

// advice are the checks that need kmod.Advice. A check without a row that holds
// gives no finding.
var advice = []check{nearPort, sharedNIC, operators, modules, nodeNetwork, verbsEntry, userSpace, dataDirect, bar, rootComplex, link, numa, storage, otherGPUs}

// Codes lists every code that a finding can have, each once.
func Codes() []Code {
	var all []Code
	for _, c := range slices.Concat(prerequisites, advice, inPod, []check{expectedCheck}) {
		for _, r := range c.rows {
			if code := r.codeOr(r.reason); code != "" && !slices.Contains(all, code) {
				all = append(all, code)
			}
		}
	}
	return all
}

// codeOr is the row's code, or else the verdict's reason.
func (r *row) codeOr(reason verdict.Reason) Code {
	if r.status == Undecidable {
		reason = cmp.Or(reason, verdict.Unreadable)
	}
	return cmp.Or(r.code, Code(reason))
}

// find returns the first row that holds.
func (c *check) find(f *judged) (found Finding, ok bool) {
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
		return c.finding(r, &facts), true
	}
	return Finding{}, false
}

// finding makes the finding of a row. Texts from the machine are made safe for a
// terminal.
func (c *check) finding(r *row, f *judged) Finding {
	reason := r.reason
	if reason == "" && r.status == Fail && c.reason != nil {
		reason = c.reason(f)
	}
	seen := unique(slices.Concat(f.about.evidence, of(c.evidence, f), of(r.evidence, f)))
	return Finding{
		Check: c.name, Status: r.status, Reason: reason, Code: r.codeOr(reason),
		Detail: sanitize.Terminal(fill(f, r.text+c.tail)), Fix: sanitized(of(r.fix, f)),
		Sources: sanitized(c.files(f, seen)), Evidence: sanitized(seen),
	}
}

// files lists what the check is read from, and any further files of evidence.
func (c *check) files(f *judged, evidence []string) []string {
	all := slices.Clone(c.sources)
	for _, fact := range c.facts {
		all = append(all, texts(f.read(fact), pattern)...)
	}
	for _, seen := range evidence {
		file, _, _ := strings.Cut(seen, "=")
		if file = pattern(file); !slices.ContainsFunc(all, func(source string) bool { return covers(source, file) }) {
			all = append(all, file)
		}
	}
	return append([]string{}, unique(all)...)
}

// read returns the files that a fact rests on, from where it was read.
func (f *judged) read(fact kmod.Fact) []string {
	switch fact {
	case verdict.FactPeermem:
		return f.Client().Files
	case platform.FactIOMMU:
		return f.Platform.IOMMU.Files
	}
	return f.Kmod.Files[fact]
}

// pattern folds files that there are many of: those of PCI functions and IOMMU groups,
// and the directories of peer memory clients.
func pattern(file string) string {
	for _, dir := range [...]string{pci.Devices + "/", platform.Groups + "/"} {
		if _, name, ok := strings.Cut(strings.TrimPrefix(file, dir), "/"); ok && strings.HasPrefix(file, dir) {
			return dir + "*/" + name
		}
	}
	const clients = "/memory_peers"
	if dir, _, ok := strings.Cut(file, clients+"/"); ok {
		return dir + clients
	}
	return file
}

// covers reports whether a file is, or is below, a source.
func covers(source, file string) bool { return file == source || strings.HasPrefix(file, source+"/") }

// of is the value of a function for these facts, the zero value without a function.
func of[T any](value func(*judged) T, f *judged) (none T) {
	if value == nil {
		return none
	}
	return value(f)
}

// sanitized returns the texts made safe for a terminal, nil for nil. It leaves those of a row
// as they are, which all machines share.
func sanitized(all []string) []string {
	safe := slices.Clone(all)
	for i := range safe {
		safe[i] = sanitize.Terminal(safe[i])
	}
	return safe
}
