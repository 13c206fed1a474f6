package version_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdr-features/internal/version"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in      string
		numbers []int
		rest    string
		major   int
	}{
		{"570.86.15", []int{570, 86, 15}, "", 570},
		{"6.8.0-45-generic", []int{6, 8, 0}, "-45-generic", 6},
		{"2.17.2g", []int{2, 17, 2}, "g", 2},
		{"24.10-1.1.4", []int{24, 10}, "-1.1.4", 24},
		{"2.8.0+cuda12.9", []int{2, 8, 0}, "+cuda12.9", 2},
		{"7", []int{7}, "", 7},
		{"7.", []int{7}, ".", 7},
		{"7.x.3", []int{7}, ".x.3", 7},
		{"7..3", []int{7}, "..3", 7},
		{"7rc1", []int{7}, "rc1", 0},
		{"", nil, "", 0},
		{".7", nil, ".7", 0},
		{"-7", nil, "-7", 0},
		{"v7", nil, "v7", 0},
		{"999999999.1", []int{999999999, 1}, "", 999999999},
		{"1999999999.1", nil, "1999999999.1", 0},
		{"1.99999999999999999999", []int{1}, ".99999999999999999999", 1},
	} {
		if numbers, rest := version.Parse(tt.in); !slices.Equal(numbers, tt.numbers) || rest != tt.rest {
			t.Errorf("Parse(%q) = %v, %q; want %v, %q", tt.in, numbers, rest, tt.numbers, tt.rest)
		}
		if major := version.Major(tt.in); major != tt.major {
			t.Errorf("Major(%q) = %d, want %d", tt.in, major, tt.major)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"1.18", "1.18.0", 0},
		{"1.18-1", "1.18", 0},
		{"2.8.0+cuda12.9", "2.8", 0},
		{"1.9", "1.18", -1},
		{"2.9", "2.13", -1},
		{"1.16.0~rc1", "1.16", 0},
		{"0.3.10.post2", "0.3.10", 0},
		{"1:2", "1", 0},
		{"3", "2.99", 1},
		{"2", "1.18", 1},
		{"6.1.0-13", "6.1", 0},
		{"", "0", 0},
		{"", "1", -1},
	} {
		if got := version.Compare(tt.a, tt.b); got != tt.want {
			t.Errorf("Compare(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := version.Compare(tt.b, tt.a); got != -tt.want {
			t.Errorf("Compare(%q, %q) = %d, want %d", tt.b, tt.a, got, -tt.want)
		}
	}
}

// FuzzParse: the numbers and the rest make up the text again, but for zeros in front, and the rest
// begins with no number that could have been read.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"570.86.15", "2.17.2g", "24.10-1.1.4", "", ".", "1..2", "00.01", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		numbers, rest := version.Parse(text)
		front, ok := strings.CutSuffix(text, rest)
		if !ok {
			t.Fatalf("%q does not end with %q", text, rest)
		}
		var again []string
		if front != "" {
			again = strings.Split(front, ".")
		}
		if len(again) != len(numbers) {
			t.Fatalf("%v of %q", numbers, front)
		}
		for i, n := range numbers {
			if was := strings.TrimLeft(again[i], "0"); was != strconv.Itoa(n) && (was != "" || n != 0) {
				t.Errorf("%d of %q", n, again[i])
			}
		}
		if c := version.Compare(text, text); c != 0 {
			t.Errorf("%q compares to itself as %d", text, c)
		}
	})
}
