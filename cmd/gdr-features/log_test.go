package main

import (
	"bytes"
	"strings"
	"testing"
)

// shortLog is the log of a job: what runOn puts in.
const shortLog = "h100-1:12:40 [0] NCCL INFO Channel 00/0 : 0[1b000] -> 8[1b000] [send] via NET/IB/0\n"

// TestLogOfPods: the logs of a job's Pods, as kubectl logs --prefix prints them.
func TestLogOfPods(t *testing.T) {
	const log = "[pod/train-0-abcde/main] train-0:12:40 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n" +
		"[pod/train-1-fghij/main] Hello\n" +
		"[pod/train-1-fghij/main] train-1:12:40 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [receive] via NET/IB/0/GDRDMA\n"
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"log"}, streams{in: strings.NewReader(log), out: &out, err: &errs, now: frozen})
	const last = "GPUDirect RDMA: used by all channels over a network, 2\n"
	said := out.String()
	if status != 0 || errs.Len() > 0 || !strings.HasSuffix(said, last) || !strings.Contains(said, "\ntrain-0   0 ") || !strings.Contains(said, "\ntrain-1   8 ") {
		t.Errorf("status %d, %s\n%s", status, &errs, said)
	}
}
