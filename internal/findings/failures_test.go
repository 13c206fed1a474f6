package findings_test

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/docs/reasons"
	"gdr-features/host"
	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/internal/report"
	"gdr-features/source/verbs"
	"gdr-features/test/machine"
	"gdr-features/test/sample"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

const machinesDir = "../../testdata/machines"

func ready(t *testing.T) machine.State {
	t.Helper()
	s, ok := machine.StateNamed("ready")
	if !ok {
		t.Fatal("no state is named ready")
	}
	return s
}

// pair is a GPU and a NIC below a switch on each of two sockets, with ACS
// that does not redirect.
const pair = `nodes 2
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 10b5:9797
      0000:12:00.0 port 10b5:9797 acs=0001
        0000:13:00.0 gpu 10de:2330
      0000:12:01.0 port 10b5:9797 acs=0001
        0000:14:00.0 ib 15b3:1021 rdma=mlx5_0
pci0000:80 numa=1
  0000:80:01.0 port 8086:352a
    0000:81:00.0 switch 10b5:9797
      0000:82:00.0 port 10b5:9797 acs=0001
        0000:83:00.0 gpu 10de:2330
      0000:82:01.0 port 10b5:9797 acs=0001
        0000:84:00.0 ib 15b3:1021 rdma=mlx5_1
`

// desktop is a desktop computer with an Intel CPU.
const desktop = `cpu 198 Intel(R) Core(TM) Ultra 9 285K
pci0000:00
  0000:00:00.0 060000 8086:7d1b
  0000:00:01.0 port 8086:7ecc
    0000:01:00.0 gpu 10de:2235
  0000:00:06.0 port 8086:7ecb
    0000:02:00.0 eth 15b3:101d rdma=mlx5_0
`

// shared is a board whose PCI tree hides that each GPU has a NIC of its own.
const shared = `pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 1000:c010
      0000:12:00.0 port 1000:c010
        0000:13:00.0 gpu 10de:20b0
      0000:12:01.0 port 1000:c010
        0000:14:00.0 gpu 10de:20b0
      0000:12:02.0 port 1000:c010
        0000:15:00.0 ib 15b3:101b rdma=mlx5_0
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a
    0000:21:00.0 ib 15b3:101b rdma=mlx5_1
`

// gb300 is a GPU beside the data-direct function of a NIC, in different IOMMU groups
// because of the ACS settings as delivered.
const gb300 = `arm
pci0009:00 numa=0
  0009:00:00.0 port 10de:22b1 acs=001d
    0009:01:00.0 switch 15b3:197b
      0009:02:00.0 port 15b3:197b acs=001d
        0009:03:00.0 gpu 10de:31c2
      0009:02:01.0 port 15b3:197b acs=001d
        0009:04:00.0 dma 15b3:2100 vpd=VU:cx8-0
pci0000:00 numa=0
  0000:00:00.0 port 10de:22b2
    0000:01:00.0 ib 15b3:1023 rdma=mlx5_0 vpd=VU:cx8-0
`

