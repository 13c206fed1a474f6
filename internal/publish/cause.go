package publish

import (
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// causeGap is the least time between two causes of one row of failures that are
// told. Two that take turns must not fill a log.
const causeGap = 10 * time.Second

// Cause remembers the cause that was last told of a row of failures. The zero value
// stands for a row that begins.
type Cause struct {
	text string
	told time.Time
}

// News tells whether a failure is to be told: it is the first, or its cause is
// another than the one last told. What was asked for does not count, nor do numbers:
// each try has another port, time or version in its text.
func (c *Cause) News(err error, now time.Time) bool {
	if request := (*url.Error)(nil); errors.As(err, &request) {
		err = request.Err
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
	if c.text == text || !c.told.IsZero() && now.Sub(c.told) < causeGap {
		return false
	}
	c.text, c.told = text, now
	return true
}
