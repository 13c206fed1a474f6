package dra_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/dra"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
	"gdr-features/topology"
	"gdr-features/verdict"
)

// Functions of GPUs and NICs at some place.
var at, gpu, nic = sample.Placed, sample.PlacedGPU, sample.PlacedNIC

// claimOf makes a claim on a machine of these functions. Every NIC has an RDMA device with
// an active port, unless it is bound to vfio-pci.
func claimOf(t *testing.T, o dra.Options, functions ...pci.Function) (*dra.Claim, error) {
	t.Helper()
	inv := pci.Inventory{Functions: functions, NUMANodes: 2}
	devices := rdma.Inventory{Complete: true}
	for i := range functions {
		if f := &functions[i]; f.KnownNIC() != nil && f.Driver != "vfio-pci" {
			devices.Devices = append(devices.Devices, rdma.Device{
				Name: "rdma" + f.Address.String()[5:7], PCI: &f.Address, PortsRead: true,
				Ports: []rdma.Port{{Number: 1, State: "ACTIVE", LinkLayer: "InfiniBand", RateGbps: 400}},
			})
		}
	}
	node := verdict.Node{PCI: inv, RDMA: devices, Matrix: topology.Build(topology.Inputs{PCI: &inv, RDMA: &devices})}
	return dra.NewClaim(assign.NewMachine(&node, func(string) bool { return true }), o)
}

// request is a request as Kubernetes' own type has it.
func request(name, class string, conditions ...string) resourceapi.DeviceRequest {
	r := resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}}
	for _, condition := range conditions {
		r.Exactly.Selectors = append(r.Exactly.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: condition}})
	}
	return r
}

const (
	isRDMA = `device.driver == "dra.net" && device.attributes["dra.net"].?rdma.orValue(false)`
	isVF   = `device.driver == "sriovnetwork.k8snetworkplumbingwg.io" && device.attributes["sriovnetwork.k8snetworkplumbingwg.io"].?rdmaCapable.orValue(false)`
)

func gpuAt(address string) string {
	return `device.attributes["resource.kubernetes.io"].?pciBusID.orValue("") == "` + address + `"`
}

func nicAt(address string) string {
	return `device.attributes["dra.net"].?pciAddress.orValue("") == "` + address + `"`
}

// but is the condition that keeps NICs out by address.
func but(addresses ...string) string {
	return `!(device.attributes["dra.net"].?pciAddress.orValue("") in ["` + strings.Join(addresses, `", "`) + `"])`
}

