package dra_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/yaml"

	"gdr-features/internal/label"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/dra"
	"gdr-features/topology"
)

// text is the value of an attribute, "" for none.
func text(a resourceapi.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return *a.StringValue
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	}
	return ""
}

// TestAttributes: the attributes of every GPU and NIC are those that Kubernetes' library
// reads.
func TestAttributes(t *testing.T) {
	names := map[topology.Attribute]resourceapi.QualifiedName{
		topology.PCIeRoot: deviceattribute.StandardDeviceAttributePCIeRoot, topology.NUMANode: deviceattribute.StandardDeviceAttributeNUMANode,
	}
	compared, omitted := 0, 0
	each(t, func(t *testing.T, s *subject) {
		for i := range s.report.PCI.Functions {
			f := &s.report.PCI.Functions[i]
			if f.GPU == nil && f.KnownNIC() == nil {
				continue
			}
			for a, name := range names {
				got, known := a.Of(f)
				want := text(s.attributes[f.Address.String()][name])
				if got != want || !known || dra.Name(a) != string(name) {
					t.Errorf("%v: %s=%q, known: %v; want %s=%q", f.Address, dra.Name(a), got, known, name, want)
				}
				if compared++; want == "" {
					omitted++
				}
			}
		}
	})
	if omitted == 0 || omitted == compared {
		t.Errorf("%d of %d attributes are omitted: some should be, and some not", omitted, compared)
	}
	t.Logf("%d attributes, %d of them omitted", compared, omitted)
}

// TestAlign: the label is what follows from the attributes that Kubernetes' library reads.
func TestAlign(t *testing.T) {
	seen := map[string]int{}
	each(t, func(t *testing.T, s *subject) {
		serves := func(a topology.Attribute) bool {
			for _, gpu := range s.report.Matrix.GPUs {
				if !gpu.Counts() {
					continue
				}
				found := false
				for _, nic := range s.report.Matrix.NICs {
					if !nic.Counts() {
						continue
					}
					name := resourceapi.QualifiedName(dra.Name(a))
					of := text(s.attributes[gpu.Address.String()][name])
					found = found || of != "" && of == text(s.attributes[nic.Address()][name])
				}
				if !found {
					return false
				}
			}
			return true
		}
		want := ""
		switch m := &s.report.Matrix; {
		case m.EligibleGPUs == 0 || m.EligibleNICs == 0:
		case serves(topology.PCIeRoot):
			want = "pcieRoot"
		case serves(topology.NUMANode):
			want = "numaNode"
		default:
			want = "none"
		}
		if got := s.report.Labels[label.Align]; got != want {
			t.Errorf("gdr.align=%q, want %q", got, want)
		}
		seen[want]++
	})
	for _, value := range []string{"", "pcieRoot", "numaNode", "none"} {
		if seen[value] == 0 {
			t.Errorf("no machine has gdr.align=%q", value)
		}
	}
	t.Logf("machines by label: %v", seen)
}

// decoded reads a template strictly as Kubernetes does. Every selector must compile.
func decoded(t *testing.T, text []byte) *resourceapi.ResourceClaimTemplate {
	t.Helper()
	var template resourceapi.ResourceClaimTemplate
	if err := yaml.UnmarshalStrict(text, &template); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if template.APIVersion != resourceapi.SchemeGroupVersion.String() || template.Kind != "ResourceClaimTemplate" {
		t.Errorf("a %s of %s", template.Kind, template.APIVersion)
	}
	for _, r := range template.Spec.Spec.Devices.Requests {
		compile(t, r.Exactly.Selectors)
	}
	return &template
}

// compile compiles selectors as the API server does.
func compile(t *testing.T, selectors []resourceapi.DeviceSelector) {
	t.Helper()
	for _, selector := range selectors {
		result := cel.GetCompiler(cel.Features{}).CompileCELExpression(selector.CEL.Expression, cel.Options{})
		if result.Error != nil {
			t.Errorf("%s: %v", selector.CEL.Expression, result.Error)
		}
		if result.MaxCost > resourceapi.CELSelectorExpressionMaxCost {
			t.Errorf("%s: cost %d", selector.CEL.Expression, result.MaxCost)
		}
	}
}

// claim is what the program prints for so many pairs.
func (s *subject) claim(t *testing.T, pairs int) (*dra.Claim, *resourceapi.ResourceClaimTemplate, error) {
	t.Helper()
	m := assign.NewMachine(&s.report.Node, func(string) bool { return true })
	claim, err := dra.NewClaim(m, dra.Options{Pairs: pairs})
	if err != nil || claim.Template == nil {
		return claim, nil, err
	}
	text, err := json.Marshal(claim.Template)
	if err != nil {
		t.Fatal(err)
	}
	return claim, decoded(t, text), nil
}

// level is that of the matrix.
func (s *subject) level(t *testing.T, gpu, nic string) topology.Level {
	t.Helper()
	m := &s.report.Matrix
	for _, p := range m.Pairs {
		if m.GPUs[p.GPU].Address.String() == gpu && m.NICs[p.NIC].Address() == nic {
			return p.Level
		}
	}
	t.Fatalf("no pair of %s and %s in the matrix", gpu, nic)
	return topology.Unknown
}

