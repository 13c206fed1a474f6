package snapshot

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// identifiers gives serial numbers, GUIDs, UUIDs and MACs other names: numbers, in
// the order they are met, written as long and with the same separators as what
// they stand for. The same in any spelling gets the same number.
type identifiers struct {
	numbers map[string]int
	given   map[string]bool // what they were replaced by
	serials *regexp.Regexp  // serial numbers that are known, wherever they occur
	form    *regexp.Regexp  // what may be an identifier by its form
}

func newIdentifiers(serials []string) *identifiers {
	// Of what form finds, isIdentifier takes a UUID, digits in a row, and groups of digits
	// with the same separator. The rest is found so that nothing is found in its middle:
	// modaliases, versions that are hashes of git, and other hexadecimal digits.
	const form = `(?i)pci:v[^\x00-\x20"]*|-g[0-9a-f]+` +
		`|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
		`|[0-9a-f]{5,}` +
		`|[0-9a-f]{1,4}(?:(?::[0-9a-f]{1,4})+|(?:-[0-9a-f]{1,4})+|(?:\.[0-9a-f]{1,4})+|)`
	return &identifiers{
		numbers: map[string]int{}, given: map[string]bool{},
		serials: anyOf(serials), form: regexp.MustCompile(form),
	}
}

// anyOf finds serial numbers, but for those that may as well be a word, as drivers
// have names like mlx5_core, or an address. A number is found in many a longer one, and
// in the ids of PCI, without being there: it must stand alone.
func anyOf(serials []string) *regexp.Regexp {
	likely := regexp.MustCompile(`^[^:/]{6,}$`)
	digits := regexp.MustCompile(`[0-9][^0-9]*[0-9][^0-9]*[0-9][^0-9]*[0-9]`)
	isHex := regexp.MustCompile(`^[0-9A-Fa-f]+$`)
	slices.SortFunc(serials, func(a, b string) int { return len(b) - len(a) }) // one may begin like another
	words := []string{`$^`}                                                    // nothing
	for _, s := range serials {
		switch {
		case !likely.MatchString(s) || !digits.MatchString(s) || empty(bare([]byte(s))):
		case isHex.MatchString(s):
			words = append(words, `\b`+s+`\b`)
		default:
			words = append(words, regexp.QuoteMeta(s))
		}
	}
	return regexp.MustCompile(`(?i)` + strings.Join(words, "|"))
}

// clean overwrites every identifier in a text.
func (ids *identifiers) clean(text []byte) {
	for _, at := range ids.serials.FindAllIndex(text, -1) {
		ids.rename(text[at[0]:at[1]])
	}
	for _, at := range ids.form.FindAllIndex(text, -1) {
		if word := text[at[0]:at[1]]; isIdentifier(word) {
			ids.rename(word)
		}
	}
}

// isIdentifier judges what form has found.
func isIdentifier(word []byte) bool {
	const mac, hash = 12, 128 // digits of the shortest identifier and of the longest
	digits := len(bare(word))
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

// rename overwrites an identifier by its number. What is all zeros or ones is no
// identifier.
func (ids *identifiers) rename(text []byte) {
	key := bare(text)
	if empty(key) || ids.given[key] {
		return
	}
	number := ids.numbers[key]
	if number == 0 {
		number = len(ids.numbers) + 1
		ids.numbers[key] = number
	}
	digits := strconv.Itoa(number)
	for i, b := range slices.Backward(text) {
		switch {
		case strings.IndexByte(separators, b) >= 0:
		case digits == "":
			text[i] = '0'
		default:
			text[i], digits = digits[len(digits)-1], digits[:len(digits)-1]
		}
	}
	ids.given[bare(text)] = true
}

const separators = ":.- "

// bare gives an identifier in the spelling that all others are compared in.
func bare(text []byte) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(separators, r) {
			return -1
		}
		return r
	}, strings.ToLower(string(text)))
}

// empty tells a number that stands for none: all zeros or all ones.
func empty(key string) bool { return strings.Trim(key, "0") == "" || strings.Trim(key, "f") == "" }
