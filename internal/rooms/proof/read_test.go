package proof_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/rooms/proof"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

const (
	yes, no, unknown = tristate.True, tristate.False, tristate.Unknown
	dmabuf           = bus + " --use_cuda_dmabuf"
	stepHost         = "step host - mlx5_0 host 0 0"
	stepGPU          = "step gpu " + gpu + " mlx5_0 dmabuf 0 0"
)

// folderOf is a folder with a baseline of 100 Gbit/s and one transfer with GPU memory by DMA-BUF.
func folderOf(server, client said) []proof.File {
	all := append(files("gpu", server, client), listed(stepHost, stepGPU))
	hostServer, hostClient := hostOnly()
	return append(all, files("host", hostServer, hostClient)...)
}

func lineNamed(t *testing.T, r proof.Result, name string) proof.Line {
	t.Helper()
	at := slices.IndexFunc(r.Lines, func(l proof.Line) bool { return l.Name == name })
	if at < 0 {
		t.Fatalf("no line %s: %+v", name, r)
	}
	return r.Lines[at]
}

// TestRead: what a transfer with GPU memory shows beside a baseline that passed.
func TestRead(t *testing.T) {
	refusal := func(number string) func(s, c *said) {
		return func(s, c *said) {
			for _, side := range []*said{s, c} {
				side.noResult, side.rc = true, "1"
				side.errs = "Couldn't allocate MR with error=" + number + "\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n"
			}
		}
	}
	peermem := func(release string) func(s, c *said) {
		return func(s, c *said) {
			for _, side := range []*said{s, c} {
				side.asked, side.memory = strings.Replace(side.asked, " --use_cuda_dmabuf", "", 1), cuda(release, false)
			}
		}
	}
	then := func(all ...func(s, c *said)) func(s, c *said) {
		return func(s, c *said) {
			for _, do := range all {
				do(s, c)
			}
		}
	}
	rate := func(gbits float64) func(s, c *said) { return func(s, c *said) { s.gbits, c.gbits = gbits, gbits } }
	failed := func(errs string) func(s, c *said) {
		return func(s, c *said) { c.noResult, c.rc, c.errs, s.noResult, s.rc = true, "1", errs, true, "1" }
	}
	for _, test := range []struct {
		name   string
		change func(s, c *said)
		want   tristate.State
		why    string
	}{
		{"good", func(*said, *said) {}, yes, ""},
		{"good at 90 %", rate(90), yes, ""},
		{"89 %", rate(89), unknown, "89 % of the rate with host memory"},
		{"50 %", rate(50), unknown, "50 % of the rate"},
		{"49 %", rate(49), no, "49 % of the rate"},
		{"in MiB", func(s, c *said) { s.unit, c.unit = "MiB/sec", "MiB/sec" }, yes, ""},
		{"in MB, as to 24.04", func(s, c *said) { s.unit, c.unit = "MB/sec", "MB/sec" }, yes, ""},
		{"4.5-0.20", func(s, c *said) { s.memory, c.memory = cuda("4.5", true), cuda("4.5", true) }, yes, ""},
		{"data direct", func(s, _ *said) {
			s.memory = strings.Replace(s.memory, "Calling ibv_reg_dmabuf_mr(", "Calling mlx5dv_reg_dmabuf_mr(", 1)
		}, yes, ""},
		{"peermem", peermem(""), yes, ""},
		{"peermem of 4.5", peermem("4.5"), yes, ""},
		{"peermem of 23.07", peermem("23.07"), yes, ""},
		{"a bus in capitals", func(s, _ *said) { s.memory = strings.ReplaceAll(s.memory, gpu, strings.ToUpper(gpu)) }, yes, ""},

		{"DMA-BUF was asked for, peer memory used", func(s, _ *said) { s.memory = cuda("", false) }, unknown, "server: its output shows another way"},
		{"peer memory was asked for, DMA-BUF used", then(peermem(""), func(_, c *said) { c.memory = cuda("", true) }), unknown, "client: its output shows another way"},
		{"no GPU memory on one side", func(s, _ *said) { s.memory = "" }, unknown, "server: its output does not show GPU memory"},
		{"no GPU memory on any side", func(s, c *said) { s.memory, c.memory = "", "" }, unknown, "does not show GPU memory"},
		{"GPU memory not asked for on one side", func(s, _ *said) { s.asked = rest }, unknown, "for which it was not asked"},
		{"another GPU", func(_, c *said) { c.memory = strings.ReplaceAll(c.memory, gpu, "0000:29:00.0") }, unknown, "client: its output does not show this GPU"},
		{"managed memory", func(s, _ *said) { s.memory = strings.Replace(s.memory, "CUDA_MEM_DEVICE", "CUDA_MEM_MANAGED", 1) }, unknown, "not the GPU's own"},
		{"an integrated GPU", func(s, _ *said) { s.memory = strings.Replace(s.memory, "integrated: 0", "integrated: 1", 1) }, unknown, "both the GPU and the CPU have"},
		{"one side in Gbit", func(s, _ *said) { s.unit = "MiB/sec" }, unknown, "different units"},
		{"Gbit below a header of MiB", func(s, _ *said) {
			s.memory += strings.Replace(s.out()[len(s.memory):], "Gb/sec", "MiB/sec", 2)
			s.noResult = true
		}, unknown, "number of messages disagree"},
		{"other sizes", func(s, _ *said) { s.bytes = 4096 }, unknown, "different results"},
		{"other iterations", func(s, _ *said) { s.iterations = 7 }, unknown, "different results"},
		{"other rates", func(s, _ *said) { s.gbits = 98 }, unknown, "different results"},
		{"sides of two transfers", func(s, _ *said) { s.local = "0x0099" }, unknown, "not of one transfer"},
		{"two NICs", func(s, _ *said) { s.device = "mlx5_1" }, unknown, "different NICs"},
		{"another NIC", func(s, c *said) { s.device, c.device = "mlx5_1", "mlx5_1" }, unknown, "another NIC than the plan says"},
		{"torn", func(s, _ *said) { s.torn = true }, unknown, "table is torn"},
		{"no exit status", func(s, _ *said) { s.rc = "" }, unknown, "the server has no exit status"},
		{"no command", func(s, _ *said) { s.asked = "" }, unknown, "command (.cmd) is missing"},
		{"an empty side", func(s, _ *said) { *s = said{noResult: true} }, unknown, "server"},
		{"other options than the baseline", func(s, c *said) {
			s.asked, c.asked = strings.Replace(s.asked, "-D 5", "-D 9", 1), strings.Replace(c.asked, "-D 5", "-D 9", 1)
		}, unknown, "there is no baseline"},
		{"a limit was missed", func(_, c *said) { c.rc, c.errs = "1", "Error: BW result is below bw limit\n" }, unknown, "--limit_bw"},
		{"not in time", func(s, c *said) { s.rc, s.noResult, c.rc, c.noResult = "124", true, "124", true }, unknown, "did not end in time"},
		{"killed", func(s, c *said) { *s = said{noResult: true, rc: "137", asked: s.asked}; c.rc, c.noResult = "124", true }, unknown, "the server was killed"},
		{"killed, and the other side sees it", func(s, c *said) {
			s.rc, s.noResult, c.rc, c.noResult, c.errs = "137", true, "1", true, " Unable to read from socket/rdma_cm\n Failed to exchange data between server and clients\n"
		}, unknown, "the server was killed, the client ended with status 1"},
		{"the other side ended by itself", failed(" Failed to exchange data between server and clients\n"), unknown, "the other side ended"},
		{"both killed", func(s, c *said) { *s, *c = said{noResult: true, rc: "137"}, said{noResult: true, rc: "143"} }, unknown, "the server was killed, the client was killed"},
		{"no such GID", failed("\n Found Incompatibility issue with GID types.\n Please Try to use a different IP version.\n\n"), unknown, "the GID of this index is not there"},
		{"two NICs that do not reach each other", func(s, c *said) {
			failed("Failed to modify QP 25 to RTR\n Unable to Connect the HCA's through the link\n")(s, c)
			s.device, s.errs = "mlx5_1", c.errs
		}, unknown, "the sides could not connect"},
		{"no such NIC", failed("IB device mlx5_9 not found\n Unable to find the Infiniband/RoCE device\n"), unknown, "there is no such NIC here"},
		{"JSON that could not be written", func(_, c *said) { c.errs = "failed to open /none/x.json\n" }, yes, ""},
		{"garbage", func(s, c *said) { s.memory, s.noResult = "\x00\xff\x1b[2J\n", true; c.rc = "x" }, unknown, ""},

		{"error 14", refusal("14"), no, "error 14"},
		{"error 95", refusal("95"), no, "error 95"},
		{"error 14 with peer memory", then(peermem(""), refusal("14")), no, "no peer memory client"},
		{"error 95 with peer memory", then(peermem(""), refusal("95")), unknown, "another reason"},
		{"error 12", refusal("12"), unknown, "no memory may be locked"},
		{"error 1", refusal("1"), unknown, "no memory may be locked"},
		{"error 145", refusal("145"), unknown, "another reason"},
		{"error 14 with host memory", func(s, c *said) {
			refusal("14")(s, c)
			s.memory, c.memory = "", ""
		}, unknown, "error 14"},
		{"an error without number", func(s, c *said) {
			refusal("14")(s, c)
			s.errs, c.errs = "Couldn't allocate MR\n", "Couldn't allocate MR\n"
		}, unknown, "does not say why"},
		{"an error without number, and a warning", func(s, c *said) {
			refusal("14")(s, c)
			s.errs = "libibverbs: Warning: RLIMIT_MEMLOCK is 0 bytes.\nCouldn't allocate MR\n"
			c.errs = s.errs
		}, unknown, "may lock little memory"},
		{"a transfer fails", failed(" Completion with error at client\n Failed status 4: wr_id 0 syndrom 0x51\n"), no, "failed on its way"},
		{"a transfer fails after the server was killed", then(failed(" Completion with error at client\n"), func(s, _ *said) { s.rc = "137" }), unknown, "failed on its way"},
		{"a transfer fails, and all end well", func(_, c *said) { c.errs = " Completion with error at client\n" }, no, "failed on its way"},
		{"a busy GPU", failed("cuCtxCreate_v2() error=2\nCouldn't init GPU context: 1\n"), unknown, "could not be opened"},
		{"no CUDA in the build", failed("ib_write_bw: unrecognized option '--use_cuda_bus_id=0000:1b:00.0'\n Invalid Command or flag.\n"), unknown, "built without"},
		{"a port in use", func(s, c *said) {
			s.noResult, s.rc, s.errs = true, "1", "Couldn't listen to port 18601\n"
			*c = said{noResult: true}
		}, unknown, "TCP port is in use"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, client := transfer(dmabuf, cuda("", true), 97)
			test.change(&server, &client)
			r := proof.Read(folderOf(server, client), nil)
			l := lineNamed(t, r, "gpu")
			if l.State != test.want || !strings.Contains(l.Why, test.why) || test.want == yes && l.Why != "" || test.want != yes && l.Why == "" {
				t.Errorf("%v, want %v with %q: %+v", l.State, test.want, test.why, l)
			}
			if h := lineNamed(t, r, "host"); h.State != yes || r.State != test.want {
				t.Errorf("baseline %+v; all %v, want %v", h, r.State, test.want)
			}
		})
	}
}

