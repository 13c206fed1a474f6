package frameworks_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// TestPrintedIsTheMap reads each form again, as the framework's own code does, and compares
// the NIC of each GPU with the one chosen.
func TestPrintedIsTheMap(t *testing.T) {
	for _, described := range testsize.Share(machine.All(t, "../../../testdata/machines")) {
		t.Run(described.Name, func(t *testing.T) {
			m := mapOf(t, described.Tree(t, described.Ready()))
			want := make([]string, len(m.Choices))
			sets := make([][]string, len(m.Choices))
			var used []string
			amd := slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return c.GPU.Vendor == 0x1002 })
			prefix := map[bool]string{false: "cuda:", true: "hip:"}[amd]
			plugin := false // NCCL and NVSHMEM use these NICs by plug-ins alone
			for i, c := range m.Choices {
				if c.NIC != nil {
					want[i] = c.NIC.RDMA
					for _, nic := range c.Near {
						used = append(used, fmt.Sprintf("%s:%d", nic.RDMA, nic.Port))
						sets[i] = append(sets[i], nic.RDMA)
					}
					plugin = plugin || c.NIC.LinkLayer == "Unspecified"
				}
			}
			slices.Sort(used)
			used = slices.Compact(used)
			read := map[string]func(map[string]string, any) []string{
				"vllm": func(v map[string]string, _ any) []string { return readVLLM(m, v["VLLM_GPU_NIC_PCIE_MAPPING"]) },
				"modelexpress": func(v map[string]string, _ any) []string {
					var got []string
					for i, entry := range strings.Split(v["MX_RDMA_NIC_PIN"], ",") {
						if i < len(want) || entry != "" { // a list of one ends in a comma
							name, _, _ := strings.Cut(entry, ":")
							got = append(got, name)
						}
					}
					return got
				},
			}
			lists := map[string][]string{
				"nccl": {"NCCL_IB_HCA"}, "ucx": {"UCX_NET_DEVICES"}, "nvshmem": {"NVSHMEM_HCA_LIST"},
				"deepep": {"NCCL_IB_HCA", "NVSHMEM_HCA_LIST"}, "nixl": {"UCX_NET_DEVICES"},
				"uccl": {"UCCL_P2P_RDMA_DEV"}, "mooncake-store": {"MOONCAKE_DEVICE"},
			}
			readSets := map[string]func(any) [][]string{
				"sglang": func(file any) [][]string {
					got := make([][]string, len(want))
					for key, names := range file.(map[string]any) {
						i, _ := strconv.Atoi(key)
						got[i] = strings.Split(names.(string), ",")
					}
					return got
				},
				"mooncake": func(file any) [][]string {
					got := make([][]string, len(want))
					for key, value := range file.(map[string]any) {
						lists := value.([]any)
						if len(lists) != 2 || len(lists[0].([]any))+len(lists[1].([]any)) != len(m.NICs) {
							t.Errorf("%s: %v", key, value)
						}
						if number, ok := strings.CutPrefix(key, prefix); ok {
							i, _ := strconv.Atoi(number)
							for _, name := range lists[0].([]any) {
								got[i] = append(got[i], name.(string))
							}
						}
					}
					return got
				},
			}
			none := slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return c.NIC == nil })
			for _, f := range frameworks.All {
				var d struct {
					Variables map[string]map[string]string
					Files     map[string]any
				}
				if err := json.Unmarshal(forms(t, m, f)["json"], &d); err != nil {
					t.Fatal(err)
				}
				variables := d.Variables[f.Name]
				if _, ok := variables["CUDA_DEVICE_ORDER"]; ok && amd {
					t.Errorf("%s: CUDA_DEVICE_ORDER for AMD's GPUs", f.Name)
				}
				switch {
				case len(used) == 0 && f.Name != "sglang" && f.Name != "mooncake":
					if len(variables) > 0 {
						t.Errorf("%s without any NIC: %v", f.Name, variables)
					}
				case f.Name == "nccl" && plugin, (f.Name == "nvshmem" || f.Name == "deepep") && (plugin || amd),
					f.Name == "uccl" && len(used) > 4, f.Name == "modelexpress" && none:
					if len(variables) > 0 {
						t.Errorf("%s is told %v", f.Name, variables)
					}
				case lists[f.Name] != nil:
					for _, variable := range lists[f.Name] {
						list := strings.Split(strings.TrimPrefix(variables[variable], "="), ",")
						if f.Name == "uccl" || f.Name == "mooncake-store" { // names alone
							for i := range list {
								list[i] += ":1"
							}
						}
						slices.Sort(list)
						if diff := cmp.Diff(used, list); diff != "" {
							t.Errorf("%s %s (-want +got):\n%s", f.Name, variable, diff)
						}
					}
				case readSets[f.Name] != nil:
					if diff := cmp.Diff(sets, readSets[f.Name](d.Files[f.Name])); diff != "" {
						t.Errorf("%s (-want +got):\n%s", f.Name, diff)
					}
				case read[f.Name] == nil:
					t.Errorf("%s: nothing here reads what is written for it: add it to lists, readSets or read", f.Name)
				default:
					if diff := cmp.Diff(want, read[f.Name](variables, d.Files[f.Name])); diff != "" {
						t.Errorf("%s (-want +got):\n%s", f.Name, diff)
					}
				}
			}
		})
	}
}

func readVLLM(m *assign.Assignment, mapping string) []string {
	devices := map[string]string{}
	for _, n := range m.NICs {
		if !n.Auxiliary {
			devices[n.Address.String()] = n.RDMA
		}
	}
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(mapping, ",") {
		gpu, nic, _ := strings.Cut(pair, "=")
		pairs[gpu] = devices[nic]
	}
	got := make([]string, len(m.Choices))
	for i, c := range m.Choices {
		got[i] = pairs[c.GPU.Address.String()]
	}
	return got
}
