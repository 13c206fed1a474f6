//go:build vm

package vm

import (
	"encoding/json"
	"strings"
	"testing"

	"gdr-features/test/vm/wire"
)

// Where each RDMA device belongs to one network namespace, another one sees neither the class
// nor the directory below the function name it. infiniband_verbs does, and check --pod tells
// by that where the device is.
func TestNetworkNamespace(t *testing.T) {
	m := boot(t, aws(), "")
	m.loadNeeds("efa")
	m.do(wire.Request{Command: wire.Apart})
	m.insert("efa")
	m.load("nvidia")
	m.expectFile("/sys/module/ib_core/parameters/netns_mode", "N\n")
	m.expectFile("/sys/class/infiniband_verbs/uverbs0/ibdev", "efa_0\n")

	below := m.device("e") + "/infiniband"
	listed := m.do(wire.Request{Command: wire.Run, Own: true, Args: []string{"ls", "/sys/class/infiniband", "/sys/class/infiniband_verbs", below}})
	var rdma []string
	for name := range strings.Lines(listed.Out) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "/abi_version") {
			rdma = append(rdma, name)
		}
	}
	if got := strings.Join(rdma, " "); got != "/sys/class/infiniband_verbs/uverbs0" || listed.Err != "" {
		t.Errorf("another network namespace shows %s; %s", got, listed.Err)
	}

	for _, own := range []bool{false, true} {
		r := m.do(wire.Request{Command: wire.Run, Own: own, Args: []string{"/gdr-features", "check", "--pod", "-o", "json"}})
		var said struct {
			Findings []struct{ Check, Status, Code, Detail string }
		}
		if err := json.Unmarshal([]byte(r.Out), &said); err != nil {
			t.Fatalf("%v: %s", err, r.Err)
		}
		found := false
		for _, f := range said.Findings {
			if f.Check == "verbs-nodes" {
				found = f.Status == "FAIL" && f.Code == "RDMADeviceElsewhere" && strings.Contains(f.Detail, "efa_0")
				t.Logf("own %v: %+v", own, f)
			}
		}
		if found != own || r.Status != 2 {
			t.Errorf("own namespace %v: status %d, %s", own, r.Status, r.Out)
		}
	}
}
