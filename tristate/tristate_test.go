package tristate

import "testing"

func TestTruthTables(t *testing.T) {
	all := []State{Unknown, False, True}
	// Rows a, columns b, in the order of all.
	and := [3][3]State{{Unknown, False, Unknown}, {False, False, False}, {Unknown, False, True}}
	or := [3][3]State{{Unknown, Unknown, True}, {Unknown, False, True}, {True, True, True}}
	for i, a := range all {
		for j, b := range all {
			if got := And(a, b); got != and[i][j] {
				t.Errorf("And(%v, %v) = %v, want %v", a, b, got, and[i][j])
			}
			if got := Or(a, b); got != or[i][j] {
				t.Errorf("Or(%v, %v) = %v, want %v", a, b, got, or[i][j])
			}
			if Not(And(a, b)) != Or(Not(a), Not(b)) {
				t.Errorf("De Morgan fails for %v, %v", a, b)
			}
		}
	}
	if And() != True || Or() != False {
		t.Errorf("empty: And() = %v, Or() = %v", And(), Or())
	}
}

func TestWords(t *testing.T) {
	for s, want := range map[State]string{Unknown: "unknown", False: "false", True: "true", State(9): "unknown"} {
		text, err := s.MarshalText()
		if s.String() != want || string(text) != want || err != nil {
			t.Errorf("State(%d): %q, %q, %v; want %q", s, s.String(), text, err, want)
		}
	}
	if Of(true) != True || Of(false) != False {
		t.Error("Of does not keep its argument")
	}
}
