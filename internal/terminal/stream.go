package terminal

import (
	"os"

	"golang.org/x/term"
)

// Width returns the width of the terminal that a stream is; 0 where it is none.
func Width(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd())) //nolint:gosec // a file handle
	if err != nil {
		return 0
	}
	return width
}

// Is says whether a stream is a terminal.
func Is(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file handle
}
