package frameworks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
)

// switched is one switch with GPUs at 13, 14, ... and RDMA devices at 20, 21, ..., given as
// attributes of a description.
func switched(t *testing.T, gpus int, nics ...string) *assign.Assignment {
	t.Helper()
	var b strings.Builder
	b.WriteString("nodes 1\npci0000:10 numa=0\n  0000:10:01.0 port 8086:352a\n    0000:11:00.0 switch 1000:c030\n")
	const digits = "0123456789"
	for i := range gpus {
		b.WriteString("      0000:12:0" + digits[i:i+1] + ".0 port 1000:c030\n        0000:1" + digits[3+i:4+i] + ":00.0 gpu 10de:2330 name=GPU" + digits[i:i+1] + "\n")
	}
	for i, nic := range nics {
		if strings.Contains(nic, "%d") {
			nic = fmt.Sprintf(nic, i)
		}
		b.WriteString("      0000:12:1" + digits[i:i+1] + ".0 port 1000:c030\n        0000:2" + digits[i:i+1] + ":00.0 " + nic + "\n")
	}
	described, err := machine.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	return mapOf(t, described.Tree(t, described.Ready()))
}

// TestCannotBeWritten: where a form cannot say what is needed, there is a note and no
// variable.
func TestCannotBeWritten(t *testing.T) {
	tests := []struct {
		name, framework string
		gpus            int
		nics            []string
		note            string // "" where it can be written
	}{
		{"EFA", "nvshmem", 1, []string{"eth 1d0f:efa1 rdma=efa_0 layer=Unspecified"}, "does not use NICs with the link layer Unspecified"},
		{"EFA", "nccl", 1, []string{"eth 1d0f:efa1 rdma=efa_0 layer=Unspecified"}, "does not use NICs with the link layer Unspecified"},
		{"EFA by UCX", "ucx", 1, []string{"eth 1d0f:efa1 rdma=efa_0 layer=Unspecified"}, ""},
		{"a subfunction", "vllm", 1, []string{"eth 15b3:101d rdma=mlx5_9 aux=mlx5_core.sf.2"}, "cannot be told to use mlx5_9"},
		{"a subfunction by name", "nccl", 1, []string{"eth 15b3:101d rdma=mlx5_9 aux=mlx5_core.sf.2"}, ""},
		{"EFA", "deepep", 1, []string{"eth 1d0f:efa1 rdma=efa_0 layer=Unspecified"}, "does not use NICs with the link layer Unspecified"},
		{"EFA by UCCL", "uccl", 1, []string{"eth 1d0f:efa1 rdma=efa_0 layer=Unspecified"}, ""},
		{"five NICs", "uccl", 1, slices.Repeat([]string{"ib 15b3:1021 rdma=mlx5_%d"}, 5), "takes at most 4 NICs, and 5 are near these GPUs"},
		{"no NIC", "modelexpress", 1, nil, "the GPU 0000:13:00.0 has no usable NIC"},
		{"no NIC", "vllm", 1, nil, "because it has no entry"},
	}
	for _, tt := range tests {
		t.Run(tt.framework+": "+tt.name, func(t *testing.T) {
			s := frameworks.Named(tt.framework).Write(switched(t, tt.gpus, tt.nics...))
			notes := strings.Join(s.Notes, "\n")
			if (len(s.Variables) == 0) != (tt.note != "") || !strings.Contains(notes, tt.note) {
				t.Errorf("%v, notes %q; want the note %q", s.Variables, notes, tt.note)
			}
		})
	}
}

