package machine

import "slices"

// Rates as the kernel prints them (drivers/infiniband/core/sysfs.c, rate_show), by the number
// in Gbit/s.
var rates = map[string]string{
	"10":  "10 Gb/sec (1X QDR)",
	"25":  "25 Gb/sec (1X EDR)",
	"40":  "40 Gb/sec (4X QDR)",
	"50":  "50 Gb/sec (1X HDR)",
	"56":  "56 Gb/sec (4X FDR)",
	"100": "100 Gb/sec (4X EDR)",
	"200": "200 Gb/sec (4X HDR)",
	"400": "400 Gb/sec (4X NDR)",
	"800": "800 Gb/sec (4X XDR)",
}

// products are the rates of the fastest port of each product; 400 for others.
var products = map[string]string{
	"15b3:1003": "56",  // ConnectX-3
	"15b3:1013": "100", // ConnectX-4
	"15b3:1015": "25",  // ConnectX-4 Lx
	"15b3:1017": "100", // ConnectX-5
	"15b3:101b": "200", // ConnectX-6
	"15b3:101c": "200", // a virtual function of it
	"15b3:101d": "100", // ConnectX-6 Dx
	"15b3:101f": "25",  // ConnectX-6 Lx
	"15b3:1023": "800", // ConnectX-8
	"14e4:1750": "200", // BCM57508, Thor
	"14e4:1760": "400", // BCM57608, Thor 2
	"1d0f:efa0": "100", // EFA of P4d
	"1d0f:efa1": "100", // EFA of P4de, P5
	"1d0f:efa2": "200", // EFA of P5en
	"8086:1592": "100", // E810-C
	"8086:159b": "25",  // E810-XXV for SFP
	"1dd8:1002": "400", // Pollara 400
}

// rate is that of a function's ports: its own, or that of its product. A virtual function
// has that of its physical one.
func (m *Machine) rate(f *Function) string {
	pf := f.Attrs["physfn"]
	if i := slices.IndexFunc(m.Functions, func(of Function) bool { return of.Address == pf }); i >= 0 && f.Attrs["rate"] == "" {
		return m.rate(&m.Functions[i])
	}
	number := f.Attrs["rate"]
	if number == "" {
		number = products[f.Vendor+":"+f.Device]
	}
	if text, ok := rates[number]; ok {
		return text + "\n"
	}
	return rates["400"] + "\n"
}
