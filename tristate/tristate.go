// Package tristate is three-valued logic: a fact is true, false, or unknown if nothing
// that can be read proves it either way.
package tristate

// State is true, false or unknown. The zero value is Unknown: a fact that was not
// read proves nothing.
type State uint8

// The three states.
const (
	Unknown State = iota
	False
	True
)

// Of turns a proven boolean into a State.
func Of(b bool) State {
	if b {
		return True
	}
	return False
}

// And is True if all are, False if any is, and Unknown otherwise (Kleene's
// strong conjunction). And() is True.
func And(states ...State) State {
	out := True
	for _, s := range states {
		switch s {
		case False:
			return False
		case Unknown:
			out = Unknown
		case True:
		}
	}
	return out
}

// Or is True if any is, False if all are, and Unknown otherwise. Or() is
// False.
func Or(states ...State) State {
	out := False
	for _, s := range states {
		switch s {
		case True:
			return True
		case Unknown:
			out = Unknown
		case False:
		}
	}
	return out
}

// Not swaps True and False; Unknown stays.
func Not(s State) State {
	switch s {
	case True:
		return False
	case False:
		return True
	case Unknown:
	}
	return Unknown
}

// String returns "true", "false" or "unknown".
func (s State) String() string {
	switch s {
	case True:
		return "true"
	case False:
		return "false"
	case Unknown:
	}
	return "unknown"
}

// MarshalText implements encoding.TextMarshaler with the words of String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