// TestPrinted: the YAML and the JSON that the program prints are one template.
func TestPrinted(t *testing.T) {
	described(t, func(t *testing.T, s *subject) {
		_, want, err := s.claim(t, 1)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			return
		}
		text, err := os.ReadFile(filepath.Join(goldenDir, s.Name, "claim.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, decoded(t, text)); diff != "" {
			t.Errorf("template (-JSON +YAML):\n%s", diff)
		}
	})
}

// pending reports whether a claim cannot be met because AMD's driver does not publish
// numaNode.
func pending(c *dra.Claim, template *resourceapi.ResourceClaimTemplate) bool {
	return c.Attribute == topology.NUMANode && template.Spec.Spec.Devices.Requests[0].Exactly.DeviceClassName == "gpu.amd.com"
}

// promised is the level in the template's annotation, topology.Unknown without one.
func promised(t *testing.T, template *resourceapi.ResourceClaimTemplate) topology.Level {
	t.Helper()
	if template.Annotations == nil {
		return topology.Unknown
	}
	level, err := topology.ParseLevel(template.Annotations[label.Level])
	if err != nil {
		t.Fatal(err)
	}
	return level
}

// kept reports whether a pair of this level keeps a promise.
func kept(promise, level topology.Level) bool {
	return promise == topology.Unknown || level != topology.Unknown && level <= promise
}

// TestPage: the documentation's Pod uses the claim that the program prints, and the
// DeviceClass there is the one that is tested here.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/dra.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(apiVersion: .*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d objects in docs/dra.md", len(blocks))
	}
	var pod corev1.Pod
	var class resourceapi.DeviceClass
	for i, object := range []any{&pod, &class} {
		if err := yaml.UnmarshalStrict(blocks[i][1], object); err != nil {
			t.Fatal(err)
		}
	}
	claim := pod.Spec.ResourceClaims[0]
	if *claim.ResourceClaimTemplateName != "gdr-pairs-1" || pod.Spec.Containers[0].Resources.Claims[0].Name != claim.Name {
		t.Errorf("claim %s by the template %s", claim.Name, *claim.ResourceClaimTemplateName)
	}
	want, err := classes{}.Get(class.Name)
	if err != nil {
		t.Fatal(err)
	}
	compile(t, class.Spec.Selectors)
	if diff := cmp.Diff(want.Spec, class.Spec); diff != "" {
		t.Errorf("DeviceClass (-tested +documented):\n%s", diff)
	}
}

// TestAllocated: kube-scheduler's allocator gives a claim of one pair devices at the promised
// level or a nearer one, again and again until none are left.
func TestAllocated(t *testing.T) {
	pairs := 0
	each(t, func(t *testing.T, s *subject) {
		claim, template, err := s.claim(t, 1)
		if err != nil {
			t.Fatal(err)
		}
		if template == nil {
			return
		}
		used, worst, n := sets.New[structured.DeviceID](), topology.Unknown, 0
		for got := s.allocate(t, template, used); got != nil; got = s.allocate(t, template, used) {
			level := s.level(t, got["gpu-0"], got["nic-0"])
			if !kept(promised(t, template), level) {
				t.Errorf("%v is at %v, promised is %v", got, level, promised(t, template))
			}
			worst = max(worst, level)
			n++
		}
		switch {
		case pending(claim, template):
			if n > 0 {
				t.Errorf("%d pairs by an attribute that the driver does not publish", n)
			}
		case n == 0:
			t.Error("stays Pending")
		case claim.Attribute == topology.NoAttribute && n != 1:
			t.Errorf("a claim by address is allocated %d times", n)
		}
		pairs += n
		t.Logf("%d pairs, the farthest at %v, promised %v", n, worst, promised(t, template))
	})
	t.Logf("%d pairs", pairs)
}

// TestPromise: the promised level is that of the farthest devices that the claim accepts.
func TestPromise(t *testing.T) {
	each(t, func(t *testing.T, s *subject) {
		claim, template, err := s.claim(t, 1)
		if err != nil || template == nil || claim.Attribute == topology.NoAttribute {
			return
		}
		name, worst, known := resourceapi.QualifiedName(dra.Name(claim.Attribute)), topology.Unknown, true
		class := template.Spec.Spec.Devices.Requests[0].Exactly.DeviceClassName
		for i := range s.Functions {
			for j := range s.Functions {
				gpu, nic := &s.Functions[i], &s.Functions[j]
				of := text(s.attributes[gpu.Address][name])
				if gpu.IsGPU() && gpuDrivers[gpu.Vendor] == class && of != "" && of == text(s.attributes[nic.Address][name]) && s.selected(t, template, "nic-0", nic.Address) {
					level := s.level(t, gpu.Address, nic.Address)
					worst, known = max(worst, level), known && level != topology.Unknown
				}
			}
		}
		if !known {
			worst = topology.Unknown
		}
		if got := promised(t, template); got != worst {
			t.Errorf("promised is %v, the farthest devices with the same %s are at %v", got, name, worst)
		}
	})
}
