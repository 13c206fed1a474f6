package plainyaml

import "strings"

// value reads what stands in one line behind a key or a dash: a text, or a list
// in brackets. A comment may follow.
func value(number int, text string) (Node, error) {
	if text[0] == '[' {
		return flow(number, text[1:])
	}
	word, rest, err := scalar(number, text, false)
	if err != nil {
		return Node{}, err
	}
	return Node{Kind: Text, Line: number, Text: word}, ended(number, rest)
}

// flow reads "a, b]".
func flow(number int, text string) (Node, error) {
	out := Node{Kind: List, Line: number}
	for {
		text = strings.TrimLeft(text, " ")
		if strings.HasPrefix(text, "]") {
			return out, ended(number, text[1:])
		}
		word, rest, err := scalar(number, text, true)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, Node{Kind: Text, Line: number, Text: word})
		text = strings.TrimLeft(rest, " ")
		if after, more := strings.CutPrefix(text, ","); more {
			text = after
		} else if !strings.HasPrefix(text, "]") {
			return out, wrong(number, "a list in brackets must end in ] in its own line, and have a comma between two items")
		}
	}
}

// ended refuses what follows a value and is no comment.
func ended(number int, rest string) error {
	if after := strings.TrimLeft(rest, " "); after != "" && (after[0] != '#' || len(after) == len(rest)) {
		return wrong(number, "%q follows a value that has ended", shorten(after))
	}
	return nil
}

// scalar reads one text and gives what follows it.
func scalar(number int, text string, inList bool) (word, rest string, err error) {
	switch {
	case text == "":
		return "", "", wrong(number, "a list in brackets must end in its own line")
	case text[0] == '"':
		return doubleQuoted(number, text[1:])
	case text[0] == '\'':
		return singleQuoted(number, text[1:])
	}
	word = text
	if at := strings.Index(word, " #"); at >= 0 {
		word = word[:at]
	}
	if inList {
		if at := strings.IndexAny(word, ",]"); at >= 0 {
			word = word[:at]
		}
	}
	word = strings.TrimRight(word, " ")
	return word, text[len(word):], plain(number, word, inList)
}

// plain refuses texts without quotes that are no such texts to YAML.
func plain(number int, word string, inList bool) error {
	switch {
	case word == "":
		return wrong(number, "an item of the list is empty")
	case strings.ContainsRune(`[]{},#&*!|>%@?:`+"`", rune(word[0])), word == "-", strings.HasPrefix(word, "- "), strings.HasPrefix(word, "-,"),
		strings.Contains(word, ": "), strings.HasSuffix(word, ":"), inList && strings.ContainsAny(word, "[{}?:"),
		strings.HasPrefix(word, "---"), strings.HasPrefix(word, "..."):
		return wrong(number, "%s must be in quotes: \"%s\"", shorten(word), shorten(word))
	}
	return nil
}

// doubleQuoted reads up to the closing quote. Escapes other than of quote and
// backslash are refused: nobody needs them here.
func doubleQuoted(number int, text string) (word, rest string, err error) {
	var t strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return t.String(), text[i+1:], nil
		case '\\':
			i++
			if i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", "", wrong(number, `an escape other than \" and \\`)
			}
			t.WriteByte(text[i])
		default:
			t.WriteByte(c)
		}
	}
	return "", "", wrong(number, "the closing \" is missing")
}

// singleQuoted reads up to the closing quote; two of them stand for one.
func singleQuoted(number int, text string) (word, rest string, err error) {
	var t strings.Builder
	for {
		part, after, ok := strings.Cut(text, "'")
		t.WriteString(part)
		if !ok {
			return "", "", wrong(number, "the closing ' is missing")
		}
		if !strings.HasPrefix(after, "'") {
			return t.String(), after, nil
		}
		t.WriteByte('\'')
		text = after[1:]
	}
}
