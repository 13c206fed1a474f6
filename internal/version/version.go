// Package version reads and compares the versions of drivers, libraries and kernels by their numbers.
package version

import (
	"slices"
	"strconv"
	"strings"
)

// Parse returns the numbers that a version begins with, with a dot between each two, and what is
// behind them: 6, 8, 0 and "-45-generic". There are none where it begins otherwise. A number has
// nine digits at most.
func Parse(version string) (numbers []int, rest string) {
	for rest = version; ; {
		text := rest
		if len(numbers) > 0 {
			after, dot := strings.CutPrefix(rest, ".")
			if !dot {
				return numbers, rest
			}
			text = after
		}
		behind := strings.TrimLeft(text, "0123456789")
		digits := strings.TrimSuffix(text, behind)
		n, err := strconv.Atoi(digits)
		if err != nil || len(digits) > 9 {
			return numbers, rest
		}
		numbers, rest = append(numbers, n), behind
	}
}

// Major is the first number of a version; 0 where that is not known.
func Major(version string) int {
	numbers, rest := Parse(version)
	if len(numbers) == 0 || len(numbers) == 1 && rest != "" && rest[0] != '.' {
		return 0
	}
	return numbers[0]
}

// Compare compares two versions by their numbers, negative for the older one first; missing numbers
// are 0. What is behind the numbers, as "-1" or "+cuda12.9", does not count.
func Compare(a, b string) int {
	x, _ := Parse(a)
	y, _ := Parse(b)
	for len(x) < len(y) {
		x = append(x, 0)
	}
	for len(y) < len(x) {
		y = append(y, 0)
	}
	return slices.Compare(x, y)
}
