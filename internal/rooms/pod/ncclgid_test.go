package pod

import (
	_ "embed"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"gdr-features/internal/rooms/frameworks"
	"gdr-features/source/rdma"
)

//go:embed testdata/nccl-gids.txt
var ncclGIDs string

// TestChosenGID: the entry is the one that NCCL's own code chose.
func TestChosenGID(t *testing.T) {
	lines := 0
	for line := range strings.Lines(ncclGIDs) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		words := strings.Fields(strings.ReplaceAll(line, "|", ""))
		want, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatal(err)
		}
		variables := map[string]string{}
		for i, name := range []string{"NCCL_IB_ADDR_FAMILY", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_ADDR_RANGE"} {
			variables[name] = strings.TrimPrefix(words[1+i], "-")
		}
		var gids []rdma.GID
		for i, word := range words[4:] {
			if version, address, ok := strings.Cut(word, ","); ok {
				gids = append(gids, rdma.GID{Index: i, Address: netip.MustParseAddr(address), Type: map[string]string{"v1": "IB/RoCE v1", "v2": rdma.RoCEv2}[version]})
			}
		}
		if got := chosenGID(gids, frameworks.NewGIDWish("NCCL", variables)); got != want {
			t.Errorf("%d, want %s", got, line)
		}
	}
	if lines < 300 {
		t.Errorf("%d lines", lines)
	}
}
