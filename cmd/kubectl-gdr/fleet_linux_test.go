package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fleetNodes is how many nodes the fleet has, of three kinds.
const fleetNodes = 5000

// What comparing a fleet may take, from a server that has the answers ready.
const (
	fleetTime   = 10 * time.Second
	fleetMemory = 200 << 20
)

// fleetServer has the pages of the list ready.
func fleetServer(tb testing.TB) *httptest.Server {
	tb.Helper()
	const size = 500
	pages := map[string]string{}
	for from := 0; from < fleetNodes; from += size {
		var items []string
		for i := range size {
			items = append(items, fleetObject(from+i))
		}
		token, next := strconv.Itoa(from), strconv.Itoa(from+size)
		if from == 0 {
			token = ""
		}
		if from+size >= fleetNodes {
			next = ""
		}
		pages[token] = fmt.Sprintf(`{"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureList", "metadata": {"continue": %q}, "items": [%s]}`, next, strings.Join(items, ","))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("continue")]) // the client may go away
	}))
	tb.Cleanup(server.Close)
	return server
}

// fleetDiff compares the fleet in a process of its own, and returns what that took.
func fleetDiff(tb testing.TB, program, kubeconfig string) (took time.Duration, memory int64, out string) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), program, "--kubeconfig", kubeconfig, "diff")
	var text, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &errs
	cmd.Env = append(os.Environ(), "GOGC=100") // the garbage collector's default, whatever the tests run with
	began := time.Now()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err := <-ended:
			if running = false; cmd.ProcessState.ExitCode() != 2 {
				tb.Fatalf("%v: %s", err, errs.String())
			}
		case <-time.After(2 * time.Millisecond):
			memory = max(memory, resident(cmd.Process.Pid))
		}
	}
	return time.Since(began), memory, text.String()
}

// resident is the most memory in bytes that a process has had, 0 once it has ended. What the
// kernel says of an ended process (ru_maxrss) counts the memory of the one that started it,
// here the server (fs/exec.c, exec_mmap).
func resident(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	_, peak, _ := strings.Cut(string(status), "\nVmHWM:")
	var kilobytes int64
	_, _ = fmt.Sscan(peak, &kilobytes)
	return kilobytes << 10
}

func buildFleet(tb testing.TB) (program, kubeconfig string) {
	tb.Helper()
	program = filepath.Join(tb.TempDir(), "kubectl-gdr")
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return program, config(tb, fleetServer(tb).URL)
}

// TestFleet: 5,000 nodes are compared in less than 10 s and 200 MB.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	program, kubeconfig := buildFleet(t)
	took, memory, out := fleetDiff(t, program, kubeconfig)
	t.Logf("%d nodes in %v, %d MiB", fleetNodes, took, memory>>20)
	if took > fleetTime || memory > fleetMemory {
		t.Errorf("%d nodes took %v and %d MiB", fleetNodes, took, memory>>20)
	}
	if want := "\n5000 nodes of 3 kinds: 4950 alike, 50 differ\n"; !strings.HasSuffix(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// BenchmarkFleet measures the same.
func BenchmarkFleet(b *testing.B) {
	program, kubeconfig := buildFleet(b)
	most := int64(0)
	for b.Loop() {
		_, memory, _ := fleetDiff(b, program, kubeconfig)
		most = max(most, memory)
	}
	b.ReportMetric(float64(most>>20), "MiB")
}