// TestBaseline: what is true or false beside a baseline is unknown without one.
func TestBaseline(t *testing.T) {
	refuse := func(s *said) { s.noResult, s.rc, s.errs = true, "1", "Couldn't allocate MR with error=14\n" }
	for name, change := range map[string]func(s, c *said){
		"good":    func(*said, *said) {},
		"refused": func(s, c *said) { refuse(s); refuse(c) },
		"slow":    func(s, c *said) { s.gbits, c.gbits = 1, 1 },
	} {
		server, client := transfer(dmabuf, cuda("", true), 97)
		change(&server, &client)
		alone := append(files("gpu", server, client), listed(stepHost, stepGPU))
		r := proof.Read(alone, nil)
		if l := lineNamed(t, r, "gpu"); l.State != unknown || !strings.Contains(l.Why, "no baseline") || r.State != unknown {
			t.Errorf("%s: %+v", name, l)
		}
		hostServer, hostClient := hostOnly()
		hostServer.rc = "1"
		r = proof.Read(append(alone, files("host", hostServer, hostClient)...), nil)
		if l := lineNamed(t, r, "gpu"); l.State != unknown || lineNamed(t, r, "host").State != unknown {
			t.Errorf("%s, with a baseline that failed: %+v", name, l)
		}
	}
}

