package joblog_test

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/fleet/joblog"
	"gdr-features/tristate"
)

// TestPrefixes: what launchers and log collectors put in front of a line, and behind it.
func TestPrefixes(t *testing.T) {
	const line = "node-7:12:40 [1] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA"
	want := []joblog.Rank{{Node: "node-7", Network: "IB", Sent: 1, Direct: 1}}
	for name, log := range map[string]string{
		"none":               line,
		"mpirun":             "[1,3]<stdout>:" + line,
		"mpirun timestamps":  "Tue Nov 24 11:01:23 2026[1,3]<stdout>:" + line,
		"mpirun 5":           "[prterun-host-123@1,3]<stdout>: " + line,
		"srun --label":       " 3: " + line,
		"torchrun --tee":     "[default3]:" + line,
		"torchrun":           "[rank3]: " + line,
		"Ray":                "\x1b[36m(RayTrainWorker pid=881, ip=10.0.0.7)\x1b[0m " + line,
		"Ray, no space":      "\x1b[36m(RayTrainWorker pid=881)\x1b[0m" + line,
		"kubectl --prefix":   "[pod/train-0-abc/main] " + line,
		"kubectl timestamps": "2026-11-24T11:01:23.123456789Z " + line,
		"CRI":                "2026-11-24T11:01:23.1Z stdout F " + line,
		"docker":             `{"log":"` + line + `\n","stream":"stdout"}`,
		"NCCL timestamps":    "[2026-11-24 11:01:23] " + line, // NCCL_DEBUG_TIMESTAMP_LEVELS
		"carriage return":    "12%|###  \r" + line + "\r",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, read(t, log+"\n").Ranks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	escaped := `{"log":"` + strings.NewReplacer(">", `\u003e`, "send", "receive").Replace(line) + `\n"}` // Docker's json-file
	if got := read(t, escaped).Ranks; len(got) != 1 || got[0].Rank != 8 || got[0].Received != 1 {
		t.Errorf("Docker: %+v", got)
	}
	torn := line + " " + strings.Replace(line, "node-7", "node-8", 1)
	if got := read(t, torn); got.Channels != 2 || len(got.Ranks) != 2 {
		t.Errorf("two messages on a line: %+v", got)
	}
	repeated := line + "\x1b[32m [repeated 7x across cluster]\x1b[0m"
	if got := read(t, repeated); len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "RAY_DEDUP_LOGS=0") {
		t.Errorf("Ray: %q", got.Notes)
	}
}

// wrappers are what launchers, collectors and viewers make of a line.
var wrappers = map[string]string{
	"none": "%s", "kubectl --prefix": "[pod/train-0-abc/main] %s", "kubectl --timestamps": "2026-11-24T11:01:23.123456789Z %s",
	"kubectl both": "[pod/train-0-abc/main] 2026-11-24T11:01:23.123456789Z %s", "stern": "train-0-abc main %s", "stern, colours": "\x1b[36mtrain-0\x1b[0m \x1b[32mmain\x1b[0m %s",
	"CRI": "2026-11-24T11:01:23.1Z stdout F %s", "Docker": `{"log":"%s\n","stream":"stdout","time":"2026-11-24T11:01:23.1Z"}`,
	"Docker Compose": "trainer-1  | %s", "srun -l": " 3: %s", "srun -l, 1000 tasks": "0003: %s", "pdsh": "gpu17: %s", "clush": "gpu[17]: %s",
	"mpirun 4": "[1,3]<stdout>:%s", "mpirun 4, stderr": "[1,3]<stderr>:%s", "mpirun 4, time": "Tue Nov 24 11:01:23 2026[1,3]<stdout>:%s",
	"mpirun 5": "[prterun-host-123@1,3]<stdout>: %s", "MPICH -l": "[3] %s", "Hydra": "[mpiexec@n1] %s", "torchrun": "[rank3]: %s", "torchrun --tee": "[default3]:%s",
	"DeepSpeed": "gpu17: gpu17: %s", "Ray": "\x1b[36m(RayTrainWorker pid=881, ip=10.0.0.7)\x1b[0m %s", "vLLM": "(EngineCore_DP0 pid=1234) %s",
	"vLLM, worker": "\x1b[1;36m(Worker_TP3 pid=1301)\x1b[0;0m %s", "SGLang": "[2026-11-24 11:01:23 TP3] %s", "Loki": `2026-11-24T11:01:23Z {pod="train-0"} %s`,
	"logcli -o jsonl": `{"labels":{"pod":"train-0"},"line":"%s","timestamp":"2026-11-24T11:01:23Z"}`, "Fluent Bit": `train.0: [1764000000.1, {"log"=>"%s"}]`,
	"Fluentd": `2026-11-24 11:01:23 +0000 kube.train: {"log":"%s\n"}`, "GCP": `{"insertId":"a1","textPayload":"%s\n","severity":"INFO"}`,
	"Elastic": `{"_source":{"message":"%s","host":{"name":"gpu17"}}}`, "CloudWatch": `{"events":[{"timestamp":1764000000123,"message":"%s"}]}`,
	"CloudWatch tail": "2026-11-24T11:01:23 train/main/0a1b %s", "journald": "Nov 24 11:01:23 gpu17 train.sh[881]: %s", "journalctl -o json": `{"MESSAGE":"%s","_PID":"881"}`,
	"rsyslog": "Nov 24 11:01:23 gpu17 train[881]: %s#012", "klog": "I1124 11:01:23.123456     881 main.go:12] %s", "HTML": "<span class=\"line\">%s</span><br>",
	"CSV": `2026-11-24,gpu17,"%s"`, "CSV, not quoted": "2026-11-24,gpu17,%s,INFO", "CR LF": "%s\r", "colours": "\x1b[32m%s\x1b[0m", "GitLab": "2026-11-24T11:01:23Z 00O %s",
	"NCCL's time": "[2026-11-24 11:01:23] %s", "Slurm's output with a mark": "> %s", "Markdown": "| `%s` |", "indented": "\t    %s   ",
}

