package expect

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/version"
	"gdr-features/tristate"
)

// Range is whole numbers from Min to Max: "8" is exactly 8, ">= 4, <= 9" a range.
type Range struct {
	Min, Max int
	text     string
}

// String is the range as it was written.
func (r Range) String() string { return r.text }

const maxNumber = 1_000_000

// ParseRange reads a range.
func ParseRange(text string) (Range, error) {
	r := Range{0, math.MaxInt, text}
	for part := range strings.SplitSeq(text, ",") {
		op, number := cutOperator(part)
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > maxNumber || number[0] == '+' || op != "" && op != ">=" && op != "<=" {
			return Range{}, fmt.Errorf("%q is not a number; write 8, \">= 8\", \"<= 8\" or \">= 4, <= 8\"", text)
		}
		if op != "<=" {
			r.Min = max(r.Min, n)
		}
		if op != ">=" {
			r.Max = min(r.Max, n)
		}
	}
	if r.Min > r.Max {
		return Range{}, fmt.Errorf("no number is %s", text)
	}
	return r, nil
}

// Holds reports whether a count is in the range, where proven is the least that it is and
// up to more may be added; more is negative for no limit.
func (r Range) Holds(proven, more int) tristate.State {
	most := proven + more
	if more < 0 {
		most = math.MaxInt
	}
	switch {
	case r.Min <= proven && most <= r.Max:
		return tristate.True
	case most < r.Min, r.Max < proven:
		return tristate.False
	}
	return tristate.Unknown
}

// Versions are those that a constraint accepts: "24.10" with whatever numbers follow, ">=
// 24.10", "<" and the like, and several with commas between them.
type Versions struct {
	bounds []bound
	text   string
}

// bound is one part: an operator, "" for equal, and the numbers of a version.
type bound struct {
	op      string
	numbers []int
}

// String is the constraint as it was written.
func (v Versions) String() string { return v.text }

// Form is how a kind of version is written: an example, and a pattern for it and its beginnings.
type Form struct{ example, pattern string }

// Forms of the GPU driver, MOFED's modules and the firmware of NICs.
var (
	driverForm   = Form{"570.86.15", `^\d{1,9}(\.\d{1,9}){0,2}$`}
	mofedForm    = Form{"24.10-1.1.4", `^\d{1,9}(\.\d{1,9}(-\d{1,9}(\.\d{1,9}){0,2})?)?$`}
	firmwareForm = Form{"28.39.1002", driverForm.pattern}
)

// ParseVersions reads a constraint on versions of a form.
func ParseVersions(text string, form Form) (Versions, error) {
	v := Versions{text: text}
	for part := range strings.SplitSeq(text, ",") {
		op, version := cutOperator(part)
		if ok, _ := regexp.MatchString(form.pattern, version); !ok {
			return Versions{}, fmt.Errorf("%q is not a version; write it as %s or its beginning, or \">= %s\"", text, form.example, form.example)
		}
		v.bounds = append(v.bounds, bound{op, numbers(version)})
	}
	return v, nil
}

// numbers are those of a version, with dots or dashes between them, up to what is no number.
func numbers(of string) (all []int) {
	for rest := "-" + of; strings.HasPrefix(rest, "-"); {
		some, behind := version.Parse(rest[1:])
		if all, rest = append(all, some...), behind; len(some) > 0 && rest != "" && rest[0] != '.' && rest[0] != '-' {
			return all[:len(all)-1] // what follows belongs to the last one
		}
	}
	return all
}

// Holds reports whether a version is accepted. As many numbers are compared as the constraint
// has; unknown where the version has fewer and these are the same.
func (v Versions) Holds(version string) tristate.State {
	found, out := numbers(version), tristate.True
	for _, b := range v.bounds {
		out = tristate.And(out, b.holds(found))
	}
	return out
}

func (b bound) holds(version []int) tristate.State {
	common := min(len(b.numbers), len(version))
	order := slices.Compare(version[:common], b.numbers[:common])
	if order == 0 && common < len(b.numbers) {
		return tristate.Unknown
	}
	switch b.op {
	case ">=":
		return tristate.Of(order >= 0)
	case ">":
		return tristate.Of(order > 0)
	case "<=":
		return tristate.Of(order <= 0)
	case "<":
		return tristate.Of(order < 0)
	}
	return tristate.Of(order == 0)
}

// cutOperator takes ">=", ">", "<=", "<" or "" off a constraint.
func cutOperator(part string) (op, rest string) {
	part = strings.TrimSpace(part)
	for _, op := range [...]string{">=", "<=", ">", "<"} {
		if rest, ok := strings.CutPrefix(part, op); ok {
			return op, strings.TrimSpace(rest)
		}
	}
	return "", part
}

// Pattern is a name in either case, in which each * stands for any text; "" for any name.
type Pattern struct {
	text   string
	regexp *regexp.Regexp
}

// ParsePattern reads a pattern.
func ParsePattern(text string) (Pattern, error) {
	re, err := regexp.Compile("(?is)^" + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*") + "$")
	return Pattern{text, re}, err
}

// Matches compares a name with the pattern.
func (p Pattern) Matches(name string) bool {
	return p.regexp == nil || p.regexp.MatchString(strings.TrimSpace(name))
}

func matchesAny(patterns []Pattern, names ...string) bool {
	return slices.ContainsFunc(patterns, func(p Pattern) bool { return slices.ContainsFunc(names, p.Matches) })
}

func join(patterns []Pattern) string {
	words := make([]string, len(patterns))
	for i, p := range patterns {
		words[i] = p.text
	}
	return strings.Join(words, " or ")
}
