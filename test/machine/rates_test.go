package machine

import "testing"

// A port has the rate of its function, of its physical function, or of its product.
func TestRate(t *testing.T) {
	m := &Machine{Functions: []Function{
		{Address: "0000:01:00.0", Vendor: "15b3", Device: "101d"},
		{Address: "0000:01:00.1", Vendor: "15b3", Device: "101d", Attrs: map[string]string{"rate": "50"}},
		{Address: "0000:01:00.2", Vendor: "15b3", Device: "101e", Attrs: map[string]string{"physfn": "0000:01:00.0"}},
		{Address: "0000:01:00.3", Vendor: "15b3", Device: "101e", Attrs: map[string]string{"physfn": "0000:01:00.0", "rate": "25"}},
		{Address: "0000:02:00.0", Vendor: "15b3", Device: "ffff"},
	}}
	for i, want := range []string{"100 Gb/sec (4X EDR)\n", "50 Gb/sec (1X HDR)\n", "100 Gb/sec (4X EDR)\n", "25 Gb/sec (1X EDR)\n", "400 Gb/sec (4X NDR)\n"} {
		if got := m.rate(&m.Functions[i]); got != want {
			t.Errorf("%s: %q, want %q", m.Functions[i].Address, got, want)
		}
	}
}
