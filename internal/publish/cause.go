package publish

import (
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// causeInterval is the least time between two causes that are logged: two that
// alternate must not fill the log.
const causeInterval = 10 * time.Second

// Cause remembers the cause that was logged last in a row of failures. The zero
// value is the beginning of a row.
type Cause struct {
	text   string
	logged time.Time
}

// News reports whether a failure is to be logged: it is the first, or its cause is not
// the one logged last. URLs and numbers are ignored: each try has another port, time
// or version in its text.
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
	if c.text == text || !c.logged.IsZero() && now.Sub(c.logged) < causeInterval {
		return false
	}
	c.text, c.logged = text, now
	return true
}
