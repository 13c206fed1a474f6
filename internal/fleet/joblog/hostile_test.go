package joblog_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/fleet/joblog"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

// endless repeats what line returns, n times.
type endless struct {
	n, at int
	line  func(i int) string
	rest  string
}

func (e *endless) Read(p []byte) (int, error) {
	for e.rest == "" {
		if e.at == e.n {
			return 0, io.EOF
		}
		e.rest = e.line(e.at)
		e.at++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestHostile: logs that try to fill the memory, which must stay below 64 MiB in all. The numbers of channels stay right, and one note says that the table is cut.
func TestHostile(t *testing.T) {
	const n = 200_000
	logs := map[string]func(i int) string{
		"ranks": func(i int) string {
			return fmt.Sprintf("n:1:2 [0] NCCL INFO Channel 00/0 : %d[0] -> 8[0] [send] via NET/IB/0\n", i)
		},
		"nodes": func(i int) string {
			return fmt.Sprintf("%s%d:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n", strings.Repeat("n", 200), i)
		},
		"networks": func(i int) string {
			return fmt.Sprintf("n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB%d/0\n", i)
		},
		"proxies": func(i int) string {
			return fmt.Sprintf("n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(%d)\n", i)
		},
		"lists": func(i int) string {
			return fmt.Sprintf("n:%d:2 [0] NCCL INFO NET/IB : Using [0]%s%d:1/IB\n", i, strings.Repeat("[1]m:1 ", 100), i)
		},
		"names": func(i int) string {
			return fmt.Sprintf("n:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA %d 'mlx5_%d'\n", i, i)
		},
		"processes": func(i int) string {
			return fmt.Sprintf("n:%d:2 [0] NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 busId 1b000 - Init COMPLETE\n", i)
		},
		"variables": func(i int) string { return fmt.Sprintf("n:1:2 [0] NCCL INFO NCCL_IB_HCA set to %d\n", i) },
		"warnings": func(i int) string {
			return fmt.Sprintf("%s%d:1:2 [0] ibvwrap.cc:1 NCCL WARN Call to ibv_reg_mr failed with error x%d\n", strings.Repeat("n", 200), i, i)
		},
		"unknown warnings": func(i int) string { return fmt.Sprintf("n:1:2 [0] x.cc:1 NCCL WARN x%d\n", i) },
		"long lines":       func(int) string { return strings.Repeat("NCCL INFO Channel : [send] via NET/", 30) },
		"empty":            func(int) string { return "CCL INFO " },
		"many devices": func(i int) string {
			return fmt.Sprintf("n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/%d\n", 100_000_000+i)
		},
	}
	for _, name := range testsize.Share(slices.Sorted(maps.Keys(logs))) {
		line := logs[name]
		t.Run(name, func(t *testing.T) {
			most := uint64(0)
			r, err := joblog.Read(&endless{n: n, line: line}, func(int64) {
				runtime.GC() // what is garbage does not count
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			})
			if err != nil {
				t.Fatal(err)
			}
			if most > 48<<20 {
				t.Errorf("%d MiB of memory", most>>20)
			}
			if strings.HasPrefix(line(0), "n:1:2 [0] NCCL INFO Channel") && r.Channels != n {
				t.Errorf("%d channels", r.Channels)
			}
			cut := slices.ContainsFunc(r.Notes, func(note string) bool { return strings.Contains(note, "than are remembered") })
			if want := !slices.Contains([]string{"variables", "unknown warnings", "long lines", "empty"}, name); cut != want {
				t.Errorf("cut %v, want %v: %q", cut, want, r.Notes)
			}
		})
	}
}

// TestRefused: what is no text, and a file that ends early.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{"\x1f\x8b\x08": "gzip -dc", "\x28\xb5\x2f\xfd": "zstd -dc", "\xff\xfen\x00": "UTF-16"} {
		if _, err := joblog.Read(strings.NewReader(text), func(int64) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	broken := io.MultiReader(strings.NewReader("n:1:2 [0] NCCL"), &broken{})
	if _, err := joblog.Read(broken, func(int64) {}); err == nil {
		t.Error("an error of the file is lost")
	}
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// FuzzLog: whatever a log holds, its numbers add up, and what is printed is safe for a terminal.
func FuzzLog(f *testing.F) {
	f.Add([]byte("n:1:2 [0] NCCL INFO Channel 00/0 : 0[1b000] -> 8[0] [send] via NET/AWS Libfabric/0(3)/GDRDMA(PCI)/Shared\n"))
	f.Add([]byte("n:1:2 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [2]mlx5_2:2/IB [RO]; OOB eth0:10.0.0.1<0>\n"))
	f.Add([]byte("n:1:2 [0] NCCL INFO [Rank 0] ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init START\n"))
	f.Add([]byte("n:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\nn:1:2 [0] NCCL INFO CollNet 00/0 : 0 [receive] via COLLNET/SHARP/0\n"))
	f.Add([]byte("n:1:2 [0] NCCL INFO NET/IB : Made virtual device [4] name=a+b speed=1\nn:1:2 [0] NCCL INFO NCCL_IB_HCA set to \x1b[2J\n"))
	f.Add([]byte("n:1:2 [0] misc/ibvwrap.cc:1 (f) NCCL WARN Call to ibv_reg_mr failed with error \u202e\nUCX  ERROR \x9b\r/GDRDMA\n] via NET/IB/0"))
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := joblog.Read(bytes.NewReader(log), func(int64) {})
		if err != nil {
			return
		}
		channels, direct := 0, 0
		for i := range r.Ranks {
			a := &r.Ranks[i]
			channels, direct = channels+a.Sent+a.Received, direct+a.Direct
			if a.Rank < 0 || a.Device < 0 {
				t.Errorf("%+v", a)
			}
		}
		if channels != r.Channels || direct != r.Direct || direct > channels {
			t.Errorf("%d of %d channels, said %d of %d", direct, channels, r.Direct, r.Channels)
		}
		if r.Used == tristate.True && (direct != channels || r.Unread > 0 || len(r.Failures) > 0) {
			t.Errorf("used by all, %d of %d", direct, channels)
		}
		var text, json bytes.Buffer
		if err := r.Text(&text); err != nil || strings.ContainsAny(text.String(), "\x1b\r\x00") {
			t.Errorf("%q, %v", &text, err)
		}
		if err := r.JSON(&json); err != nil || strings.ContainsAny(json.String(), "\x1b\r\x00\x7f\u009b\u202e") {
			t.Errorf("%q, %v", &json, err)
		}
	})
}

// BenchmarkRead reads a log of 64 ranks with eight NICs.
func BenchmarkRead(b *testing.B) {
	var log bytes.Buffer
	for i := range 100_000 {
		rank := i % 64
		fmt.Fprintf(&log, "[1,%d]<stdout>:h100-%d:%d:2165 [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA\n",
			rank, rank/8, 1480+rank, rank%8, i%32, rank, rank%8, (rank+8)%64, rank%8, i%8)
	}
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		if _, err := joblog.Read(bytes.NewReader(log.Bytes()), func(int64) {}); err != nil {
			b.Fatal(err)
		}
	}
}
