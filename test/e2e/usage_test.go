package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// usage is what a process uses.
type usage struct {
	resident             int // KiB
	descriptors, threads int
}

// most is the limit of the resident memory of the agent, in KiB.
const most = 30 << 10

// uses reads the usage of a process.
func (p *process) uses(t *testing.T) usage {
	t.Helper()
	var u usage
	dir := fmt.Sprintf("/proc/%d/", p.pid)
	open, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	u.descriptors = len(open)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		for name, to := range map[string]*int{"VmRSS:": &u.resident, "Threads:": &u.threads} {
			if text, ok := strings.CutPrefix(line, name); ok {
				if _, err := fmt.Sscan(text, to); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return u
}

// grew fails the test where the process uses more than before, or too much.
func (p *process) grew(t *testing.T, before usage) {
	t.Helper()
	now := p.uses(t)
	for range 20 { // a file may just be open for reading
		if now.descriptors <= before.descriptors {
			break
		}
		time.Sleep(100 * time.Millisecond)
		now.descriptors = min(now.descriptors, p.uses(t).descriptors)
	}
	t.Logf("%d KiB resident (%+d), %d descriptors (%+d), %d threads (%+d)", now.resident, now.resident-before.resident,
		now.descriptors, now.descriptors-before.descriptors, now.threads, now.threads-before.threads)
	const breath = 8 << 10 // a garbage collection more or less
	if now.resident > before.resident+breath || now.resident > most {
		t.Errorf("%d KiB resident, before %d", now.resident, before.resident)
	}
	if now.descriptors > before.descriptors+1 { // a connection may have been lost just before
		t.Errorf("%d descriptors, before %d", now.descriptors, before.descriptors)
	}
	if now.threads > before.threads+8 {
		t.Errorf("%d threads, before %d", now.threads, before.threads)
	}
}
