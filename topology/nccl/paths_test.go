package nccl

import (
	"math/rand/v2"
	"testing"
)

// grown returns a system as a tree of switches below CPUs, with GPUs and NICs: as wide and odd as a
// topology file can make it. rare makes what occurs at all occur once in that many times.
func grown(r *rand.Rand, rare int) *system {
	s := &system{}
	odd := func() bool { return r.IntN(rare) == 0 }
	bws := [...]float32{12, 24, 24, 24, 48}
	bw := func() float32 { return bws[r.IntN(len(bws))] }
	for i := range 1 + r.IntN(3) {
		cpu := s.createNode(cpuNode, int64(i))
		cpu.cpuBw, cpu.unknown = bw(), odd()
	}
	above := append([]*node{}, s.nodes[cpuNode]...)
	for i := range r.IntN(12) {
		n := s.createNode(switchNode, int64(i))
		s.connectNodes(n, above[r.IntN(len(above))], linkPCI, bw())
		above = append(above, n)
	}
	for i := range 1 + r.IntN(4) {
		gpu := s.createNode(gpuNode, int64(i))
		s.connectNodes(gpu, above[r.IntN(len(above))], linkPCI, bw())
		if odd() {
			s.connectNodes(gpu, s.nodes[cpuNode][r.IntN(len(s.nodes[cpuNode]))], linkC2C, c2cBw)
		}
	}
	for i := range r.IntN(12) {
		n := s.createNode(nicNode, int64(i))
		s.connectNodes(n, above[r.IntN(len(above))], linkPCI, bw())
		for range r.IntN(3) {
			dev := int64(len(s.nodes[netNode]))
			if odd() {
				dev = 0
			}
			s.connectNodes(n, s.createNode(netNode, dev), linkNet, bw())
		}
	}
	if switches := s.nodes[switchNode]; odd() && len(switches) > 1 {
		s.connect(switches[0], switches[len(switches)-1], linkLoc, locBw)
		s.oneWay = true
	}
	s.connectCPUs()
	s.number()
	return s
}

// TestPathsToNets: that NICs and empty switches are left out, and like NICs have their paths found
// once, changes no path: not its type, its bandwidth or its hops, and not why NCCL ends.
func TestPathsToNets(t *testing.T) {
	compared, together, failed := 0, 0, 0
	for seed := range uint64(20000) {
		rare := 2 + int(seed%30)
		s := grown(rand.New(rand.NewPCG(seed, 1)), rare)
		all := grown(rand.New(rand.NewPCG(seed, 1)), rare)
		got, want := s.toNets(), all.toAll(netNode)
		if why := all.failed; (why == nil) != (s.failed == nil) || why != nil && why.Error() != s.failed.Error() {
			t.Fatalf("seed %d: NCCL ends with %v, want %v", seed, s.failed, why)
		}
		for id, to := range want {
			for i, gpu := range all.nodes[gpuNode] {
				if got[id] == nil || got[id][i] != to.of(gpu) {
					t.Fatalf("seed %d: GPU %d to net %d: %v, want %v", seed, i, id, got[id], to.of(gpu))
				}
				compared++
			}
		}
		if s.failed != nil {
			failed++
		}
		if len(s.nodes[netNode]) > len(want) {
			together++
		}
	}
	if compared < 100000 || together < 1000 || failed < 100 {
		t.Errorf("compared %d paths, on %d systems with nets of one id, and %d where NCCL ends", compared, together, failed)
	}
}