func text(t *testing.T, name string) *machine.Machine {
	t.Helper()
	texts := map[string]string{
		"pair": pair, "shared": shared,
		"redirect":   strings.Replace(pair, "acs=0001", "acs=001d", 2),
		"passed":     strings.Replace(pair, "acs=0001", "acs=001d", 2) + "        0000:84:01.0 ib 15b3:101e physfn=0000:84:00.0 driver=vfio-pci\n",
		"one each":   strings.Replace(shared, "0000:14:00.0 gpu 10de:20b0", "0000:14:00.0 ib 15b3:101b rdma=mlx5_2", 1),
		"far":        strings.Replace(pair, "        0000:84:00.0 ib 15b3:1021 rdma=mlx5_1\n", "", 1),
		"numa":       strings.ReplaceAll(pair, " numa=0\n", "\n"),
		"apart":      gb300,
		"over C2C":   strings.ReplaceAll(pair, "15b3:1021", "15b3:2101"),
		"old GPUs":   strings.ReplaceAll(pair, "10de:2330", "10de:1db1"),
		"no GPU":     strings.ReplaceAll(pair, "gpu 10de:2330", "040300 10de:22a3"),
		"other GPU":  strings.ReplaceAll(pair, "gpu 10de:2330", "gpu 1002:7408"),
		"no NIC":     strings.ReplaceAll(pair, "ib 15b3:1021", "eth 14e4:165f"),
		"old NICs":   strings.ReplaceAll(pair, "15b3:1021", "15b3:673c"),
		"efa":        "dmi Amazon EC2 | p5.48xlarge\n" + strings.ReplaceAll(pair, "ib 15b3:1021", "eth 1d0f:efa1 layer=Unknown driver=efa"),
		"efa gen 4":  "dmi Amazon EC2 | p5en.48xlarge\n" + strings.ReplaceAll(pair, "ib 15b3:1021", "eth 1d0f:efa3 layer=Unknown driver=efa"),
		"g6e":        "dmi Amazon EC2 | g6e.48xlarge\n" + strings.ReplaceAll(strings.ReplaceAll(pair, "10de:2330", "10de:26b9"), "ib 15b3:1021", "eth 1d0f:efa2 layer=Unknown driver=efa"),
		"g6":         "dmi Amazon EC2 | g6.48xlarge\n" + strings.ReplaceAll(strings.ReplaceAll(pair, "10de:2330", "10de:27b8"), "ib 15b3:1021", "eth 1d0f:efa1 layer=Unknown driver=efa"),
		"g7e.8":      "dmi Amazon EC2 | g7e.8xlarge\n" + strings.ReplaceAll(strings.ReplaceAll(pair, "10de:2330", "10de:2bb5"), "ib 15b3:1021", "eth 1d0f:efa3 layer=Unknown driver=efa"),
		"g7e.12":     "dmi Amazon EC2 | g7e.12xlarge\n" + strings.ReplaceAll(strings.ReplaceAll(pair, "10de:2330", "10de:2bb5"), "ib 15b3:1021", "eth 1d0f:efa3 layer=Unknown driver=efa"),
		"p3dn":       "dmi Amazon EC2 | p3dn.24xlarge\n" + strings.ReplaceAll(strings.ReplaceAll(pair, "10de:2330", "10de:1db5"), "ib 15b3:1021", "eth 1d0f:efa0 layer=Unknown driver=efa"),
		"p5.4":       "dmi Amazon EC2 | p5.4xlarge\n" + strings.ReplaceAll(pair, "ib 15b3:1021", "eth 1d0f:efa2 layer=Unknown driver=efa"),
		"thor":       strings.ReplaceAll(pair, "ib 15b3:1021", "eth 14e4:1760 driver=bnxt_en"),
		"pollara":    strings.ReplaceAll(pair, "ib 15b3:1021", "eth 1dd8:1002 driver=ionic"),
		"listed":     strings.ReplaceAll(pair, "ib 15b3:1021", "eth 1fff:0001 driver=example"),
		"thor ultra": strings.ReplaceAll(pair, "ib 15b3:1021", "eth 14e4:1780 driver=bng_en"),
		"slingshot":  strings.NewReplacer("ib 15b3:1021 rdma=mlx5_0", "eth 17db:0501 net=hsn0", "ib 15b3:1021 rdma=mlx5_1", "eth 17db:0501 net=hsn1").Replace(pair),
		"omni-path":  strings.NewReplacer("ib 15b3:1021 rdma=mlx5_0", "020800 434e:0001", "ib 15b3:1021 rdma=mlx5_1", "020800 434e:0001").Replace(pair),
		"instinct":   strings.ReplaceAll(pair, "gpu 10de:2330", "120000 1002:74a1 driver=amdgpu"),
		"radeon":     strings.ReplaceAll(pair, "gpu 10de:2330", "vga 1002:744c driver=amdgpu"),
		"mixed":      strings.Replace(pair, "gpu 10de:2330", "120000 1002:74a1 driver=none", 1),
		"mlx4":       strings.ReplaceAll(pair, "15b3:1021", "15b3:1007"),
		"far redirect": "pci0000:10 numa=0\n  0000:10:01.0 port 8086:352a acs=001d\n    0000:13:00.0 gpu 10de:2330\n" +
			"  0000:10:02.0 port 8086:352a acs=001d\n    0000:14:00.0 ib 15b3:1021 rdma=mlx5_0\n",
		"managed": strings.Replace(strings.Replace(pair, "rdma=mlx5_0", "rdma=mlx5_0 net=eth0", 1), "rdma=mlx5_1\n", "rdma=mlx5_1\n  0000:80:02.0 port 8086:352a\n    0000:85:00.0 eth 15b3:101d net=eth1\n", 1),
		"desktop": desktop,
		"desktop with a switch": "cpu 198 Intel(R) Core(TM) Ultra 9 285K\npci0000:00\n  0000:00:00.0 060000 8086:7d1b\n  0000:00:01.0 port 8086:7ecc\n    0000:01:00.0 switch 10b5:9797\n" +
			"      0000:02:00.0 port 10b5:9797\n        0000:03:00.0 gpu 10de:2235\n      0000:02:01.0 port 10b5:9797\n        0000:04:00.0 eth 15b3:101d rdma=mlx5_0\n",
		"high-end desktop":  strings.Replace(desktop, "198 Intel(R) Core(TM) Ultra 9 285K", "85 Intel(R) Core(TM) i9-10980XE CPU @ 3.00GHz", 1),
		"desktop guest":     "virtual\n" + desktop,
		"other host bridge": strings.Replace(desktop, "8086:7d1b", "1022:1450", 1),
		"guest":             "virtual\n" + strings.Replace(pair, "acs=0001", "acs=001d", 2),
		"guest with a VF":   "virtual\npci0000:00 numa=0\n  0000:00:05.0 gpu 10de:2330\npci0000:01 numa=0\n  0000:01:09.0 ib 15b3:101e rdma=mlx5_0\n",
	}
	for variant, replace := range map[string]*strings.Replacer{
		"p6e in two groups":       strings.NewReplacer("group=none", "group=1"),
		"p6e in one group":        strings.NewReplacer("group=none", "group=0"),
		"p6e, another GB300":      strings.NewReplacer("10de:31c2", "10de:31c3"),
		"p6e, Rubin":              strings.NewReplacer("10de:31c2", "10de:3041"),
		"p6e without IOMMU":       strings.NewReplacer("group=0", "group=none"),
		"p6e below one root port": strings.NewReplacer("pci0000:98 numa=0\n  0000:98:01.0 port 10de:22b1\n", ""),
	} {
		if name == variant {
			desc, err := os.ReadFile(filepath.Join(machinesDir, p6e+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = replace.Replace(string(desc))
		}
	}
	if name == "partitions without links" {
		desc, err := os.ReadFile(filepath.Join(machinesDir, partitions+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = strings.NewReplacer(" link=0000:ad:00.0", "", " link=0000:8b:00.0", "").Replace(string(desc))
	}
	maps.Copy(texts, apartTexts())
	maps.Copy(texts, doubtTexts())
	maps.Copy(texts, missingTexts())
	if desc, ok := texts[name]; ok {
		m, err := machine.Parse(desc)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Changes to a state that is ready.
type change = func(*machine.State)

func all(changes ...change) change {
	return func(s *machine.State) {
		for _, c := range changes {
			c(s)
		}
	}
}

func proprietary(s *machine.State) { s.Open, s.NVIDIA = false, "550.54.14" }
func unloaded(s *machine.State)    { s.Modules = map[string]string{} }
func loaded(s *machine.State)      { s.Modules = map[string]string{"nvidia_peermem": "live"} }
func noDriver(s *machine.State)    { s.GPUDriver, s.NVIDIA = "", "" }
func noNIC(s *machine.State)       { s.NICDriver = "" }
func inbox(s *machine.State)       { s.MOFED, s.Compat = "", false; symbols(false, "")(s) }
func withNIC(s *machine.State)     { s.NICDriver = "mlx5_core" }
func inState(name string) change   { return func(s *machine.State) { *s, _ = machine.StateNamed(name) } }

func file(name, text string) change {
	return func(s *machine.State) {
		files := map[string]string{name: text}
		for k, v := range s.Files {
			if k != name {
				files[k] = v
			}
		}
		s.Files = files
	}
}

// symbols sets whether the PeerDirect API is in kallsyms, and in which module.
func symbols(peer bool, owner string) change {
	return func(s *machine.State) {
		s.Symbols = []string{"ib_umem_dmabuf_get\t[ib_uverbs]", "mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]"}
		if peer {
			s.Symbols = append(s.Symbols, "ib_register_peer_memory_client\t["+owner+"]")
		}
	}
}

// kernelHas sets the symbols of the kernel: those of DMA-BUF in the RDMA core, and some
// others.
func kernelHas(names ...string) change {
	return func(s *machine.State) { s.Symbols = append([]string{"ib_umem_dmabuf_get\t[ib_uverbs]"}, names...) }
}

// onlyEFA: DMA-BUF of EFA is the only way to GPU memory.
func onlyEFA(s *machine.State) {
	all(unloaded, inbox, kernelHas("efa_reg_user_mr_dmabuf\t[efa]"))(s)
	s.NICDriver = machine.Own
}

// ofNIC sets an attribute of the first NIC, and ofGPU one of the first GPU.
func ofNIC(name, text string) change { return file("sys/bus/pci/devices/0000:14:00.0/"+name, text) }
func ofGPU(name, text string) change { return file("sys/bus/pci/devices/0000:13:00.0/"+name, text) }

// uplink is what both ends of the link between a root port and the switch below it show.
func uplink(width, speed string) change {
	const root, switched = "sys/bus/pci/devices/0000:10:01.0/", "sys/bus/pci/devices/0000:11:00.0/"
	return all(file(root+"current_link_width", width+"\n"), file(switched+"current_link_width", width+"\n"),
		file(root+"current_link_speed", speed+"\n"), file(switched+"current_link_speed", speed+"\n"))
}

// failure is one way in which GPUDirect RDMA fails in practice: the state that
// shows it, the code that names it, and what fixes it.
type failure struct {
	name, from string // from is the report, "" for none
	// noTrace says why it leaves no trace in the files of a node.
	noTrace string

	machine string // "" is pair
	broken  change // nil: the machine itself is
	code    finding.Code
	fixed   change
	fixedOn string         // the machine without the failure, if it is another
	asked   tristate.State // what the RDMA devices say when asked, while broken
	fix     string         // part of the fix
}

// TestFailures: every case is recognised by its own code, with a fix and with
// evidence that is in the tree, and the fixed machine does not have that code.
func TestFailures(t *testing.T) {
	codes := map[finding.Code]bool{}
	var run []failure // those that a node shows
	for _, c := range failures() {
		codes[c.code] = true
		if (c.noTrace == "") == (c.code == "") {
			t.Errorf("%s: a case has a code, or a reason why it has none", c.name)
		}
		if c.noTrace != "" {
			continue
		}
		run = append(run, c)
	}
	for _, c := range testsize.Share(run) {
		t.Run(c.name, func(t *testing.T) {
			c.machine = cmp.Or(c.machine, "pair")
			dir, list := c.findings(t, c.machine, c.broken)
			i := slices.IndexFunc(list, func(f finding.Finding) bool { return f.Code == c.code })
			if i < 0 {
				t.Fatalf("no finding %s among %+v", c.code, list)
			}
			if f := list[i]; f.Status == finding.StatusOK || f.FixText() == "" && c.code != "NoGPU" && c.code != "TegraGPU" || !strings.Contains(f.FixText(), c.fix) {
				t.Errorf("%s: %+v", c.code, f)
			}
			checkEvidence(t, dir, &list[i])
			if f := list[i]; strings.Contains(f.Detail+f.FixText(), "%!") {
				t.Errorf("a text lacks a part: %+v", f)
			}
			page, _ := reasons.Page(string(c.code))
			if f := list[i]; strings.Contains(f.Detail+f.FixText(), "Operator") && !strings.Contains(page, "operators.md#") {
				t.Errorf("the page of %s does not say where that was read: %s; %s", c.code, f.Detail, f.FixText())
			}
			c.asked = tristate.Unknown
			if _, list = c.findings(t, cmp.Or(c.fixedOn, c.machine), c.broken, c.fixed); slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Code == c.code }) {
				t.Errorf("the fixed machine shows %s", c.code)
			}
		})
	}
	for _, code := range findings.Codes() {
		if code == "Deviation" || code == "NoMachineType" {
			continue // deviations are not failures: see package expect
		}
		if !codes[code] {
			t.Errorf("no case shows %s", code)
		}
	}
}

func (c *failure) findings(t *testing.T, name string, changes ...change) (string, []finding.Finding) {
	t.Helper()
	dir, r := c.judge(t, name, changes...)
	return dir, r.Findings
}

// doubted is a machine in a state that is ready but for a change, judged.
func doubted(t *testing.T, name string, change change) report.Report {
	t.Helper()
	_, r := (&failure{}).judge(t, name, change)
	return r
}

func (c *failure) judge(t *testing.T, name string, changes ...change) (string, report.Report) {
	t.Helper()
	s := ready(t)
	for _, change := range changes {
		if change != nil {
			change(&s)
		}
	}
	dir := text(t, name).Tree(t, s)
	return dir, c.judged(t, dir)
}

// judged is the machine in a directory, judged.
func (c *failure) judged(t *testing.T, dir string) report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	options := report.ForCheck
	options.Families = sample.Families()
	if c.asked != tristate.Unknown {
		options.AskVerbs = func(_ context.Context, _ *host.FS, questions []verbs.Question) (answers []verbs.Answer) {
			for _, q := range questions {
				answers = append(answers, verbs.Answer{Device: q.Device, DMABuf: c.asked})
			}
			return answers
		}
	}
	r := report.Collect(t.Context(), fs, options)
	for i := range r.Findings {
		if f := &r.Findings[i]; !findings.Listed(f) {
			t.Errorf("the check %s does not list its code %s", f.Check, f.Code)
		}
	}
	return r
}

// checkEvidence compares evidence with the tree: files said to be absent are
// missing, all others exist.
func checkEvidence(t *testing.T, dir string, f *finding.Finding) {
	t.Helper()
	if len(f.Evidence) == 0 && f.Code != "NoGPU" && f.Code != "NoNIC" {
		t.Errorf("%s: no evidence", f.Code)
	}
	for _, e := range f.Evidence {
		for piece := range strings.SplitSeq(e, " /") {
			name, value, ok := strings.Cut(piece, "=")
			if !ok || value == "" || value == "?" || strings.Contains(name, "*") {
				continue // asked of a device
			}
			_, err := os.Stat(filepath.Join(dir, name))
			if (value == "absent") != os.IsNotExist(err) {
				t.Errorf("%s: evidence %q: %v", f.Code, piece, err)
			}
		}
	}
}