// TestBaselineFails: a failure that host memory has, too, is none of the GPU.
func TestBaselineFails(t *testing.T) {
	refused := func(s, c said) []proof.File {
		for _, side := range []*said{&s, &c} {
			side.noResult, side.rc = true, "1"
			side.errs = "libibverbs: Warning: RLIMIT_MEMLOCK is 0 bytes.\n    This will severely limit memory registrations.\nCouldn't allocate MR\n"
		}
		return files("host", s, c)
	}
	server, client := transfer(dmabuf, cuda("", true), 20)
	r := proof.Read(append(append(files("gpu", server, client), refused(hostOnly())...), listed(stepHost, stepGPU)), nil)
	if l := lineNamed(t, r, "host"); l.State != unknown || l.Why != "this process may lock little memory" || l.Code != "LockedMemoryLow" {
		t.Errorf("%+v", l)
	}
	if l := lineNamed(t, r, "gpu"); l.State != unknown || r.State != unknown {
		t.Errorf("%+v", l)
	}
}

// TestNames: outputs that somebody kept under other names than the script's.
func TestNames(t *testing.T) {
	server, client := hostOnly()
	for name, all := range map[string][]proof.File{
		"x":       {{Name: "x.out", Text: server.out()}, {Name: "x.c.out.txt", Text: client.out()}},
		"x.log":   {{Name: "x.log", Text: client.out()}},
		"x.s.s":   {{Name: "x.s.s.s.out", Text: server.out()}},
		"a\nb.rc": {{Name: "a\nb.rc", Text: "0"}},
	} {
		l := lineNamed(t, proof.Read(all, nil), name)
		if _, both := strings.CutPrefix(l.Why, "the server has no exit status, the client has no exit status"); l.State != unknown || both != (name == "x") {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// TestRates: the rate as a share of what the NIC can, by the plan or by who knows the node.
func TestRates(t *testing.T) {
	node := func(nic string) proof.Rates {
		if nic == "mlx5_0" {
			return proof.Rates{Port: 400}
		}
		return proof.Rates{}
	}
	server, client := transfer(dmabuf, cuda("", true), 97)
	for _, test := range []struct {
		name, rate string
		node       func(nic string) proof.Rates
		port, pcie float64
	}{
		{"of the plan", "200 126", nil, 0.485, 0.77},
		{"of the plan, and the node", "200 126", node, 0.485, 0.77},
		{"the port is unknown", "0 126", node, 0, 0.77},
		{"of the node", "0 0", node, 0.243, 0},
		{"of neither", "0 0", nil, 0, 0},
		{"garbage", "NaN -1", nil, 0, 0},
		{"too much", "1e300 Inf", nil, 0, 0},
	} {
		all := folderOf(server, client)
		for i := range all {
			if all[i].Name == "plan" {
				all[i] = listed(strings.Replace(stepHost, "0 0", test.rate, 1), strings.Replace(stepGPU, " 0 0", " "+test.rate, 1))
			}
		}
		r := proof.Read(all, test.node)
		l := lineNamed(t, r, "gpu")
		if l.OfPort != test.port || l.OfPCIe != test.pcie || r.State != yes {
			t.Errorf("%s: %v and %v, want %v and %v; %v", test.name, l.OfPort, l.OfPCIe, test.port, test.pcie, r.State)
		}
		if h := lineNamed(t, r, "host"); (h.OfPort > 0) != (test.port > 0) || h.Share != 0 {
			t.Errorf("%s: the baseline: %+v", test.name, h)
		}
	}
}

// TestOneSide: GPU memory on one side proves nothing, but may show that something is wrong.
func TestOneSide(t *testing.T) {
	for rate, want := range map[float64]tristate.State{99: unknown, 20: no} {
		server, client := transfer(dmabuf, cuda("", true), rate)
		client.asked, client.memory = rest+" -p 18602 127.0.0.1", ""
		r := proof.Read(folderOf(server, client), nil)
		if l := lineNamed(t, r, "gpu"); l.State != want || l.Server != "gpu" || l.Client != "host" {
			t.Errorf("%v Gbit/s: %+v", rate, l)
		}
	}
}

// TestROCm: a number is a GPU only if the bus that perftest prints is that of the plan.
func TestROCm(t *testing.T) {
	const one, same = "step gpu 0000:63:00.0 mlx5_0 peermem 0 0", "step x 0001:63:00.0 mlx5_0 peermem 0 0"
	for _, test := range []struct {
		name, bus string
		plan      []string
		want      tristate.State
	}{
		{"the bus of the plan", "63", []string{stepHost, one}, yes},
		{"another bus", "83", []string{stepHost, one}, unknown},
		{"two GPUs with that bus", "63", []string{stepHost, one, same}, unknown},
		{"no plan", "63", nil, unknown},
	} {
		server, client := transfer("--use_rocm=1", rocm(test.bus), 97)
		all := files("gpu", server, client)
		if hostServer, hostClient := hostOnly(); true {
			all = append(all, files("host", hostServer, hostClient)...)
		}
		if test.plan != nil {
			all = append(all, listed(test.plan...))
		}
		if l := lineNamed(t, proof.Read(all, nil), "gpu"); l.State != test.want {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
}

// TestPlanOfFolder: what was not measured leaves the whole unknown.
func TestPlanOfFolder(t *testing.T) {
	server, client := transfer(dmabuf, cuda("", true), 97)
	good := folderOf(server, client)
	for _, test := range []struct {
		name string
		plan proof.File
		want tristate.State
		note string
	}{
		{"all steps", listed(stepHost, stepGPU), yes, ""},
		{"a NIC not used", listed(stepHost, stepGPU, "note "+gpu+": mlx5_9: no port is active"), yes, "not used: " + gpu},
		{"a GPU not measured", listed(stepHost, stepGPU, "lacks 0000:29:00.0: no near NIC can be used here"), unknown, "not measured: 0000:29:00.0"},
		{"a step that was not run", listed(stepHost, stepGPU, "step other 0000:29:00.0 mlx5_1 dmabuf 0 0"), unknown, ""},
		{"a torn list", proof.File{Name: "plan", Text: "gdr-features proof 1\n" + stepHost + "\n" + stepGPU + "\n"}, unknown, "torn"},
		{"a list of another version", proof.File{Name: "plan", Text: "gdr-features proof 2\n" + stepHost + "\nend\n"}, unknown, "torn"},
		{"no list", proof.File{Name: "version"}, unknown, "no list of steps"},
		{"a list that cannot be read", proof.File{Name: "plan", Problem: "permission denied"}, unknown, "permission denied"},
	} {
		all := append(slices.DeleteFunc(slices.Clone(good), func(f proof.File) bool { return f.Name == "plan" }), test.plan)
		r := proof.Read(all, nil)
		if r.State != test.want || lineNamed(t, r, "gpu").State != yes || !strings.Contains(strings.Join(r.Notes, "\n"), test.note) {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestJSON: JSON alone shows nothing; beside the text it must say the same.
func TestJSON(t *testing.T) {
	const old = "{\ntest_info: {\nDevice: \"mlx5_0\",\n},\nresults: {\nMsgSize: 65536,\nn_iterations: 300000,\nBW_peak: 0.00,\nBW_average: 97.00,\nMsgRate: 0.185013,\n},\n}\n"
	newer := strings.NewReplacer("MsgSize", `"MsgSize"`, "n_iterations", `"n_iterations"`, "BW_average", `"BW_average"`, "MsgRate", `"MsgRate"`).Replace(old)
	for _, test := range []struct {
		name, text string
		want       tristate.State
	}{
		{"before 24.01", old, yes},
		{"newer", newer, yes},
		{"another rate", strings.Replace(old, "97.00", "98.00", 1), unknown},
		{"torn", old[:len(old)-3], unknown},
		{"empty", "", unknown},
		{"two results", old + old, unknown},
	} {
		server, client := transfer(dmabuf, cuda("", true), 97)
		all := append(folderOf(server, client), proof.File{Name: "gpu.json", Text: test.text})
		if l := lineNamed(t, proof.Read(all, nil), "gpu"); l.State != test.want {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
	r := proof.Read([]proof.File{{Name: "gpu.json.txt", Text: newer}}, nil)
	if l := lineNamed(t, r, "gpu"); l.State != unknown || r.State != unknown {
		t.Errorf("alone: %+v", l)
	}
}

// TestCut: a folder that is cut anywhere gives no true that the whole does not give.
func TestCut(t *testing.T) {
	good, goodClient := transfer(dmabuf, cuda("", true), 97)
	slow, slowClient := transfer(dmabuf, cuda("", true), 60)
	dual, dualClient := transfer(dmabuf, strings.Replace(cuda("", true), "integrated: 0", "integrated: 1", 1), 97)
	unit, unitClient := transfer(dmabuf, cuda("", true), 97)
	unit.unit = "MiB/sec"
	limit, limitClient := transfer(dmabuf, cuda("", true), 97)
	limitClient.rc, limitClient.errs = "1", "Error: BW result is below bw limit\n"
	cuts, kept := 0, 0
	for _, whole := range [][]proof.File{
		folderOf(good, goodClient), folderOf(slow, slowClient), folderOf(dual, dualClient), folderOf(unit, unitClient), folderOf(limit, limitClient),
	} {
		want := map[string]tristate.State{}
		of := proof.Read(whole, nil)
		for _, l := range of.Lines {
			want[l.Name] = l.State
		}
		for i, file := range whole {
			for at := range strings.Count(file.Text, "\n") + 1 {
				short := slices.Clone(whole)
				short[i].Text = strings.Join(strings.SplitAfter(file.Text, "\n")[:at], "")
				cuts++
				r := proof.Read(short, nil)
				for _, l := range r.Lines {
					if l.State == yes && want[l.Name] != yes || r.State == yes && of.State != yes {
						t.Errorf("%s cut after line %d: %+v", file.Name, at, l)
					}
				}
				if r.State == yes {
					kept++
				}
			}
			r := proof.Read(slices.Delete(slices.Clone(whole), i, i+1), nil)
			if r.State == yes && (of.State != yes || !strings.HasSuffix(file.Name, ".err")) {
				t.Errorf("without %s: %+v", file.Name, r)
			}
		}
	}
	t.Logf("%d cuts, after which %d are still true", cuts, kept)
	if cuts < 500 {
		t.Errorf("%d cuts", cuts)
	}
}

// TestText: what a terminal obeys does not reach it, and both outputs say the same.
func TestText(t *testing.T) {
	server, client := transfer(dmabuf, cuda("", true), 30)
	all := append(folderOf(server, client), proof.File{Name: "\x1b[2Jx.s.out", Problem: "no\x1b[2J"})
	r := proof.Read(all, nil)
	r.Because(func(l *proof.Line) string { return "peermem \x1b[2J" + l.Name })
	var text, data bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := show.JSON(&data, r); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), data.String()} {
		if strings.ContainsRune(out, 0x1b) {
			t.Errorf("an escape: %q", out)
		}
	}
	var back struct {
		State string
		Lines []struct{ State, Why string }
	}
	if err := json.Unmarshal(data.Bytes(), &back); err != nil || back.State != "false" {
		t.Errorf("%v: %s", err, &data)
	}
	for _, l := range back.Lines {
		if !strings.Contains(text.String(), l.State+": "+l.Why) && l.Why != "" {
			t.Errorf("%+v is not in %s", l, &text)
		}
	}
	if !strings.Contains(text.String(), "\nproven: false (transfers with GPU memory: 0 true, 1 false, 1 unknown)\n") {
		t.Errorf("%s", &text)
	}
}

// TestCodes: each code has a page.
func TestCodes(t *testing.T) {
	codes := proof.Codes()
	for _, code := range codes {
		if _, err := os.Stat(filepath.Join("../../../docs/reasons", code+".md")); err != nil {
			t.Error(err)
		}
	}
	if len(codes) < 8 {
		t.Errorf("%d codes", len(codes))
	}
}

// FuzzRead: any files give an answer, and true only where both sides show GPU memory.
func FuzzRead(f *testing.F) {
	server, client := transfer(dmabuf, cuda("", true), 97)
	f.Add(server.out(), client.out(), client.errs, server.asked, client.asked, "0", listed(stepHost, stepGPU).Text, "{\n\"MsgSize\": 1\n}")
	f.Add("", "", "Couldn't allocate MR with error=14", "ib_write_bw --use_rocm", "-d", "1", "end", "")
	hostServer, hostClient := hostOnly()
	base := files("host", hostServer, hostClient)
	f.Fuzz(func(t *testing.T, out, other, errs, asked, askedOther, rc, plan, data string) {
		r := proof.Read(append([]proof.File{
			{Name: "gpu.s.out", Text: out},
			{Name: "gpu.c.out", Text: other},
			{Name: "gpu.c.err", Text: errs},
			{Name: "gpu.s.cmd", Text: asked},
			{Name: "gpu.c.cmd", Text: askedOther},
			{Name: "gpu.s.rc", Text: rc},
			{Name: "gpu.c.rc", Text: rc},
			{Name: "plan", Text: plan},
			{Name: "x.json", Text: data},
		}, base...), nil)
		for _, l := range r.Lines {
			const shown = "of GPU buffer at"
			memory := func(s string) bool { return strings.Contains(s, "allocated GPU buffer ") || strings.Contains(s, shown) }
			if l.State == yes && l.Way != proof.Host && (!memory(out+errs) || !memory(other+errs) || strings.TrimSpace(rc) != "0") {
				t.Errorf("%+v of %q and %q", l, out, other)
			}
		}
		if err := r.Text(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}
