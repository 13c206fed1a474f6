package snapshot

import (
	"bytes"
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
	// words are those to look for wherever they occur, in lower case, the longest
	// first: a serial number has no form of its own to know it by.
	words []string
}

// replace gives the other name of a text that is an identifier.
func (ids *identifiers) replace(text string) string {
	renamed := []byte(text)
	ids.rename(renamed)
	return string(renamed)
}

// look has a serial number looked for everywhere, unless it may as well be a word, as
// drivers have names like mlx5_core, or an address.
func (ids *identifiers) look(serial string) {
	const length, most = 6, 3
	word := string(lowered([]byte(serial)))
	digits := 0
	for _, b := range []byte(word) {
		if isDigit(b) {
			digits++
		}
	}
	if len(word) < length || digits <= most || empty(bare([]byte(word))) || strings.ContainsAny(word, ":/") || slices.Contains(ids.words, word) {
		return
	}
	i, _ := slices.BinarySearchFunc(ids.words, word, func(w, word string) int { return len(word) - len(w) })
	ids.words = slices.Insert(ids.words, i, word)
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
	for i := len(text) - 1; i >= 0; i-- {
		if strings.IndexByte(separators, text[i]) >= 0 {
			continue
		}
		text[i] = '0'
		if digits != "" {
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

// clean overwrites every identifier in a text: the words that are known, and what
// has the form of one.
func (ids *identifiers) clean(text []byte) {
	lower := lowered(text)
	for _, serial := range ids.words {
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
	for i := 0; i < len(lower); {
		if bytes.HasPrefix(lower[i:], []byte("pci:v")) { // a modalias
			i += word(lower[i:])
			continue
		}
		n := identifier(lower[i:])
		if n == 0 || n == run(lower[i:]) && bytes.HasSuffix(lower[:i], []byte("-g")) { // of git: the version of a kernel
			i += max(1, n, run(lower[i:]))
			continue
		}
		ids.rename(text[i : i+n])
		i += n
	}
}

// stands tells whether a word that was found is one: a short number is found in many
// a longer one, and in the ids of PCI, without being there.
func stands(text []byte, at, length int) bool {
	if run(text[at:at+length]) < length { // of other letters than hexadecimal digits
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
	lower := make([]byte, len(text))
	for i, b := range text {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return lower
}

// Digits of the shortest identifier that is known by its form, a MAC, and of the
// longest, a hash.
const shortest, longest = 12, 128

// identifier measures the identifier that a text in lower case begins with, 0 for
// none: a UUID; groups of up to four hexadecimal digits with the same separator
// that make a MAC, GUID or GID; or as many such digits in a row.
func identifier(text []byte) int {
	first := run(text)
	if first >= shortest && first <= longest {
		return first
	}
	if n := uuid(text); n > 0 {
		return n
	}
	if first == 0 || first > 4 || first == len(text) {
		return 0
	}
	groups, digits, end, separator := 1, first, first, text[first]
	if separator != ':' && separator != '-' && separator != '.' {
		return 0
	}
	for end < len(text) && text[end] == separator {
		n := run(text[end+1:])
		if n == 0 || n > 4 {
			break
		}
		groups, digits, end = groups+1, digits+n, end+1+n
	}
	if groups >= 6 && separator != '.' || groups >= 3 && digits >= shortest {
		return end
	}
	return 0
}

func uuid(text []byte) int {
	end := 0
	for i, size := range [...]int{8, 4, 4, 4, 12} {
		if i > 0 {
			if end >= len(text) || text[end] != '-' {
				return 0
			}
			end++
		}
		if run(text[end:]) != size {
			return 0
		}
		end += size
	}
	return end
}

// word measures what comes before the next space, quotation mark or control
// character.
func word(text []byte) int {
	for i, b := range text {
		if b <= ' ' || b == '"' {
			return i
		}
	}
	return len(text)
}

// run counts the hexadecimal digits that a text in lower case begins with.
func run(text []byte) int {
	for i, b := range text {
		if (b < '0' || b > '9') && (b < 'a' || b > 'f') {
			return i
		}
	}
	return len(text)
}

// isWord accepts printable ASCII without spaces.
func isWord(text []byte) bool {
	return isText(text) && !bytes.ContainsAny(text, " \t\n")
}

// hideUsers overwrites what stands in "(user@host)", and tells how often.
func hideUsers(text []byte) (found int) {
	const most = 512 // bytes before the @, and behind it
	for at := range text {
		if text[at] != '@' {
			continue
		}
		before := text[max(0, at-most):at]
		start := at - len(before) + bytes.LastIndexByte(before, '(') + 1
		length := bytes.IndexByte(text[at:min(len(text), at+most)], ')')
		if start == at-len(before) || length < 0 || !isWord(text[start:at+length]) {
			continue
		}
		for i := start; i < at+length; i++ {
			if i != at {
				text[i] = 'x'
			}
		}
		found++
	}
	return found
}
