//go:build image

package image

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// probeVariable makes this test's own program a probe of the container that it
// runs in.
const probeVariable = "GDR_FEATURES_IMAGE_PROBE"

// namespaces are those that a Pod has of its own.
var namespaces = []string{"pid", "ipc", "uts", "mnt", "net"}

func TestMain(m *testing.M) {
	if os.Getenv(probeVariable) == "" {
		os.Exit(m.Run())
	}
	if err := json.NewEncoder(os.Stdout).Encode(probe()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// probe finds out what a process may do in the container.
func probe() map[string]string {
	found := map[string]string{"pid": fmt.Sprint(os.Getpid())}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		found["status"] = err.Error()
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
			found[key] = strings.Join(strings.Fields(value), " ")
		}
	}
	for _, dir := range []string{"/", "/sys", "/proc/sys", "/proc/bus"} {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(dir, &fs); err != nil || fs.Flags&syscall.MS_RDONLY == 0 {
			found[dir] = fmt.Sprintf("writable, error %v", err)
		}
	}
	for _, masked := range []string{"/sys/firmware", "/proc/scsi"} {
		if entries, err := os.ReadDir(masked); len(entries) > 0 {
			found[masked] = fmt.Sprintf("has %v, error %v", entries, err)
		}
	}
	for _, namespace := range namespaces {
		name, err := os.Readlink("/proc/self/ns/" + namespace)
		found[namespace] = fmt.Sprint(name, err)
	}
	found["config"] = fmt.Sprint(longestConfig())
	for _, i := range foreign() {
		found["/sys/class/net"] += i
	}
	return found
}

// longestConfig is how much can be read of any PCI function's configuration space.
func longestConfig() int {
	longest := 0
	files, _ := filepath.Glob("/sys/bus/pci/devices/*/config") // the pattern is right
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			longest = max(longest, len(text))
		}
	}
	return longest
}

// foreign returns the network interfaces that /sys shows and that are not of this
// network namespace.
func foreign() []string {
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil || len(entries) == 0 {
		return []string{fmt.Sprint("nothing, error ", err)}
	}
	var names []string
	for _, e := range entries {
		if _, err := net.InterfaceByName(e.Name()); err != nil && e.Name() != "bonding_masters" {
			names = append(names, e.Name()+" ")
		}
	}
	return names
}

// probe runs the probe in the Pod.
func (p *pod) probe(t *testing.T) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.env = []string{probeVariable + "=1"}
	p.bind(self, "/probe", "ro")
	r := p.run(t, "/probe")
	var found map[string]string
	if err := json.Unmarshal([]byte(r.Out), &found); err != nil {
		t.Fatalf("%v: %+v (is this test built with CGO_ENABLED=0?)", err, r)
	}
	return found
}

// The container that the other tests run in is as restricted as the Pod.
func TestPod(t *testing.T) {
	got := newPod(t).probe(t)
	const none = "0000000000000000"
	want := map[string]string{
		"pid": "1", "Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532", "Groups": "65532",
		"NoNewPrivs": "1", "Seccomp": "2", // 2: a filter
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		"config": "64", // not enough for ACS
	}
	host := probe()
	for _, namespace := range namespaces {
		if got[namespace] == host[namespace] {
			t.Errorf("the container is in the host's namespace %s", namespace)
		}
		want[namespace] = got[namespace]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the container (-want +got):\n%s", diff)
	}
}

// The variant acs can read ACS: user 0, one capability, and the same read-only /sys.
func TestACS(t *testing.T) {
	p := newPod(t)
	p.root, p.caps = true, []string{"CAP_SYS_ADMIN"}
	got := p.probe(t)
	if got["CapEff"] != "0000000000200000" || got["config"] != "256" && got["config"] != "4096" {
		t.Errorf("capabilities %s, %s bytes of configuration space", got["CapEff"], got["config"])
	}
}
