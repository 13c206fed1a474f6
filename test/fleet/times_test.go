package main

import (
	"testing"
	"time"
)

func TestPercentiles(t *testing.T) {
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i))
	}
	for _, test := range []struct {
		all  []time.Duration
		want [4]time.Duration
	}{
		{nil, [4]time.Duration{}},
		{[]time.Duration{7}, [4]time.Duration{7, 7, 7, 7}},
		{all, [4]time.Duration{100, 180, 198, 200}},
		{[]time.Duration{3, 1, 2}, [4]time.Duration{2, 3, 3, 3}},
	} {
		if got := percentiles(test.all); got != test.want {
			t.Errorf("of %d: %v, want %v", len(test.all), got, test.want)
		}
	}
}
