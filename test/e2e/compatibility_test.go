//go:build compatibility

package e2e

import "testing"

// TestCompatibility is TestUpgrade with older versions of NFD: see docs/compatibility.md.
func TestCompatibility(t *testing.T) {
	for _, nfd := range []string{"nfd-0.16"} {
		t.Run(nfd, func(t *testing.T) { testUpgrade(t, nfd) })
	}
}