// TestWrappers: what they make of a line is read, with GPUDirect RDMA and without.
func TestWrappers(t *testing.T) {
	if len(wrappers) < 41 {
		t.Errorf("%d wrappers", len(wrappers))
	}
	const line = "node-7:12:40 [1] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0"
	for name, wrapper := range wrappers {
		for end, want := range map[string]int{"": 0, "/GDRDMA": 1, "/GDRDMA(PCI)/Shared": 1, "/Shared": 0} {
			text := line + end
			switch {
			case name == "HTML":
				text = html.EscapeString(text)
			case strings.HasPrefix(name, "Docker") && strings.Contains(wrapper, "{"):
				text = strings.ReplaceAll(text, ">", `\u003e`)
			}
			got := read(t, strings.Repeat(fmt.Sprintf(wrapper, text)+"\n", 2))
			if len(got.Ranks) != 1 || got.Ranks[0].Node != "node-7" || got.Channels != 2 || got.Direct != 2*want || got.Used != tristate.Of(want > 0) || len(got.Notes) > 0 {
				t.Errorf("%s, %q: %+v", name, end, got)
			}
		}
	}
	const short = "host:488214 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
	if got := read(t, short); len(got.Ranks) != 1 || got.Ranks[0].Node != "host" {
		t.Errorf("without a thread: %+v", got)
	}
	for _, arrow := range []string{"-&gt;", "-&#62;", `-\u003e`} {
		got := read(t, "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] "+arrow+" 8[0] [receive] via NET/IB/0/GDRDMA\n")
		if len(got.Ranks) != 1 || got.Ranks[0].Rank != 8 {
			t.Errorf("%s: %+v", arrow, got.Ranks)
		}
	}
}

// lines makes a log of messages of one process.
func lines(messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "n1:12:40 [0] NCCL INFO %s\n", m)
	}
	return b.String()
}