// TestClaim: requests, constraints and notes, as Kubernetes' types read them.
func TestClaim(t *testing.T) {
	const a, b = "pci0000:00", "pci0000:80"
	instinct := at(1, a, 0, family.IDs{Vendor: 0x1002, Device: 0x74a1, Class: 0x120000})
	listed := at(3, a, 0, family.IDs{Vendor: 0x1fff, Device: 0x0001, Class: 0x020000})
	geforce := at(4, a, 0, family.IDs{Vendor: 0x10de, Device: 0x2684, Class: 0x030000})
	second := func(f pci.Function) pci.Function {
		f.Address.Function = 1
		return f
	}
	virtual := func(f pci.Function) pci.Function {
		f.PhysFn = &pci.Address{Bus: f.Address.Bus}
		return f
	}
	behind := func(bridge uint8, f pci.Function) pci.Function {
		f.Bridges = []pci.Address{{Bus: bridge}}
		return f
	}
	vf := second(virtual(nic(2, a, 0)))
	excluded := nic(3, a, 0)
	excluded.Excluded = true
	dpu := family.IDs{Vendor: 0x15b3, Device: 0xa2dc, Class: 0x020700}
	given := nic(3, a, 0) // to a virtual machine
	given.Driver = "vfio-pci"
	passed := gpu(1, a, 0)
	passed.Driver = "vfio-pci"
	match := func(attribute string, requests ...string) resourceapi.DeviceConstraint {
		return resourceapi.DeviceConstraint{Requests: requests, MatchAttribute: new(resourceapi.FullyQualifiedName("resource.kubernetes.io/" + attribute))}
	}
	for _, tt := range []struct {
		name        string
		functions   []pci.Function
		options     dra.Options
		level       string
		requests    []resourceapi.DeviceRequest
		constraints []resourceapi.DeviceConstraint
		notes       []string // parts
	}{
		{
			"by root",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0)},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			nil,
		},
		{
			"by node, with classes and a driver",
			[]pci.Function{gpu(1, a, 0), nic(0x81, b, 0)},
			dra.Options{Pairs: 1, GPUClass: "big", GPUDriver: "gpu.nvidia.com", NICClass: "fast"},
			"NODE",
			[]resourceapi.DeviceRequest{request("gpu-0", "big", `device.driver == "gpu.nvidia.com"`), request("nic-0", "fast", isRDMA)},
			[]resourceapi.DeviceConstraint{match("numaNode", "gpu-0", "nic-0")},
			nil,
		},
		{
			"virtual functions",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), vf},
			dra.Options{Pairs: 1, NICDriver: "sriovnetwork.k8snetworkplumbingwg.io"},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "sriovnetwork.k8snetworkplumbingwg.io", isVF)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			nil,
		},
		{
			"drivers without numaNode",
			[]pci.Function{instinct, nic(0x81, b, 0)},
			dra.Options{Pairs: 1},
			"NODE",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.amd.com"), request("nic-0", "dra.net", isRDMA)},
			[]resourceapi.DeviceConstraint{match("numaNode", "gpu-0", "nic-0")},
			[]string{"The driver gpu.amd.com is not known to publish resource.kubernetes.io/numaNode"},
		},
		{
			"devices that do not count",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), listed, geforce},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA, but("0000:03:00.0"))},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			[]string{"selected out by address: 0000:03:00.0.", "GPU 0000:04:00.0 is not known to do GPUDirect RDMA"},
		},
		{
			"a NIC that is excluded, and a DPU",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), excluded, at(4, a, 0, dpu), nic(5, a, 0)},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA, but("0000:03:00.0", "0000:04:00.0"))},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			[]string{"selected out by address: 0000:03:00.0, 0000:04:00.0."},
		},
		{
			"a DPU on the root of the GPU, others elsewhere",
			[]pci.Function{gpu(1, a, 0), at(4, a, 0, dpu), nic(0x81, b, 0), nic(0x82, b, 0)},
			dra.Options{Pairs: 1},
			"NODE",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA, but("0000:04:00.0"))},
			[]resourceapi.DeviceConstraint{match("numaNode", "gpu-0", "nic-0")},
			[]string{"selected out by address: 0000:04:00.0.", "The label gdr.align is pcieRoot"},
		},
		{
			"nothing but DPUs",
			[]pci.Function{gpu(1, a, 0), at(4, a, 0, dpu)},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			nil,
		},
		{
			"two cards with two ports, for two GPUs on one root",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), second(nic(2, a, 0)), gpu(3, a, 0), nic(4, a, 0), second(nic(4, a, 0))},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA, but("0000:02:00.1", "0000:04:00.1"))},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			[]string{"selected out by address: 0000:02:00.1, 0000:04:00.1."},
		},
		{
			"one card with two ports, for one GPU or two",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), second(nic(2, a, 0)), gpu(0x81, b, 1), gpu(0x82, b, 1), nic(0x83, b, 1), second(nic(0x83, b, 1))},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			nil,
		},
		{
			"a far NIC, which two GPUs need and one does not",
			[]pci.Function{
				behind(5, gpu(1, a, 0)), behind(5, gpu(2, a, 0)), behind(5, nic(3, a, 0)), nic(4, a, 0),
				behind(0x85, gpu(0x81, b, 1)), behind(0x85, nic(0x83, b, 1)), nic(0x84, b, 1),
			},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA, but("0000:84:00.0"))},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			[]string{"selected out by address: 0000:84:00.0."},
		},
		{
			"virtual functions beside their physical one",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), vf},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA, `!device.attributes["dra.net"].?isSriovVf.orValue(false)`)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			[]string{"Virtual functions are selected out"},
		},
		{
			"virtual functions of a NIC that is given away, and of one that is here",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), vf, given, second(virtual(nic(3, a, 0))), gpu(5, a, 0)},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA, but("0000:02:00.1", "0000:03:00.0"))},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			[]string{"selected out by address: 0000:02:00.1, 0000:03:00.0."},
		},
		{
			"a GPU of another class",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), at(0x41, b, 0, family.IDs{Vendor: 0x1002, Device: 0x744c, Class: 0x030000}), nic(0x81, b, 0)},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			nil,
		},
		{
			"by address",
			[]pci.Function{gpu(1, a, 0), gpu(2, a, 0), nic(0x81, b, 1), nic(0x82, b, 1)},
			dra.Options{Pairs: 2},
			"SYS",
			[]resourceapi.DeviceRequest{
				request("gpu-0", "gpu.nvidia.com", gpuAt("0000:01:00.0")), request("nic-0", "dra.net", isRDMA, nicAt("0000:81:00.0")),
				request("gpu-1", "gpu.nvidia.com", gpuAt("0000:02:00.0")), request("nic-1", "dra.net", isRDMA, nicAt("0000:82:00.0")),
			},
			nil,
			[]string{"Neither pcieRoot nor numaNode", "by address"},
		},
		{
			"by address, since the place is not known",
			[]pci.Function{gpu(1, a, 0), nic(2, "?", 0)},
			dra.Options{Pairs: 1},
			"",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com", gpuAt("0000:01:00.0")), request("nic-0", "dra.net", isRDMA, nicAt("0000:02:00.0"))},
			nil,
			[]string{"could not be read", "by address"},
		},
		{
			"a NIC without an RDMA device",
			[]pci.Function{gpu(1, a, 0), nic(2, a, 0), given, gpu(4, a, 0)},
			dra.Options{Pairs: 2},
			"PHB",
			[]resourceapi.DeviceRequest{
				request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA),
				request("gpu-1", "gpu.nvidia.com"), request("nic-1", "dra.net", isRDMA),
			},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0"), match("pcieRoot", "gpu-1", "nic-1")},
			[]string{"Of 2 pairs 1 can be allocated here"},
		},
		{
			"a GPU that is passed through",
			[]pci.Function{passed, nic(2, a, 0)},
			dra.Options{Pairs: 1},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dra.net", isRDMA)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			[]string{"Of 1 pairs 0 can be allocated here"},
		},
		{
			"an AMD GPU by its class, beside one of NVIDIA",
			[]pci.Function{instinct, nic(2, a, 0), gpu(0x81, b, 0), nic(0x82, b, 0)},
			dra.Options{Pairs: 1, GPUClass: "gpu.amd.com"},
			"PHB",
			[]resourceapi.DeviceRequest{request("gpu-0", "gpu.amd.com"), request("nic-0", "dra.net", isRDMA)},
			[]resourceapi.DeviceConstraint{match("pcieRoot", "gpu-0", "nic-0")},
			nil,
		},
		{
			"an AMD GPU by address, beside one of NVIDIA",
			[]pci.Function{gpu(0, a, 0), instinct, nic(0x81, b, 1)},
			dra.Options{Pairs: 1, GPUDriver: "gpu.amd.com"},
			"SYS",
			[]resourceapi.DeviceRequest{
				request("gpu-0", "gpu.amd.com", `device.driver == "gpu.amd.com"`, gpuAt("0000:01:00.0")), request("nic-0", "dra.net", isRDMA, nicAt("0000:81:00.0")),
			},
			nil,
			[]string{"Neither pcieRoot nor numaNode", "by address"},
		},
		{"no GPU", []pci.Function{nic(2, a, 0)}, dra.Options{Pairs: 1}, "", nil, nil, []string{"No claim can ask for a pair"}},
		{"no eligible GPU", []pci.Function{nic(2, a, 0), geforce}, dra.Options{Pairs: 1}, "", nil, nil, []string{"No claim can ask for a pair"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claim, err := claimOf(t, tt.options, tt.functions...)
			if err != nil {
				t.Fatal(err)
			}
			for i, note := range claim.Notes {
				if i >= len(tt.notes) || !strings.Contains(note, tt.notes[i]) {
					t.Errorf("note %d: %s", i, note)
				}
			}
			if len(claim.Notes) < len(tt.notes) {
				t.Errorf("notes %q, want %q", claim.Notes, tt.notes)
			}
			if tt.requests == nil {
				if claim.Template != nil {
					t.Errorf("template %+v", claim.Template)
				}
				return
			}
			text, err := json.Marshal(claim.Template)
			if err != nil {
				t.Fatal(err)
			}
			var got resourceapi.ResourceClaimTemplate
			if err := yaml.UnmarshalStrict(text, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(resourceapi.DeviceClaim{Requests: tt.requests, Constraints: tt.constraints}, got.Spec.Spec.Devices); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			if got.Annotations["gdr.level"] != tt.level {
				t.Errorf("level %q, want %q", got.Annotations["gdr.level"], tt.level)
			}
		})
	}
}

