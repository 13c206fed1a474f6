package finding

import (
	"fmt"
	"slices"

	"gdr-features/verdict"
)

// Said is what a check says of a machine. The zero value says nothing: the check gives no
// finding. Its methods return what is said with something added:
//
//	return finding.Warn("ACSRedirect", "redirected by %s", bridges).Of(bridges).Do("leave it on")
type Said struct {
	Finding // without Check, Commands and Sources
	// About is what is spoken of. Its evidence comes before the rest.
	About Subjects
}

// OK says that nothing is wrong.
func OK(format string, args ...any) Said { return said(StatusOK, "", format, args...) }

// Warn says what is wrong, or slow, on a machine that may be ready all the same.
func Warn(code Code, format string, args ...any) Said {
	return said(StatusWarn, code, format, args...)
}

// Fail says what does not work.
func Fail(code Code, format string, args ...any) Said {
	return said(StatusFail, code, format, args...)
}

// Unmet says which prerequisite of the verdict is not met. The verdict's reason is the code.
func Unmet(reason verdict.Reason, format string, args ...any) Said {
	return Fail("", format, args...).Because(reason)
}

// Unknown says what cannot be told, since something cannot be read. The code is Unreadable.
func Unknown(format string, args ...any) Said {
	return said(StatusUnknown, Unreadable, format, args...)
}

// Unread says which prerequisite of the verdict cannot be told, since something cannot be read.
func Unread(format string, args ...any) Said {
	return Unknown(format, args...).Because(verdict.Unreadable)
}

func said(status Status, code Code, format string, args ...any) Said {
	return Said{Finding: Finding{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}}
}

// First is what the first of several functions says that says anything.
func First[T any](of T, judges ...func(T) Said) Said {
	for _, judge := range judges {
		if said := judge(of); said.Found() {
			return said
		}
	}
	return Said{}
}

// Found reports whether anything is said.
func (s Said) Found() bool { return s.Status != "" }

// As gives a code that is more exact.
func (s Said) As(code Code) Said {
	s.Code = code
	return s
}

// Because gives the verdict's reason, which is the code too.
func (s Said) Because(reason verdict.Reason) Said {
	s.Reason, s.Code = reason, Code(reason)
	return s
}

// And adds to the sentence.
func (s Said) And(detail string) Said {
	s.Detail += detail
	return s
}

// Do adds steps to what is to be done. A step that does not apply here is "". A command in it
// stands between backquotes, which are not shown.
func (s Said) Do(steps ...string) Said {
	s.Fix = slices.Concat(s.Fix, Steps(steps...))
	return s
}

// Saw adds evidence: see the function Saw.
func (s Said) Saw(evidence ...string) Said {
	s.Evidence = slices.Concat(s.Evidence, evidence)
	return s
}

// SawFirst puts evidence before what was seen so far.
func (s Said) SawFirst(evidence ...string) Said {
	s.Evidence = slices.Concat(evidence, s.Evidence)
	return s
}

// Of adds what is spoken of, for its evidence. The sentence names it by itself.
func (s Said) Of(about Subjects) Said {
	s.About.Names = slices.Concat(s.About.Names, about.Names)
	s.About.Evidence = slices.Concat(s.About.Evidence, about.Evidence)
	return s
}

// OfAny is Of. Nothing is said where there is nothing to speak of.
func (s Said) OfAny(about Subjects) Said {
	if !about.Any() {
		return Said{}
	}
	return s.Of(about)
}

// Steps leaves out those that do not apply here, which are "".
func Steps(all ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(step string) bool { return step == "" })
}