// TestNames: the NIC of a channel by the lines that name NICs.
func TestNames(t *testing.T) {
	const channel = "Channel 00/0 : 0[0] -> 8[0] [send] via NET/"
	for _, c := range []struct{ said, channel, want string }{
		{"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", "IB/1", "mlx5_1"},
		{"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_0:2/IB ; OOB eth0:10.0.0.1<0>", "IB/1/GDRDMA", "mlx5_0:2"},
		{"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1:3:2/IB [RO]; OOB eth0:10.0.0.1<0>", "IBext_v8/1", "mlx5_1"}, // 2.30: rail and plane
		{"NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [2]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.1<0>", "IB/0", "mlx5_0+mlx5_1"},
		{"NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [2]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.1<0>", "IB/1", "mlx5_2"},
		{"NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=800000 ndevs=2", "IB/4", "mlx5_0+mlx5_1"},
		{"NET/AWS Libfabric : GPU Direct RDMA Enabled for HCA 2 'rdmap79s0'", "AWS Libfabric/2", "rdmap79s0"},
		{"NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_3' (no module)", "IB/0", "mlx5_3"},
		{"NET/Socket : Using [0]eth0:10.0.0.1<0> [1]ib0:fe80::1%ib0<0>", "Socket/1", "ib0"},
		{"NET/Socket: Using 1 threads and 1 sockets per thread", "Socket/0", ""},
		{"NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "IB/7", ""},
		{"NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "Socket/0", ""},
	} {
		got := read(t, lines(c.said, channel+c.channel))
		if len(got.Ranks) != 1 || got.Ranks[0].NIC != c.want {
			t.Errorf("%s, %s: %+v, want %q", c.said, c.channel, got.Ranks, c.want)
		}
	}
	other := strings.Replace(lines("NET/IB : Using [0]mlx5_9:1/IB [RO]; OOB eth0:10.0.0.1<0>"), ":12:", ":13:", 1)
	got := read(t, lines("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", channel+"IB/0")+other)
	if got.Ranks[0].NIC != "mlx5_0" {
		t.Errorf("two processes with NICs of their own: %+v", got.Ranks)
	}
}

// TestMembers: GPU and rank by what a process says when it joins a communicator.
func TestMembers(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		rank int
		gpu  string
	}{
		"2.4":  {lines("comm 0x7f3f rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE", "Ring 00 : 0 -> 1 [send] via NET/IB/0"), 0, ""},
		"2.8":  {lines("comm 0x7f3f rank 3 nranks 8 cudaDev 0 busId 40 - Init COMPLETE", "Channel 00 : 3[40] -> 4[50] [send] via NET/IB/0"), 3, "0000:00:04.0"},
		"2.30": {lines("[Rank 3] ncclCommInitRank comm 0x7f rank 3 nranks 8 cudaDev 0 nvmlDev 3 busId 1b000 commId 0x1 - Init START", "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0"), 3, "0000:1b:00.0"},
		"in two communicators": {lines("ncclCommInitRank comm 0x7f rank 9 nranks 16 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init START",
			"ncclCommSplit comm 0x8f rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent 0x7f splitCount 1 color 0 key 0 - Init START",
			"Channel 00/0 : 9[0] -> 1[0] [send] via NET/IB/0", "Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/0"), 9, "0000:1b:00.0"},
	} {
		got := read(t, c.log)
		if len(got.Ranks) != 1 || got.Ranks[0].Rank != c.rank || got.Ranks[0].GPU != c.gpu {
			t.Errorf("%s: %+v", name, got.Ranks)
		}
	}
	twins := lines("comm 0x1 rank 0 nranks 4 cudaDev 0 busId 1b000 - Init COMPLETE", "comm 0x1 rank 2 nranks 4 cudaDev 0 busId 29000 - Init COMPLETE",
		"Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/0", "Channel 00/0 : 2[0] -> 0[0] [send] via NET/IB/0")
	if got := read(t, twins); len(got.Ranks) != 2 || got.Ranks[0].GPU != "" {
		t.Errorf("two containers with one host name: %+v", got.Ranks)
	}
}

// TestUsed: the answer, and what stands out.
func TestUsed(t *testing.T) {
	const direct, staged = "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0"
	for name, c := range map[string]struct {
		log  string
		used tristate.State
		note string
	}{
		"all":      {lines(direct, direct), tristate.True, ""},
		"some":     {lines(direct, staged), tristate.False, ""},
		"none":     {lines(staged), tristate.False, ""},
		"empty":    {"", tristate.Unknown, "NCCL_DEBUG=INFO"},
		"no net":   {lines("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"), tristate.Unknown, "no line names a channel"},
		"NVLink":   {lines("Channel 00/0 : 0[0] -> 4[0] via P2P/MNNVL"), tristate.Unknown, "NVLink"},
		"socket":   {lines("Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0/GDRDMA"), tristate.False, "TCP copies through host memory"},
		"one node": {lines("comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1b000 - Init COMPLETE", direct), tristate.Unknown, "all ranks are on one node"},
		"no IB":    {lines("NET/IB : No device found.", "Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0"), tristate.False, "NCCL found no RDMA device that it may use (RDMADeviceElsewhere) (n1)"},
		"variable": {lines("NCCL_IB_DISABLE set by environment to 1.", "Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0"), tristate.False, "NCCL_IB_DISABLE set by environment to 1 (n1)"},
		"far":      {lines("GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 8 > 5)", staged), tristate.False, "NCCL_NET_GDR_LEVEL"},
		"module":   {lines("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", staged), tristate.False, "cannot register GPU memory"},
		"RCCL":     {lines("GDRDMA not enabled. Could not find memory_peers directory or peer_memory symbol", staged), tristate.False, "RCCL found no peer memory interface"},
		"not used": {lines("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", direct), tristate.True, ""},
		"damaged":  {lines(direct, "Channel 00/0 : x[0] -> 8[0] [send] via NET/IB/0/GDRDMA"), tristate.Unknown, "1 line that may be about channels cannot be read"},
	} {
		got := read(t, c.log)
		if got.Used != c.used {
			t.Errorf("%s: used %v, want %v", name, got.Used, c.used)
		}
		if all := strings.Join(got.Notes, "\n"); !strings.Contains(all, c.note) || c.note == "" && all != "" {
			t.Errorf("%s: notes %q, want %q", name, got.Notes, c.note)
		}
	}
}
