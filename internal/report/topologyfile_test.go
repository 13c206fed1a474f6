package report_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/verdict"
)

// hiddenSwitches is like half of a p4d.24xlarge: the hypervisor hides the switch above
// the GPUs and the EFA of each root bus.
const hiddenSwitches = `
nodes 2
virtual
pci0000:10 numa=0
  0000:10:1b.0 eth 1d0f:efa0 rdma=rdmap16s27 driver=efa layer=Unspecified
  0000:10:1c.0 gpu 10de:20b0 name=GPU0
  0000:10:1d.0 gpu 10de:20b0 name=GPU1
pci0000:90 numa=1
  0000:90:1b.0 eth 1d0f:efa0 rdma=rdmap144s27 driver=efa layer=Unspecified
  0000:90:1c.0 gpu 10de:20b0 name=GPU2
`

// Topology files for it: one with the switches, one without.
const (
	withSwitches = `<!-- built on node-7.example.com -->
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="8 GT/s" link_width="16"> <!-- a switch -->
      <pci busid="0000:10:1c.0" class="0x030200"/>
      <pci busid="0000:10:1d.0" class="0x030200"/>
      <pci busid="0000:10:1b.0" class="0x020000"/>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="ffff:ff:03.0" class="0x060400" link_speed="8 GT/s" link_width="16">
      <pci busid="0000:90:1c.0" class="0x030200"/>
      <pci busid="0000:90:1b.0" class="0x020000"/>
    </pci>
  </cpu>
</system>
`
	withoutSwitches = `<system version="1">
  <cpu numaid="0"><pci busid="0000:10:1c.0"/><pci busid="0000:10:1d.0"/></cpu>
  <cpu numaid="1"><pci busid="0000:90:1c.0"/><pci busid="0000:10:1b.0"/><pci busid="0000:90:1b.0"/></cpu>
</system>
`
)

const (
	product         = "sys/class/dmi/id/product_name"
	vendor          = "sys/class/dmi/id/sys_vendor"
	virtualTopology = "var/run/nvidia-topologyd/virtualTopology.xml"
	pluginFiles     = "opt/amazon/ofi-nccl/share/aws-ofi-nccl/xml/"
	p4dFile         = pluginFiles + "p4d-24xl-topo.xml"
)

// p4d are the files that make the machine one of that type with the plugin, changed by
// others; "-" removes one.
func p4d(changes map[string]string) map[string]string {
	files := map[string]string{vendor: "Amazon EC2\n", product: "p4d.24xlarge\n", p4dFile: withSwitches}
	maps.Copy(files, changes)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "-" })
	return files
}

