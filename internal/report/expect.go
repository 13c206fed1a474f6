package report

import "gdr-features/internal/expect"

// readExpectations gets what is expected now.
func (rd *Reader) readExpectations(r *Report) {
	if rd.options.Expect == nil {
		return
	}
	file, err := rd.options.Expect()
	if err != nil {
		r.problem(err)
	}
	rd.want = file
}

// mayBeExpected reports whether something may be expected of a machine without GPU.
func (rd *Reader) mayBeExpected(r *Report) bool {
	return rd.want != nil && !rd.want.MatchesNone(&r.Node)
}

// compare judges the machine by what is expected of it; nil without expectations.
func (rd *Reader) compare(r *Report) *expect.Result {
	switch {
	case rd.options.Expect == nil:
		return nil
	case rd.want == nil:
		return &expect.Result{}
	}
	result := expect.Judge(rd.want, &r.Node)
	return &result
}
