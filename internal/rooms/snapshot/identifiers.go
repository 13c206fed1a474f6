package snapshot

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scrubber replaces serial numbers, GUIDs, UUIDs and MACs with numbers in the
// order they occur, as long as the original and with the same separators. The same
// identifier in any spelling gets the same number.
type scrubber struct {
	numbers map[string]int
	given   map[string]bool // what they were replaced by
	serials *regexp.Regexp  // serial numbers that are known, wherever they occur
	form    *regexp.Regexp  // what may be an identifier by its form
	user    *regexp.Regexp  // "(user@host)"
	users   int             // that were found
}

func newScrubber(serials []string) *scrubber {
	// Of the matches, isIdentifier accepts UUIDs, digits in a row, and groups of digits
	// with the same separator. The others are matched as a whole so that no identifier
	// is found within them: modaliases, versions that are git hashes, and other
	// hexadecimal digits.
	const form = `(?i)pci:v[^\x00-\x20"]*|-g[0-9a-f]+` +
		`|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
		`|[0-9a-f]{5,}` +
		`|[0-9a-f]{1,4}(?:(?::[0-9a-f]{1,4})+|(?:-[0-9a-f]{1,4})+|(?:\.[0-9a-f]{1,4})+|)`
	return &scrubber{
		numbers: map[string]int{}, given: map[string]bool{},
		serials: anyOf(serials), form: regexp.MustCompile(form),
		user: regexp.MustCompile(`\(([!-'*-?A-~]+)@([!-'*-~]+)\)`),
	}
}

// anyOf finds serial numbers, except those that may also be a word, such as
// mlx5_core, or an address. A number must not be part of a longer one or of PCI ids.
func anyOf(serials []string) *regexp.Regexp {
	likely := regexp.MustCompile(`^[^:/]{6,}$`)
	digits := regexp.MustCompile(`[0-9][^0-9]*[0-9][^0-9]*[0-9][^0-9]*[0-9]`)
	isHex := regexp.MustCompile(`^[0-9A-Fa-f]+$`)
	slices.SortFunc(serials, func(a, b string) int { return len(b) - len(a) }) // one may begin like another
	words := []string{`$^`}                                                    // nothing
	for _, s := range serials {
		switch {
		case !likely.MatchString(s) || !digits.MatchString(s) || empty(withoutSeparators([]byte(s))):
		case isHex.MatchString(s):
			words = append(words, `\b`+s+`\b`)
		default:
			words = append(words, regexp.QuoteMeta(s))
		}
	}
	return regexp.MustCompile(`(?i)` + strings.Join(words, "|"))
}

// clean overwrites every identifier in a text. Each has a hexadecimal digit, which saves
// long texts without any from the search.
func (s *scrubber) clean(text []byte) {
	if !bytes.ContainsAny(text, "0123456789ABCDEFabcdef") {
		return
	}
	for _, at := range s.serials.FindAllIndex(text, -1) {
		s.rename(text[at[0]:at[1]])
	}
	for _, at := range s.form.FindAllIndex(text, -1) {
		if word := text[at[0]:at[1]]; isIdentifier(word) {
			s.rename(word)
		}
	}
}

// isIdentifier judges a match of form.
func isIdentifier(word []byte) bool {
	const mac, hash = 12, 128 // digits of the shortest identifier and of the longest
	digits := len(withoutSeparators(word))
	switch i := bytes.IndexAny(word, ":.-"); {
	case i == 0 || word[0] == 'p' || word[0] == 'P': // a version, a modalias
		return false
	case i < 0:
		return digits >= mac && digits <= hash
	default:
		groups := bytes.Count(word, word[i:i+1]) + 1
		return groups >= 6 && word[i] != '.' || groups >= 3 && digits >= mac
	}
}

// rename overwrites an identifier with its number. All zeros or all ones is not an
// identifier.
func (s *scrubber) rename(text []byte) {
	key := withoutSeparators(text)
	if empty(key) || s.given[key] {
		return
	}
	digits := strconv.Itoa(s.number(key))
	for i, b := range slices.Backward(text) {
		switch {
		case strings.IndexByte(separators, b) >= 0:
		case digits == "":
			text[i] = '0'
		default:
			text[i], digits = digits[len(digits)-1], digits[:len(digits)-1]
		}
	}
	s.given[withoutSeparators(text)] = true
}

// number is that of an identifier without separators.
func (s *scrubber) number(key string) int {
	number := s.numbers[key]
	if number == 0 {
		number = len(s.numbers) + 1
		s.numbers[key] = number
	}
	return number
}

const separators = ":.- "

// withoutSeparators returns an identifier in the spelling that all others are compared in.
func withoutSeparators(text []byte) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(separators, r) {
			return -1
		}
		return r
	}, strings.ToLower(string(text)))
}

// empty reports whether a number means none: all zeros or all ones.
func empty(key string) bool { return strings.Trim(key, "0") == "" || strings.Trim(key, "f") == "" }
