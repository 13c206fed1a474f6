// Package tristate is three-valued logic: a fact is true, false, or unknown if nothing
// that can be read proves it either way.
package tristate

import (
	"slices"
	"strconv"
)

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
	switch {
	case slices.Contains(states, False):
		return False
	case slices.Contains(states, Unknown):
		return Unknown
	}
	return True
}

// Or is True if any is, False if all are, and Unknown otherwise. Or() is
// False.
func Or(states ...State) State {
	switch {
	case slices.Contains(states, True):
		return True
	case slices.Contains(states, Unknown):
		return Unknown
	}
	return False
}

// Not swaps True and False; Unknown stays.
func Not(s State) State {
	if s == Unknown {
		return Unknown
	}
	return Of(s == False)
}

// String returns "true", "false" or "unknown".
func (s State) String() string {
	if s == True || s == False {
		return strconv.FormatBool(s == True)
	}
	return "unknown"
}

// MarshalText implements encoding.TextMarshaler with the words of String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