// TestClaimRefused: what a claim cannot ask for is an error.
func TestClaimRefused(t *testing.T) {
	const a = "pci0000:00"
	instinct := at(3, a, 0, family.IDs{Vendor: 0x1002, Device: 0x74a1, Class: 0x120000})
	for _, tt := range []struct {
		name      string
		functions []pci.Function
		options   dra.Options
		want      string
	}{
		{"more pairs than NICs", []pci.Function{gpu(1, a, 0), gpu(2, a, 0), nic(3, a, 0)}, dra.Options{Pairs: 2}, "--pairs 2: a node like this one can give at most 1"},
		{"more pairs by address than NICs", []pci.Function{gpu(1, a, 0), gpu(2, a, 0), nic(3, "pci0000:80", 1)}, dra.Options{Pairs: 2}, "--pairs 2: a node like this one can give at most 1"},
		{"pairs of both families by the class of one", []pci.Function{gpu(1, a, 0), nic(2, a, 0), instinct, nic(4, a, 0)}, dra.Options{Pairs: 2, GPUClass: "gpu.nvidia.com"}, "at most 1"},
		{"GPUs of another driver", []pci.Function{gpu(1, a, 0), nic(2, a, 0)}, dra.Options{Pairs: 1, GPUDriver: "gpu.amd.com"}, "at most 0"},
		{"no virtual function", []pci.Function{gpu(1, a, 0), nic(2, a, 0)}, dra.Options{Pairs: 1, NICDriver: dra.NICDrivers()[1]}, "at most 0"},
		{"GPUs of two classes", []pci.Function{gpu(1, a, 0), nic(2, a, 0), instinct}, dra.Options{Pairs: 1}, "choose one with --gpu-class"},
		{"an unknown driver", []pci.Function{gpu(1, a, 0), nic(2, a, 0)}, dra.Options{Pairs: 1, NICDriver: "cni"}, "--nic-driver cni"},
	} {
		if _, err := claimOf(t, tt.options, tt.functions...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestDerived: a derived attribute pairs what addresses pair, where no standard attribute serves;
// elsewhere --derived changes nothing.
func TestDerived(t *testing.T) {
	const a, b = "pci0000:00", "pci0000:80"
	apart := []pci.Function{gpu(1, a, 0), gpu(2, a, 0), nic(0x81, b, 1), nic(0x82, b, 1)}
	claim, err := claimOf(t, dra.Options{Pairs: 2, Derived: true}, apart...)
	if err != nil {
		t.Fatal(err)
	}
	devices := claim.Template.Spec.Spec.Devices
	for i, r := range devices.Requests {
		want := `device.attributes["resource.kubernetes.io"].?pciBusID.orValue("no GPU")`
		if i%2 == 1 {
			want = `{"0000:81:00.0": "0000:01:00.0", "0000:82:00.0": "0000:02:00.0"}[?device.attributes["dra.net"].?pciAddress.orValue("")].orValue("no pair")`
		}
		if of := r.Exactly.Derived; len(of) != 1 || of[0].Name != "derived/pair" || of[0].Expression != want {
			t.Errorf("%s derives %v, want %s", r.Name, of, want)
		}
	}
	if len(devices.Requests) != 4 || len(devices.Constraints) != 2 || devices.Constraints[1].Attribute != "derived/pair" {
		t.Errorf("%d requests, constraints %v", len(devices.Requests), devices.Constraints)
	}
	if level := claim.Template.Metadata.Annotations["gdr.level"]; level != "SYS" {
		t.Errorf("level %s", level)
	}

	for _, derived := range []bool{false, true} {
		claim, err := claimOf(t, dra.Options{Pairs: 1, Derived: derived}, gpu(1, a, 0), nic(2, a, 0))
		if err != nil || claim.Attribute != topology.PCIeRoot || claim.Template.Spec.Spec.Devices.Requests[0].Exactly.Derived != nil {
			t.Errorf("derived %v: %+v, error %v", derived, claim, err)
		}
	}
}
