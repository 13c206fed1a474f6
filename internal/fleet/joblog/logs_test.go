package joblog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

// TestLogs: logs of jobs. The first line of each names the thread or the source that it is from.
func TestLogs(t *testing.T) {
	answers := map[string]struct {
		used     tristate.State
		failures int
		says     []string
	}{
		"rccl-1261":           {tristate.False, 2, []string{"asked for by 8 channels, and failed: UCX", "failed: node02 rank 1: Failed: UCX error"}},
		"nccl-1842":           {tristate.False, 1, []string{"asked for by 1 channel, and failed", "ibv_reg_mr_iova2 failed with error Invalid argument"}},
		"nccl-660":            {tristate.False, 1, []string{"asked for by 2 channels, and failed", "n1 rank 0: NET/IB : Got completion with error 4"}},
		"perlmutter-ofi":      {tristate.False, 1, []string{"asked for by 2 channels, and failed: libfabric could not register memory"}},
		"memlock":             {tristate.False, 1, []string{"LockedMemoryLow", "asked for by 1 channel, and failed"}},
		"ofi-gdr-off":         {tristate.False, 2, []string{"aws-ofi-nccl has switched GPUDirect RDMA off", "failed before any channel"}},
		"sockets":             {tristate.False, 0, []string{"NCCL found no RDMA device", "go over TCP", "not used by any of 2 channels"}},
		"no-libibverbs":       {tristate.False, 0, []string{"libibverbs is missing", "NoLibibverbs"}},
		"far":                 {tristate.Unknown, 0, []string{"too far from each other", "GDR 0"}},
		"gin":                 {tristate.Unknown, 0, []string{"the job has GIN or RMA"}},
		"flush":               {tristate.True, 0, []string{"used by all channels over a network, 2"}},
		"went-on":             {tristate.True, 0, []string{"NCCL left out a NIC that it could not open (VerbsNodeMissing)", "NCCL repeated a call to the NIC"}},
		"mixed-communicators": {tristate.False, 0, []string{"the first communicator"}},
		"mixed":               {tristate.False, 0, []string{"used by 3 of 4 channels"}},
		"nixl":                {tristate.False, 2, []string{"failed before any channel", "NIXL could not register memory with UCX", "the NIC could not register memory"}},
		"torn":                {tristate.Unknown, 0, []string{"1 line that may be about channels cannot be read"}},
	}
	for _, name := range logNames(t) {
		want, ok := answers[name]
		if !ok {
			t.Errorf("no answer for %s", name)
			continue
		}
		got := read(t, logText(t, name))
		var said bytes.Buffer
		if err := got.Text(&said); err != nil {
			t.Fatal(err)
		}
		if got.Used != want.used || len(got.Failures) != want.failures {
			t.Errorf("%s: used %v, want %v; failures %+v, want %d", name, got.Used, want.used, got.Failures, want.failures)
		}
		for _, text := range want.says {
			if !strings.Contains(said.String(), text) {
				t.Errorf("%s: no %q in\n%s", name, text, &said)
			}
		}
		if strings.Contains(said.String(), "a job on one node has none") != (name == "far") {
			t.Errorf("%s: one node?\n%s", name, &said)
		}
	}
}

func logNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/logs/*.log")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".log")
	}
	return files
}

func logText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/logs/" + name + ".log")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// damages break line i of a log at a byte. They keep what a message is about, if it has begun.
var damages = map[string]func(lines []string, i, at int) string{
	"broken in two": func(lines []string, i, at int) string {
		return join(lines[:i]) + lines[i][:at] + "\n" + lines[i][at:] + "\n" + join(lines[i+1:])
	},
	"another line within": func(lines []string, i, at int) string {
		return join(lines[:i]) + lines[i][:at] + another(lines[i]) + lines[i][at:] + "\n" + join(lines[i+1:])
	},
	"the next line in the place of the rest": func(lines []string, i, at int) string {
		return join(lines[:i]) + lines[i][:at] + another(lines[i]) + join(lines[i+1:])
	},
	"the rest lost": func(lines []string, i, at int) string {
		return join(lines[:i]) + lines[i][:at] + "\n" + join(lines[i+1:])
	},
	"ends there": func(lines []string, i, at int) string { return join(lines[:i]) + lines[i][:at] },
	"too long": func(lines []string, i, at int) string {
		return join(lines[:i]) + strings.Repeat("x", 64<<10-at) + join(lines[i:])
	},
	"carriage return": func(lines []string, i, _ int) string {
		return join(lines[:i]) + strings.Repeat("= ", 40<<10) + "\r" + join(lines[i:])
	},
	"broken by \\r\\n": func(lines []string, i, at int) string {
		return join(lines[:i]) + lines[i][:at] + "\r\n" + lines[i][at:] + "\r\n" + join(lines[i+1:])
	},
}

// another is a line of another process, with the same wrapper in front.
func another(line string) string {
	const message = "n9:20:29 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [send] via NET/IB/0/GDRDMA\n"
	if before, _, ok := strings.Cut(line, "<stdout>:"); ok {
		return before + "<stdout>:" + message
	}
	return message
}

func join(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestDamaged: "used by all" is never the answer where one channel of the whole log was without
// GPUDirect RDMA, wherever the log is cut or torn. A line whose rest is lost before NCCL's mark
// is not one of NCCL's any more, and of a log that ends nobody knows what would have followed:
// these places are left out.
func TestDamaged(t *testing.T) {
	tried := 0
	for _, name := range logNames(t) {
		for _, whole := range []string{logText(t, name), wrapped(logText(t, name))} {
			whole = regexp.MustCompile(`(?m)^.*(WARN|ERROR).*\n`).ReplaceAllString(whole, "")
			lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
			for i, line := range lines {
				if over.MatchString(line) {
					places := make([]int, len(line))
					for at := range places {
						places[at] = at
					}
					checkDamages(t, name, onlyWithout(lines, i), i, testsize.FewInTurn(tried, places))
					tried++
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("%d lines about channels", tried)
	}
}

// over is over which NIC a channel goes, and how.
var over = regexp.MustCompile(`((?:via NET|via COLLNET)/[A-Za-z_ -]*/?\d+(?:\(\d+\))?)[A-Za-z()/=]*`)

// onlyWithout returns a log in which all channels have GPUDirect RDMA but that of line i.
func onlyWithout(lines []string, i int) []string {
	all := slices.Clone(lines)
	for k, line := range all {
		if all[k] = over.ReplaceAllString(line, "$1/GDRDMA"); k == i {
			all[k] = over.ReplaceAllString(line, "$1")
		}
		all[k] = strings.ReplaceAll(all[k], "/Socket/", "/IB/")
	}
	return all
}

func checkDamages(t *testing.T, name string, lines []string, i int, places []int) {
	t.Helper()
	mark := strings.Index(lines[i], "] NCCL INFO ")
	if got := read(t, join(lines)); got.Used != tristate.False || got.Direct != got.Channels-1 {
		t.Errorf("%s: line %d: used %v, %d of %d:\n%s", name, i, got.Used, got.Direct, got.Channels, join(lines))
	}
	for how, damage := range damages {
		for _, at := range places {
			loses := strings.HasPrefix(how, "the ") || how == "ends there" || how == "another line within"
			if at > len(lines[i]) || loses && at < mark+len("] NCC") {
				continue
			}
			text := damage(lines, i, at)
			if got := read(t, text); got.Used == tristate.True {
				t.Errorf("%s: line %d %s at %d: used by all:\n%.300s", name, i, how, at, text)
				return
			}
		}
	}
}

// wrapped puts what collectors put around each line of a log.
func wrapped(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		b.WriteString("2026-11-24T11:01:23.1Z stdout F [1,3]<stdout>:" + strings.TrimSuffix(line, "\n") + "\x1b[0m\n")
	}
	return b.String()
}

// TestNIXLLine: a line of NIXL's counts whatever stands in front of it, and of several messages on
// one line the worst. Errors that no row names leave the answer open. Warnings that no row names,
// and lines of others with a source file, say nothing.
func TestNIXLLine(t *testing.T) {
	const (
		head     = "1124 11:01:23.123456    1234 "
		failedAt = "E" + head + "ucx_utils.cpp:645] ctx: failed to ucp_mem_map: Input/output error"
		openAt   = "E" + head + "libfabric_rail.cpp:645] fi_writedata failed on rail 1: Error"
	)
	for line, want := range map[string]tristate.State{
		failedAt: tristate.False,
		"[pod/decode-0/worker] 2026-11-24T11:01:23Z [rank3] " + failedAt:               tristate.False,
		"I" + head + "ucx_backend.cpp:10] hello " + failedAt:                           tristate.False,
		"[rank0]:[W" + head + "ProcessGroupNCCL.cpp:1496] Warning: x " + failedAt:      tristate.False,
		"[1764000000.1] [n1:1234 :0] sock.c:309  UCX  ERROR connect failed" + failedAt: tristate.False,
		"E" + head + "libfabric_rail.h:12] Ring buffer in invalid state " + failedAt:   tristate.False,
		openAt:                    tristate.Unknown,
		"[rank0]: " + openAt:      tristate.Unknown,
		"[default0]:" + openAt:    tristate.Unknown,
		"[1,0]<stderr>:" + openAt: tristate.Unknown,
		`{"log":"` + openAt:       tristate.Unknown,
		"E" + head + "libfabric_rail.h:12] Ring buffer in invalid state": tristate.Unknown,
		"W" + head + "libfabric_rail.cpp:645] No handshake callback set": tristate.True,
		"E" + head + "model_runner.cpp:645] out of memory":               tristate.True,
		"E" + head + "my_ucx_thing.cpp:1] cannot open config":            tristate.True,
		"libfabric_rail.cpp:645] fi_writedata failed":                    tristate.True,
		"libfabric_rail.cpp:645":                                         tristate.True,
	} {
		log := "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n" + line + "\n"
		if got := read(t, log); got.Used != want {
			t.Errorf("%s: %v, want %v", line, got.Used, want)
		}
	}
}
