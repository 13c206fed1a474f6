package pci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resource makes a large resource of a VPD.
func resource(tag byte, body string) string {
	return string([]byte{tag, byte(len(body)), byte(len(body) >> 8)}) + body
}

// keyword makes an entry of a read-only or read-write resource.
func keyword(key, value string) string {
	return key + string([]byte{byte(len(value))}) + value
}

func TestParseVPD(t *testing.T) {
	const end = "\x78"
	product := resource(vpdIdentifier, "NVIDIA ConnectX-7")
	part := keyword("PN", "MCX75310AAS")
	tests := []struct {
		name, in string
		want     *VPD // nil for an error
	}{
		{
			"everything",
			product + resource(vpdRead, part+keyword("VU", "0123-cx8")+keyword("RV", "\x11\x00")) +
				resource(vpdWrite, keyword("YA", "asset")+keyword("RW", "    ")) + end,
			&VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{"PN": "MCX75310AAS", "VU": "0123-cx8", "YA": "asset"}},
		},
		{"no identifier", resource(vpdRead, part) + end, &VPD{Fields: map[string]string{"PN": "MCX75310AAS"}}},
		{"nothing but an identifier", product + end, &VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{}}},
		{"what is behind the end does not count", product + end + resource(vpdRead, part), &VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{}}},
		{"no end", product + resource(vpdRead, part), &VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{"PN": "MCX75310AAS"}}},
		{"cut off in a tag", product + "\x90\x05", &VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{}}},
		{"cut off behind a tag", product + "\x90", &VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{}}},
		{"a small resource in between", product + "\x3aab" + resource(vpdRead, part), &VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{"PN": "MCX75310AAS"}}},
		{"an unknown large resource in between", product + resource(0x95, "junk") + resource(vpdRead, part), &VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{"PN": "MCX75310AAS"}}},
		{"a long resource", resource(vpdIdentifier, strings.Repeat("x", 300)) + end, &VPD{Product: strings.Repeat("x", 300), Fields: map[string]string{}}},
		{"spaces and what cannot be printed", resource(vpdIdentifier, "  Connect\x00X\n \xff7\x7f ") + end, &VPD{Product: "ConnectX 7", Fields: map[string]string{}}},
		{"an empty keyword", resource(vpdRead, keyword("SN", "")+part) + end, &VPD{Fields: map[string]string{"SN": "", "PN": "MCX75310AAS"}}},
		{"a keyword longer than its resource", resource(vpdRead, part+"SN\x20short") + end, &VPD{Fields: map[string]string{"PN": "MCX75310AAS"}}},
		{"half a keyword", resource(vpdRead, part+"SN") + end, &VPD{Fields: map[string]string{"PN": "MCX75310AAS"}}},
		{"zeros behind the keywords", resource(vpdRead, part) + "\x00\x00\x00", &VPD{Fields: map[string]string{"PN": "MCX75310AAS"}}},

		{"empty", "", nil},
		{"zeros", "\x00\x00\x00\x00", nil},
		{"ones", "\xff\xff\xff\xff", nil},
		{"text", "ConnectX", nil},
		{"the end alone", end, nil},
		{"a resource longer than the data", "\x82\x20\x00short", nil},
		{"a second resource longer than the data", product + "\x90\xff\x7fPN", nil},
		{"a small resource longer than the data", product + "\x3fab", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ParseVPD([]byte(tt.in))); diff != "" {
				t.Errorf("VPD (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUUID(t *testing.T) {
	tests := []struct {
		name string
		vpd  *VPD
		want string
	}{
		{"no VPD", nil, ""},
		{"no keywords", &VPD{}, ""},
		{"VU", &VPD{Fields: map[string]string{"VU": "a"}}, "a"},
		{"V3", &VPD{Fields: map[string]string{"V3": "b"}}, "b"},
		{"both", &VPD{Fields: map[string]string{"VU": "a", "V3": "b"}}, "a"},
		{"empty VU", &VPD{Fields: map[string]string{"VU": "", "V3": "b"}}, "b"},
		{"others", &VPD{Fields: map[string]string{"SN": "a", "V1": "b"}}, ""},
	}
	for _, tt := range tests {
		if got := tt.vpd.UUID(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestVPDManagementMark(t *testing.T) {
	tests := []struct {
		name string
		vpd  VPD
		want bool
	}{
		{"a NIC", VPD{Product: "NVIDIA ConnectX-7", Fields: map[string]string{"VA": "MLX:MN=MLNX:CSKU=V2"}}, false},
		{"the product name", VPD{Product: "Nvidia ConnectX-7 mezz internal"}, true},
		{"SMDL", VPD{Fields: map[string]string{"PN": "x", "VA": "MLX:MN=MLNX:CSKU=V2:SMDL=SW_MNG:"}}, true},
		{"another SMDL", VPD{Fields: map[string]string{"VA": "MLX:MN=MLNX:SMDL=NIC:"}}, false},
	}
	for _, tt := range tests {
		if got := tt.vpd.nvlinkManagement(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
