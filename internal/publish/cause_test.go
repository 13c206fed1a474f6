package publish

import (
	"errors"
	"net/url"
	"testing"
	"time"
)

func TestCause(t *testing.T) {
	start := time.Unix(1700000000, 0)
	var c Cause
	for _, step := range []struct {
		at   time.Duration
		text string
		want bool
	}{
		{0, "read tcp 127.0.0.1:40001: EOF", true},
		{1 * time.Second, "read tcp 127.0.0.1:40002: EOF", false}, // another port
		{2 * time.Second, "forbidden", false},                     // too soon
		{11 * time.Second, "forbidden", true},
		{time.Hour, "forbidden", false},
		{2 * time.Hour, "EOF", true},
		{2*time.Hour + time.Second, "forbidden", false},
		{2*time.Hour + 2*time.Second, "EOF", false},
	} {
		if got := c.News(errors.New(step.text), start.Add(step.at)); got != step.want {
			t.Errorf("%v %s: %v", step.at, step.text, got)
		}
	}
	down := errors.New("connection refused")
	if !c.News(&url.Error{Op: "Get", URL: "/list", Err: down}, start.Add(3*time.Hour)) || c.News(&url.Error{Op: "Get", URL: "/watch", Err: down}, start.Add(4*time.Hour)) {
		t.Error("another request is taken for another cause")
	}
	c = Cause{}
	if !c.News(errors.New("EOF"), start) {
		t.Error("the first of another row is not told")
	}
}