// TestPluginTopologyFile: the topology file that an NCCL plugin brings gives the levels on
// machines of its type, and only there.
func TestPluginTopologyFile(t *testing.T) {
	t.Parallel()
	noEFA := strings.NewReplacer("1d0f:efa0", "15b3:1021", "driver=efa ", "", "Unspecified", "Ethernet").Replace(hiddenSwitches)
	var mlx5 report.Options
	var err error
	if mlx5.Families, err = family.Select([]string{"mlx5"}); err != nil {
		t.Fatal(err)
	}
	other, err := nccl.ParseFile([]byte(withoutSwitches))
	if err != nil {
		t.Fatal(err)
	}
	other.Name = "other.xml"
	// byType names that file for a product, and none for others.
	byType := func(of string) report.Options {
		types, err := expect.ParseTopologies([]byte("types: [{name: a, match: {product: " + of + ", gpu: A100*}, file: a.xml}]"))
		if err != nil {
			t.Fatal(err)
		}
		return report.Options{TopologyOf: func(node *verdict.Node) (*nccl.File, error) {
			name, err := types.Of(node)
			return map[string]*nccl.File{"a": other}[name], err
		}}
	}
	const noType = "/sys/class/dmi/id: sys_vendor and product_name do not say"
	type want struct{ origin, level, nccl, file string }
	var (
		found   = want{"file", "PIX", "true", "/" + p4dFile}
		sysfs   = want{"virtual", "PHB", "false", ""}
		unknown = want{}
		from    = func(file string) want { return want{"file", "PIX", "true", "/" + file} }
		flat    = func(file string) want { return want{"file", "SYS", "false", file} }
	)
	for i, tt := range []struct {
		name    string
		machine string // hiddenSwitches by default
		files   map[string]string
		options report.Options
		want    want
		problem string // part of the only one, "" for none
		untyped bool   // a problem beside it is noType
	}{
		{name: "found", files: p4d(nil), want: found},
		{name: "another type, another file", files: p4d(map[string]string{product: "p4de.24xlarge\n", pluginFiles + "p4de-24xl-topo.xml": withSwitches}), want: from(pluginFiles + "p4de-24xl-topo.xml")},
		{name: "only NUMA nodes in it", files: p4d(map[string]string{product: "g5.48xlarge\n", pluginFiles + "g5.48xl-topo.xml": withoutSwitches}), want: flat("/" + pluginFiles + "g5.48xl-topo.xml")},
		{name: "a container's directory", files: p4d(map[string]string{p4dFile: "-", "opt/amazon/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml": withSwitches}), want: from("opt/amazon/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml")},
		{name: "built from source", files: p4d(map[string]string{p4dFile: "-", "opt/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml": withSwitches}), want: from("opt/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml")},
		{name: "the first of two directories", files: p4d(map[string]string{"opt/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml": withoutSwitches}), want: found},
		{name: "the first directory lacks it", files: p4d(map[string]string{p4dFile: "-", pluginFiles + "p4de-24xl-topo.xml": withoutSwitches, "opt/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml": withSwitches}), want: from("opt/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml")},

		{name: "no plugin", files: p4d(map[string]string{p4dFile: "-"}), want: sysfs},
		{name: "the plugin without the file", files: p4d(map[string]string{p4dFile: "-", pluginFiles + "g5.48xl-topo.xml": withSwitches}), want: sysfs},
		{name: "a type whose file is made at run time", files: p4d(map[string]string{product: "p5.48xlarge\n", pluginFiles + "p5.48xl-topo.xml": withSwitches}), want: sysfs},
		{name: "a longer name", files: p4d(map[string]string{product: "p4d.24xlarge.metal\n"}), want: sysfs},
		{name: "no product name", files: p4d(map[string]string{product: "-"}), want: sysfs},
		{name: "no EFA", machine: noEFA, files: p4d(nil), want: sysfs},

		{name: "garbage", files: p4d(map[string]string{p4dFile: "\x7fELF\x02\x01"}), want: unknown, problem: "/" + p4dFile + ": XML syntax error"},
		{name: "empty", files: p4d(map[string]string{p4dFile: ""}), want: unknown, problem: "/" + p4dFile + ": file is empty"},
		{name: "too large", files: p4d(map[string]string{p4dFile: strings.Repeat(" ", nccl.MaxFile+1)}), want: unknown, problem: "/" + p4dFile + ": more data than expected"},
		{name: "a directory", files: p4d(map[string]string{p4dFile: "-", p4dFile + "/p4d-24xl-topo.xml": withSwitches}), want: unknown, problem: p4dFile},
		{name: "garbage in the first of two directories", files: p4d(map[string]string{p4dFile: "<", "opt/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml": withSwitches}), want: unknown, problem: p4dFile},
		{name: "an empty product name", files: p4d(map[string]string{product: "\n"}), want: unknown, problem: "has a file for each type of machine: read /" + product, untyped: true},
		{name: "an empty product name without the plugin", files: map[string]string{product: "\n"}, want: sysfs, untyped: true},
		{name: "a file that NCCL refuses", files: p4d(map[string]string{p4dFile: strings.Replace(withSwitches, `version="1"`, `version="2"`, 1)}), want: want{"file", "PIX", "", "/" + p4dFile}, problem: "NCCL refuses the topology file /" + p4dFile},

		{name: "NVIDIA's too", files: p4d(map[string]string{virtualTopology: withoutSwitches}), want: flat("/" + virtualTopology)},
		{name: "NVIDIA's alone", files: p4d(map[string]string{p4dFile: "-", virtualTopology: withSwitches}), want: from(virtualTopology)},
		{name: "garbage in NVIDIA's", files: p4d(map[string]string{virtualTopology: "<"}), want: unknown, problem: virtualTopology},
		{name: "a file that the user names", files: p4d(nil), options: report.Options{TopologyFile: other}, want: flat("other.xml")},
		{name: "a file for this type", files: p4d(nil), options: byType("p4d.*"), want: flat("other.xml")},
		{name: "a file for another type", files: p4d(nil), options: byType("p5.*"), want: found},
		{name: "a file for another GPU", machine: strings.ReplaceAll(hiddenSwitches, "10de:20b0", "10de:2330"), files: p4d(nil), options: byType("p4d.*"), want: found},
		{name: "EFA does not count", files: p4d(nil), options: mlx5, want: want{origin: "virtual"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := hiddenSwitches
			if tt.machine != "" {
				text = tt.machine
			}
			s := state(t, "inbox")
			s.Files = tt.files
			dir := parse(t, text).Tree(t, s)
			fs, err := host.Open(host.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fs.Close() }()
			r := report.Collect(t.Context(), fs, tt.options)
			got := want{r.Labels[label.Topology], r.Labels[label.Level], r.Labels[label.NCCLDefault], ""}
			if r.Matrix.File != nil {
				got.file = r.Matrix.File.Name
			}
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			if got.level == "PIX" {
				if p := r.Matrix.Pairs[0]; p.NCCL != topology.PIX && tt.problem == "" || p.Level != topology.PIX || !p.FromFile {
					t.Errorf("0000:10:1c.0 and 0000:10:1b.0: %+v", p)
				}
			}
			problems := sanitize.Errors(r.Problems)
			if tt.untyped {
				problems = slices.DeleteFunc(problems, func(p string) bool { return strings.Contains(p, noType) })
			}
			if tt.problem == "" && len(problems) > 0 || tt.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.problem)) {
				t.Errorf("problems %q, want %q", problems, tt.problem)
			}
			if testsize.Partial() && i%6 > 0 {
				return
			}
			if diff := fromSnapshot(t, dir, "node-7"); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// stuck is a machine of which one file gives no answer until it is released.
type stuck struct {
	host.Source
	name    string
	release chan struct{}
}

func (s stuck) Open(name string) (host.File, error) {
	if name == s.name {
		<-s.release
	}
	return s.Source.Open(name)
}

// TestTopologyFileInTime: a topology file that gives no answer leaves the levels unknown
// and nothing else, and a GPU that gives none takes no label about hardware. A file that does
// counts although an RDMA device gives none.
func TestTopologyFileInTime(t *testing.T) {
	s := state(t, "inbox")
	s.Files = p4d(nil)
	fs, err := host.Open(host.Options{Root: parse(t, hiddenSwitches).Tree(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	for _, tt := range []struct{ name, file, level, topology, capable, problem string }{
		{"the topology file", p4dFile, "", "", "true", "NCCL topology file: no answer in time"},
		{"the product name", product, "", "", "", "names of the machine: no answer in time"},
		{"what the driver says of a GPU", "proc/driver/nvidia/gpus/0000:10:1c.0/information", "PIX", "file", "true", "what drivers say of GPUs: no answer in time"},
		{"the CPU, beside the product name", "proc/cpuinfo", "PIX", "file", "true", "files of the platform: no answer in time"},
		{"an RDMA device", "sys/class/infiniband/rdmap16s27/ports/1/state", "PIX", "file", "true", "no answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				release := make(chan struct{})
				defer close(release)
				r := report.Collect(ctx, host.New(stuck{fs, tt.file, release}, "stuck"), report.Options{})
				if got := r.Labels[label.Level]; got != tt.level {
					t.Errorf("level %q, want %q", got, tt.level)
				}
				if got := r.Labels[label.Topology]; got != tt.topology {
					t.Errorf("topology %q, want %q", got, tt.topology)
				}
				if got := r.Labels[label.Capable]; got != tt.capable {
					t.Errorf("capable %q, want %q", got, tt.capable)
				}
				if problems := sanitize.Errors(r.Problems); !strings.Contains(strings.Join(problems, "\n"), tt.problem) {
					t.Errorf("problems %q, want %q", problems, tt.problem)
				}
			})
		})
	}
}
