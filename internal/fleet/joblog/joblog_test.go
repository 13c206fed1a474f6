package joblog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/fleet/joblog"
	"gdr-features/tristate"
)

// read reads a log.
func read(t *testing.T, log string) joblog.Result {
	t.Helper()
	r, err := joblog.Read(strings.NewReader(log), func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return *r
}

// TestFormats: a line of every format, made by the print statements of NCCL (src/transport/net.cc
// and coll_net.cc, of the release that is named) and RCCL.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		release, message string
		want             joblog.Rank
	}{
		{"v2.4.8-1", "Ring 00 : 0 -> 1 [send] via NET/IB/0/GDRDMA", joblog.Rank{Rank: 0, Network: "IB", Sent: 1, Direct: 1}},
		{"v2.4.8-1", "Ring 00 : 0 -> 1 [receive] via NET/Socket/2", joblog.Rank{Rank: 1, Network: "Socket", Device: 2, Received: 1}},
		{"v2.6.4-1", "Ring 01 : 0[160] -> 1[1e0] [send] via NET/AWS Libfabric/0", joblog.Rank{Rank: 0, GPU: "0000:00:16.0", Network: "AWS Libfabric", Sent: 1}},
		{"v2.6.4-1", "Coll 00 : 3 [send] via COLLNET/SHARP/1/GDRDMA", joblog.Rank{Rank: 3, Network: "COLLNET/SHARP", Device: 1, Sent: 1, Direct: 1}},
		{"v2.7.8-1", "Channel 00 : 3[b1000] -> 4[18000] [send] via NET/Socket/0", joblog.Rank{Rank: 3, GPU: "0000:b1:00.0", Network: "Socket", Sent: 1}},
		{"v2.8.4-1", "Channel 03 : 7[a01d0] -> 14[a01c0] [receive] via NET/AWS Libfabric/3/GDRDMA/Shared", joblog.Rank{Rank: 14, GPU: "0000:a0:1c.0", Network: "AWS Libfabric", Device: 3, Received: 1, Direct: 1}},
		{"v2.9.9-1", "CollNet 00 : 0 [receive] via COLLNET/SHARP/0", joblog.Rank{Network: "COLLNET/SHARP", Received: 1}},
		{"v2.12.12-1", "Channel 00/0 : 15[10ca000] -> 0[100000] [send] via NET/IB/0(8)/GDRDMA", joblog.Rank{Rank: 15, GPU: "0010:ca:00.0", Network: "IB", Sent: 1, Direct: 1, Through: []int{8}}},
		{"v2.18.1-1", "Channel 01/1 : 15[ca000] -> 0[1b000] [receive] via NET/IB/0/GDRDMA/Shared", joblog.Rank{Rank: 0, GPU: "0000:1b:00.0", Network: "IB", Received: 1, Direct: 1}},
		{"v2.18.3-1", "Channel 00/0 : 36[4] -> 20[10] [receive] via NET/IBext_v8/3", joblog.Rank{Rank: 20, Network: "IBext_v8", Device: 3, Received: 1}},
		{"v2.30.7-1", "Channel 00/0 : 13[5] -> 4[4] [send] via NET/IB/5(12)/GDRDMA(PCI)/Shared", joblog.Rank{Rank: 13, Network: "IB", Device: 5, Sent: 1, Direct: 1, Through: []int{12}}},
		{"v2.30.7-1", "CollNet 00/1 : 3 [send] via COLLNET/SHARP/0/GDRDMA(PCI)", joblog.Rank{Rank: 3, Network: "COLLNET/SHARP", Sent: 1, Direct: 1}},
		{"rocm-5.2.0", "Channel 00 : 7[c9000] -> 8[c000] [send] via NET/IB/0/GDRDMA comm 0x7f1ff8000ea0 nRanks 16", joblog.Rank{Rank: 7, GPU: "0000:c9:00.0", Network: "IB", Sent: 1, Direct: 1}},
		{"rocm-6.2.0", "Channel 04/0 : 13[d000] -> 4[c000] [send] via NET/IBext_v8/5(12)/GDRDMA/Shared comm 0x55d3f0 nRanks 16", joblog.Rank{Rank: 13, GPU: "0000:0d:00.0", Network: "IBext_v8", Device: 5, Sent: 1, Direct: 1, Through: []int{12}}},
	} {
		t.Run(c.release+" "+c.message, func(t *testing.T) {
			c.want.Node = "tesla-105"
			got := read(t, "tesla-105:1481:2165 [3] NCCL INFO "+c.message+"\n")
			if diff := cmp.Diff([]joblog.Rank{c.want}, got.Ranks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Used != tristate.Of(c.want.Direct > 0) || got.Channels != 1 {
				t.Errorf("used %v, %d channels", got.Used, got.Channels)
			}
		})
	}
}
