package frameworks_test

import (
	"slices"
	"testing"

	"gdr-features/internal/rooms/frameworks"
	"gdr-features/tristate"
)

// TestMooncakeWay: Mooncake registers by peermem unless it is told otherwise, and is told so
// where DMA-BUF is the only way. SGLang and Mooncake's store use the same engine.
func TestMooncakeWay(t *testing.T) {
	m := mapOn(t, "dell-xe9680-h100")
	want := frameworks.Variable{Name: "WITH_NVIDIA_PEERMEM", Value: "0"}
	for _, name := range []string{"mooncake", "mooncake-store", "sglang"} {
		for _, peermem := range []tristate.State{tristate.True, tristate.Unknown, tristate.False} {
			m.Node.Verdict.Peermem, m.Node.Verdict.DMABuf = peermem, tristate.True
			if got := slices.Contains(frameworks.Named(name).Write(m).Variables, want); got != (peermem == tristate.False) {
				t.Errorf("%s, peermem %v: %v", name, peermem, got)
			}
		}
	}
}
