package family_test

import (
	"testing"

	"gdr-features/source/family"
)

func TestFirmwareHas(t *testing.T) {
	old := family.Firmware{Branches: []string{"231", "1.117.1"}}
	for version, want := range map[string]bool{
		"": false, "231": true, "231.2.63.0": true, "2310.1": false, "237.1.137.0": false,
		"1.117.1": true, "1.117.1-a-63": true, "1.117.1.2": true, "1.117.10": false, "1.117.5-a-45": false,
	} {
		if got := old.Has(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
