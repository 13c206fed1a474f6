// Package frameworks writes which NIC each GPU should use in the variables and files that
// frameworks read, and finds mistakes in such variables. It does no I/O. Each function names
// the code of the framework that reads what it writes.
package frameworks

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/rooms/assign"
)

// Variable is an environment variable.
type Variable struct{ Name, Value string }

// Settings are what one framework is told.
type Settings struct {
	// Variables are in the order in which they are printed; none if they cannot express the map.
	// Notes, a sentence each, then say why.
	Variables []Variable
	// File is the content of the framework's file, to be written as JSON; nil for none.
	File  any
	Notes []string
}

// set adds a variable, if there is something to tell.
func (s *Settings) set(name, value string) {
	if value != "" {
		s.Variables = append(s.Variables, Variable{name, value})
	}
}

func (s *Settings) values() map[string]string {
	values := map[string]string{}
	for _, v := range s.Variables {
		values[v.Name] = v.Value
	}
	return values
}

func (s *Settings) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// perProcess notes that a variable is for all GPUs of a process.
func (s *Settings) perProcess(m *assign.Assignment, variable string) {
	if len(m.Choices) > 1 {
		s.note("%s applies to a whole process: if each process has one GPU, run this for each with --gpus.", variable)
	}
}

// Framework is a program that can be told which NIC each GPU should use.
type Framework struct {
	Name string
	// About is what it is told, and where, in a line.
	About string
	// Write returns what to tell it.
	Write func(m *assign.Assignment) Settings
	// HasFile: it reads a file, beside variables or without any. judgeFile judges it; the error is
	// why the framework cannot read it.
	HasFile   bool
	judgeFile func(j *judge, f *Finding, data []byte) error
}

// All are the frameworks. Sources are in the repositories of NVIDIA/nccl, openucx/ucx,
// NVIDIA/nvshmem, vllm-project/vllm, sgl-project/sglang, kvcache-ai/Mooncake,
// deepseek-ai/DeepEP, uccl-project/uccl, ai-dynamo/nixl and ai-dynamo/modelexpress.
var All = [...]Framework{
	{Name: "nccl", About: ncclHCA + ": all NICs near the GPUs", Write: writeNCCL},
	{Name: "ucx", About: ucxDevices + ": all NICs near the GPUs of one process", Write: writeUCX},
	{Name: "nvshmem", About: nvshmemList + ": all NICs near the GPUs", Write: writeNVSHMEM},
	{Name: "vllm", About: vllmMapping + ": one NIC for each GPU", Write: writeVLLM},
	{Name: "sglang", About: "a file for --disaggregation-ib-device (-o file)", Write: writeSGLang, HasFile: true, judgeFile: judgeSGLang},
	{Name: "mooncake", About: "a file for " + mooncakeVariable + " (-o file)", Write: writeMooncake, HasFile: true, judgeFile: judgeMooncake},
	{Name: "mooncake-store", About: storeDevice + ": all NICs near the GPUs of one process", Write: writeStore},
	{Name: "deepep", About: deepEPName + ", and the variables of nvshmem and nccl", Write: writeDeepEP},
	{Name: "uccl", About: ucclDevices + ": all NICs near the GPUs of one process", Write: writeUCCL},
	{Name: "nixl", About: ucxDevices + ", or the parameter device_list", Write: writeNIXL},
	{Name: "modelexpress", About: modelExpressPin + ": one NIC for each GPU", Write: writeModelExpress},
}

// judges are the variables that Check looks at, in the order in which it judges those of a
// framework. judge is nil for one that counts only beside others.
var judges = [...]struct {
	framework, variable string
	judge               func(j *judge, f *Finding)
}{
	{"nccl", ncclPolicy, judgePolicy},
	{"nccl", ncclHCA, judgeHCAs},
	{"nccl", MergeVFs, judgeMergeVFs},
	{"ucx", ucxDevices, judgeUCX},
	{"nvshmem", nvshmemList, judgeNVSHMEM},
	{"nvshmem", nvshmemMapping, judgeMapping},
	{"nvshmem", nvshmemSwitch, judgeSwitch},
	{"vllm", vllmMapping, judgeVLLM},
	{"vllm", vllmVariables, judgeSelection},
	{"mooncake", mooncakePort, judgePort},
	{"mooncake", mooncakeVariable, judgeFileName},
	{"mooncake-store", storeDevice, judgeStore},
	{"mooncake-store", storeSwitch, nil},
	{"deepep", deepEPName, judgeDeepEP},
	{"uccl", ucclHCA, judgeUCCLHCAs},
	{"uccl", ucclDevices, judgeUCCL},
	{"modelexpress", modelExpressPin, judgeModelExpress},
}

// Named returns a framework, nil where there is none of this name.
func Named(name string) *Framework {
	if i := slices.Index(Names(), name); i >= 0 {
		return &All[i]
	}
	return nil
}

// Names are the names of all frameworks.
func Names() []string {
	var names []string
	for _, f := range All {
		names = append(names, f.Name)
	}
	return names
}

// CUDA numbers GPUs by speed unless this variable makes it number them by address, as this
// program does (CUDA C++ Programming Guide, CUDA environment variables). It stands beside
// everything in which one of CUDA's GPUs is a number.
const (
	deviceOrder = "CUDA_DEVICE_ORDER"
	byAddress   = "PCI_BUS_ID"
)

// ordered is what makes programs number the GPUs as this one does.
func ordered(m *assign.Assignment) []Variable {
	if slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return c.GPU.GPU.CUDA }) {
		return []Variable{{deviceOrder, byAddress}}
	}
	return nil
}

// byVerbs reports whether a NIC's port has a link layer of libibverbs' own transports. NCCL's
// and NVSHMEM's InfiniBand transports skip all other ports (nccl
// src/transport/net_ib/init.cc, nvshmem src/modules/transport/common/transport_ib_common.cpp).
func byVerbs(n *assign.NIC) bool { return n.LinkLayer == "InfiniBand" || n.LinkLayer == "Ethernet" }

// verbsOnly returns the near NICs that pass byVerbs, with a note about the others.
func (s *Settings) verbsOnly(m *assign.Assignment, who string) []*assign.NIC {
	nics := m.Near()
	some := slices.DeleteFunc(slices.Clone(nics), func(n *assign.NIC) bool { return !byVerbs(n) })
	if len(some) < len(nics) {
		s.note("%s does not use NICs with the link layer Unspecified (EFA); a plugin does, and chooses them itself.", who)
	}
	return some
}

func withPorts(nics []*assign.NIC) string {
	var list []string
	for _, n := range nics {
		list = append(list, fmt.Sprintf("%s:%d", n.RDMA, n.Port))
	}
	return strings.Join(list, ",")
}

func namesOf(nics []*assign.NIC) []string {
	names := []string{}
	for _, n := range nics {
		names = append(names, n.RDMA)
	}
	return names
}

// commonPort is a port that is active on all NICs, the chosen one if it is; 0 for none.
func commonPort(nics []*assign.NIC) int {
	if len(nics) == 0 {
		return 0
	}
	for _, port := range slices.Concat([]int{nics[0].Port}, nics[0].Active) {
		if !slices.ContainsFunc(nics, func(n *assign.NIC) bool { return !slices.Contains(n.Active, port) }) {
			return port
		}
	}
	return 0
}
