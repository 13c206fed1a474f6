package kmod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/tristate"
)

// TestParams reads the file as the driver writes it, and what is not of its form.
func TestParams(t *testing.T) {
	text := "ResmanDebugLevel: 4294967295\nEnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;A=0x10\"\n" +
		"RegistryDwordsPerDevice: \"\"\nRmMsg: \"a: b\"\nno colon\n: no name\nExcludedGpus: \"cut off"
	want := Params{
		"ResmanDebugLevel": "4294967295", "EnableStreamMemOPs": "1", "RegistryDwords": "PeerMappingOverride=1;A=0x10",
		"RegistryDwordsPerDevice": "", "RmMsg": "a: b", "ExcludedGpus": "cut off",
	}
	if diff := cmp.Diff(want, ParseParams(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		content string
		want    Params
		unread  bool
	}{
		"the file":                   {text, want, false},
		"no file":                    {absent, nil, false},
		"a directory":                {isDir, nil, true},
		"an empty file":              {"", nil, true},
		"garbage":                    {"garbage\na: b\n", nil, true},
		"cut off within its numbers": {"EnableStreamMemOPs: 1\nGrdmaPciTopo", nil, true},
		"the number that decides":    {"GrdmaPciTopoCheckOverride: 2\n", Params{TopoOverride: "2"}, false},
		"too large":                  {text + strings.Repeat("x", maxParams), nil, true},
	} {
		st := scan(t, map[string]string{"proc/driver/nvidia/version": openLine, paramsFile: tc.content})
		if diff := cmp.Diff(tc.want, st.Params); diff != "" || st.ParamsUnread != tc.unread {
			t.Errorf("%s: unread %v (-want +got):\n%s", name, st.ParamsUnread, diff)
		}
		if (len(st.Problems) > 0) != tc.unread {
			t.Errorf("%s: %v", name, st.Problems)
		}
	}
}

// unrecorded is a snapshot that does not hold the parameters.
type unrecorded struct{ host.Source }

func (u unrecorded) Open(name string) (host.File, error) {
	if name == paramsFile {
		return nil, host.PathError("open", name, host.ErrNotRecorded)
	}
	return u.Source.Open(name)
}

// TestParamsNotRecorded: parameters that nobody asked for are missing, not unreadable.
func TestParamsNotRecorded(t *testing.T) {
	fs := host.New(unrecorded{tree(t, withKernel(map[string]string{"proc/driver/nvidia/version": openLine}))}, "")
	functions, table := machine("nvidia")
	if st := Scan(fs, functions, table, source.What{}); st.Params != nil || st.ParamsUnread || len(st.Problems) != 1 {
		t.Errorf("%v, unread %v, problems %q", st.Params, st.ParamsUnread, st.Problems)
	}
}

// TestPeerMapping reads RegistryDwords as the driver does.
func TestPeerMapping(t *testing.T) {
	const yes, no, unknown = tristate.True, tristate.False, tristate.Unknown
	for dwords, want := range map[string]tristate.State{
		"":                      no,
		"PeerMappingOverride=1": yes,
		"PeerMappingOverride=0x1;RMForceStaticBar1=1":     yes,
		"A=1 ; PeerMapping Override = 1 ;":                yes,
		"PeerMappingOverride=0":                           no,
		"PeerMappingOverride=1;PeerMappingOverride=0;":    no,
		"NoPeerMappingOverride=1;peermappingoverride=1":   unknown,
		"PeerMappingOverride":                             unknown,
		"PeerMappingOverride=":                            unknown,
		"PeerMappingOverride=1=1":                         unknown,
		"PeerMappingOverride=yes":                         unknown,
		"PeerMappingOverride=99999999999":                 unknown,
		"RMForceStaticBar1=1;ForceP2P=17;;=;=1;A=":        no,
		"RMForceStaticBar1=1;PeerMappingOverride=1;A=b=c": yes,
	} {
		if got := (Params{"RegistryDwords": dwords}).PeerMapping(); got != want {
			t.Errorf("%q: %v, want %v", dwords, got, want)
		}
	}
	perDevice := Params{"RegistryDwordsPerDevice": "pci=0000:01:00.0;PeerMappingOverride=1"}
	if got := perDevice.PeerMapping(); got != unknown {
		t.Errorf("set for one GPU: %v", got)
	}
	if got := Params(nil).PeerMapping(); got != unknown {
		t.Errorf("unreadable: %v", got)
	}
}

func FuzzParams(f *testing.F) {
	f.Add("EnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;\"\n")
	f.Add("RegistryDwords: \"\"\nRegistryDwordsPerDevice: \"pci=0000:01:00.0;PeerMappingOverride=1\"")
	f.Add(":\n::\n\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := ParseParams(text)
		if _, named := p[""]; named {
			t.Error("a parameter without a name")
		}
		n, ok := p.registry("PeerMappingOverride")
		if !ok && n != 0 && p.PeerMapping() != tristate.Unknown || ok && p.PeerMapping() != tristate.Of(n != 0) {
			t.Errorf("%d, %v: %v", n, ok, p.PeerMapping())
		}
	})
}
