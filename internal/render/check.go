package render

import (
	"fmt"
	"io"
	"strings"

	"gdr-features/internal/findings"
	"gdr-features/internal/report"
	"gdr-features/internal/view"
)

// Check writes a line a check and what to do about it, with wide also where it was read,
// and at the end the pages that explain more.
func Check(w io.Writer, r *report.Report, wide bool) error {
	var t strings.Builder
	see := ""
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(&t, "%s\t%s\t%s\n", f.Status, f.Check, headline(f))
		if len(f.Fix) > 0 {
			fmt.Fprintf(&t, "\t\tfix: %s\n", strings.Join(f.Fix, "\n\t\t     "))
		}
		if wide && f.Status != findings.OK && len(f.Sources) > 0 {
			fmt.Fprintf(&t, "\t\tread from: %s\n", evidence(f))
		}
		if page := "see: gdr-features explain " + string(f.Code) + "\n"; f.Code != "" && !strings.Contains(see, page) {
			see += page
		}
	}
	return write(w, columns(t.String()), "\n", view.Summary(&r.Node), "\n", see, problems(r))
}

// headline is what was found, after the verdict's reason and, if it says more, the
// code.
func headline(f *findings.Finding) string {
	switch {
	case f.Code == "":
		return f.Detail
	case f.Reason == "", string(f.Reason) == string(f.Code):
		return string(f.Code) + ": " + f.Detail
	}
	return string(f.Reason) + ", " + string(f.Code) + ": " + f.Detail
}

// evidence names a few files with what they held, or only the files if there is no
// evidence.
func evidence(f *findings.Finding) string {
	const few = 2
	switch {
	case len(f.Evidence) == 0:
		return strings.Join(f.Sources, " ")
	case len(f.Evidence) <= few:
		return strings.Join(f.Evidence, " ")
	}
	return fmt.Sprintf("%s and %d more (-o json)", strings.Join(f.Evidence[:few], " "), len(f.Evidence)-few)
}