// TestUneven: GPUs that share a NIC may have another that fewer share, if none is free.
func TestUneven(t *testing.T) {
	m := switched(t, 4, "ib 15b3:1021 rdma=mlx5_0", "ib 15b3:1021 rdma=mlx5_1")
	for given, want := range map[string]string{
		`{"0":"mlx5_0","1":"mlx5_0","2":"mlx5_0","3":"mlx5_1"}`: "3 GPUs share mlx5_0, while mlx5_1 is as near to the GPU 0000:13:00.0",
		`{"0":"mlx5_1","1":"mlx5_1","2":"mlx5_0","3":"mlx5_0"}`: "",
	} {
		var problems []string
		for _, f := range judged(t, m, []byte(given)) {
			problems = append(problems, f.Problems...)
		}
		if got := strings.Join(problems, "; "); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}

// TestCheckPort: the port that is given to Mooncake's engine must be active on every NIC in
// use, and where none is given port 1 must be.
func TestCheckPort(t *testing.T) {
	const file = `"files":{"sglang":{"0":"mlx5_0","1":"mlx5_1"}}`
	const given, none = `{"variables":{"sglang":{"MC_IB_PORT":"%s"}},` + file + "}", `{"variables":{"sglang":{"UCX_TLS":"rc"}},` + file + "}"
	for _, tt := range []struct {
		name, text string
		active     [2][]int // of two NICs
		want       string   // "" for nothing wrong
	}{
		{"right", fmt.Sprintf(given, "2"), [2][]int{{2}, {1, 2}}, ""},
		{"not active", fmt.Sprintf(given, "2"), [2][]int{{1}, {1, 2}}, "port 2 of mlx5_0 is not active"},
		{"no port is active on all", fmt.Sprintf(given, "1"), [2][]int{{1}, {2}}, "port 1 of mlx5_1 is not active"},
		{"of no NIC", fmt.Sprintf(given, "0"), [2][]int{{2}, {2}}, "Mooncake ignores it and uses port 1"},
		{"not a number", fmt.Sprintf(given, "x"), [2][]int{{1}, {1}}, "Mooncake ignores it and uses port 1"},
		{"too large", fmt.Sprintf(given, "257"), [2][]int{{1}, {1}}, "Mooncake ignores it and uses port 1"},
		{"not given, and port 1 is active", none, [2][]int{{1}, {1, 2}}, ""},
		{"not given, and port 1 is not active", none, [2][]int{{2}, {1, 2}}, "port 1 of mlx5_0 is not active"},
		{"not given, and no port is active on all", none, [2][]int{{1}, {2}}, ""},
		{"a file alone", `{"0":"mlx5_0","1":"mlx5_1"}`, [2][]int{{2}, {2}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := switched(t, 2, "ib 15b3:1021 rdma=mlx5_0", "ib 15b3:1021 rdma=mlx5_1")
			for i, nic := range m.NICs {
				nic.Port, nic.Active = tt.active[i][0], tt.active[i]
			}
			var problems []string
			for _, f := range judged(t, m, []byte(tt.text)) {
				problems = append(problems, f.Problems...)
				if f.Name == "MC_IB_PORT" && f.Want == "0" {
					t.Errorf("port %q would be right", f.Want)
				}
			}
			if got := strings.Join(problems, "; "); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestPortOfMooncake: Mooncake's engine uses the same port of every NIC.
func TestPortOfMooncake(t *testing.T) {
	for _, tt := range []struct {
		active     [2][]int // of two NICs
		port, note string
	}{
		{[2][]int{{1}, {1, 2}}, "", ""},
		{[2][]int{{2}, {1, 2}}, "2", ""},
		{[2][]int{{1}, {2}}, "", "no port is active on all of them"},
	} {
		m := switched(t, 2, "ib 15b3:1021 rdma=mlx5_0", "ib 15b3:1021 rdma=mlx5_1")
		for i, nic := range m.NICs {
			nic.Port, nic.Active = tt.active[i][0], tt.active[i]
		}
		for _, name := range []string{"sglang", "mooncake"} {
			s := frameworks.Named(name).Write(m)
			port := ""
			for _, v := range s.Variables {
				if v.Name == "MC_IB_PORT" {
					port = v.Value
				}
			}
			notes := strings.Join(s.Notes, "\n")
			if port != tt.port || !strings.Contains(notes, tt.note) || strings.Contains(notes, "MC_IB_PORT") != (tt.note != "") {
				t.Errorf("%s, %v: port %q, notes %q", name, tt.active, port, notes)
			}
		}
	}
}

// TestCheckExcluded: a NIC that the user leaves out is no NIC without an active port.
func TestCheckExcluded(t *testing.T) {
	m := switched(t, 2, "ib 15b3:1021 rdma=mlx5_0", "ib 15b3:1021 rdma=mlx5_1")
	m.Matrix.NICs[0].Function.Excluded = true
	m.NICs = m.NICs[1:]
	all := judged(t, m, []byte(`{"0":"mlx5_0","1":"mlx5_1"}`))
	if want := "mlx5_0 is excluded (--nic-exclude)"; len(all) != 1 || !strings.Contains(strings.Join(all[0].Problems, "; "), want) {
		t.Errorf("%+v, want %s", all, want)
	}
}
