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
	serials []string        // to look for wherever they occur, in lower case, the longest first
	form    *regexp.Regexp
}

// form finds, in lower case, a word that is none, a UUID, twelve or more hexadecimal
// digits in a row, or groups of up to four with the same separator. Groups are an
// identifier if they are long enough, see clean. A run of digits that is no such thing is
// found as well, so that nothing is found in the middle of it.
const form = `pci:v[^\x00-\x20"]*` + // a modalias
	`|-g[0-9a-f]+` + // of git: the version of a kernel
	`|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`|[0-9a-f]{5,}` +
	`|[0-9a-f]{1,4}(?::[0-9a-f]{1,4})+|[0-9a-f]{1,4}(?:-[0-9a-f]{1,4})+|[0-9a-f]{1,4}(?:\.[0-9a-f]{1,4})+` +
	`|[0-9a-f]+`

func newIdentifiers() *identifiers {
	return &identifiers{numbers: map[string]int{}, given: map[string]bool{}, form: regexp.MustCompile(form)}
}

// look has a serial number looked for everywhere, unless it may as well be a word, as
// drivers have names like mlx5_core, or an address.
func (ids *identifiers) look(serial string) {
	const shortest, digits = 6, 4
	serial = string(lowered([]byte(serial)))
	found := 0
	for i := range len(serial) {
		if isDigit(serial[i]) {
			found++
		}
	}
	if len(serial) < shortest || found < digits || empty(bare([]byte(serial))) ||
		strings.ContainsAny(serial, ":/") || slices.Contains(ids.serials, serial) {
		return
	}
	ids.serials = append(ids.serials, serial)
	slices.SortStableFunc(ids.serials, func(a, b string) int { return len(b) - len(a) })
}

// empty tells a number that stands for none: all zeros or all ones.
func empty(key string) bool { return strings.Trim(key, "0") == "" || strings.Trim(key, "f") == "" }

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
	}, string(lowered(text)))
}

// clean overwrites every identifier in a text: the serial numbers that are known, and
// what has the form of an identifier.
func (ids *identifiers) clean(text []byte) {
	lower := lowered(text)
	for _, serial := range ids.serials {
		for at := 0; ; at += len(serial) {
			i := bytes.Index(lower[at:], []byte(serial))
			if i < 0 {
				break
			}
			at += i
			if stands(lower, at, len(serial)) {
				ids.rename(text[at : at+len(serial)])
				copy(lower[at:], bytes.Repeat([]byte{'_'}, len(serial))) // done
			}
		}
	}
	for _, at := range ids.form.FindAllIndex(lower, -1) {
		if word := lower[at[0]:at[1]]; isIdentifier(word) {
			ids.rename(text[at[0]:at[1]])
		}
	}
}

// isIdentifier judges what form has found.
func isIdentifier(word []byte) bool {
	const mac, hash = 12, 128 // digits of the shortest identifier and of the longest
	digits := len(bare(word))
	switch i := bytes.IndexAny(word, ":.-"); {
	case i == 0 || word[0] == 'p': // a version, a modalias
		return false
	case i < 0:
		return digits >= mac && digits <= hash
	default:
		groups := bytes.Count(word, word[i:i+1]) + 1
		return groups >= 6 && word[i] != '.' || groups >= 3 && digits >= mac
	}
}

// stands tells whether a serial number that was found is one: a short number is found in many
// a longer one, and in the ids of PCI, without being there.
func stands(text []byte, at, length int) bool {
	if len(bytes.Trim(text[at:at+length], "0123456789abcdef")) > 0 {
		return true
	}
	isPart := func(i int) bool {
		return i >= 0 && i < len(text) && (isDigit(text[i]) || text[i] >= 'a' && text[i] <= 'z')
	}
	return !isPart(at-1) && !isPart(at+length)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// lowered gives a text of the same length in lower case, as far as it is ASCII.
func lowered(text []byte) []byte {
	lower := bytes.Clone(text)
	for i, b := range lower {
		if b >= 'A' && b <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	return lower
}
