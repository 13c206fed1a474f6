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

// fleetTime is what looking at a fleet may take, from a server that has the answers ready. Alone on two
// cores it takes about one second: the rest is for other tests.
const fleetTime = 10 * time.Second

// hostileMemory is the most memory in MiB that any answer of a server may cost.
const hostileMemory = 200

// padding is what objects have that is not read, as their managed fields.
var padding = `"managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {` + strings.Repeat(`"f:conditions": {".": {}}, `, 100) + `"f:x": {}}}}]`

// fleetPages has the pages of lists ready, by path and continue token.
func fleetPages() map[string]string {
	const size = 500
	pages := map[string]string{"/apis/apps/v1/namespaces/gdr-features/daemonsets ": `{"items": [{"status": {"numberReady": 4999, "desiredNumberScheduled": 5000}}]}`}
	for path, object := range map[string]func(int) string{
		"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/gdr-features/nodefeatures": fleetObject,
		"/api/v1/namespaces/gdr-features/pods": func(i int) string {
			return fmt.Sprintf(`{"metadata": {"name": "gdr-features-%05d", %s}, "spec": {"nodeName": "node-%04d"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, i, padding, i)
		},
		"/api/v1/nodes": func(i int) string {
			return fmt.Sprintf(`{"metadata": {"name": "node-%04d", %s, "labels": {%s}}}`, i, padding, fleetLabels)
		},
	} {
		for from := 0; from < fleetNodes; from += size {
			var items []string
			for i := range size {
				items = append(items, object(from+i))
			}
			token, next := strconv.Itoa(from), strconv.Itoa(from+size)
			if from == 0 {
				token = ""
			}
			if from+size >= fleetNodes {
				next = ""
			}
			pages[path+" "+token] = fmt.Sprintf(`{"apiVersion": "v1", "kind": "List", "metadata": {"continue": %q}, "items": [%s]}`, next, strings.Join(items, ","))
		}
	}
	return pages
}

func fleetServer(tb testing.TB) *httptest.Server {
	tb.Helper()
	pages := fleetPages()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		page := pages[r.URL.Path+" "+r.URL.Query().Get("continue")]
		if page == "" {
			tb.Errorf("asked for %s", r.URL)
		}
		_, _ = io.WriteString(w, page) // the client may go away
	}))
	tb.Cleanup(server.Close)
	return server
}

// measured runs the program in a process of its own, and returns what that took.
func measured(tb testing.TB, program, kubeconfig, args string, status int) (took time.Duration, memory int64, out, errs string) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), program, append(strings.Fields(args), "--kubeconfig", kubeconfig)...)
	var text, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &problems
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
			if running = false; cmd.ProcessState.ExitCode() != status {
				tb.Fatalf("%v: %s", err, problems.String())
			}
		case <-time.After(2 * time.Millisecond):
			memory = max(memory, resident(cmd.Process.Pid))
		}
	}
	return time.Since(began), memory, text.String(), problems.String()
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

func buildFleet(tb testing.TB) (program string) {
	tb.Helper()
	program = filepath.Join(tb.TempDir(), "kubectl-gdr")
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestFleet: 5,000 nodes are shown, compared, or one of them found, within fleetTime and the memory of the case.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	program, kubeconfig := buildFleet(t), config(t, fleetServer(t).URL)
	for _, test := range []struct {
		args   string
		status int
		most   int64 // MiB
		want   string
	}{
		{"", 0, 53, "\n5000 nodes, 5000 ready\n"},
		{"-o json", 0, 64, "\"nodes\": 5000,"},
		{"diff", 2, 100, "\n5000 nodes of 3 kinds: 4950 alike, 50 differ\n"},
		{"history node-4999", 0, 32, "gdr.rate   400   100\n"},
	} {
		took, memory, out, errs := measured(t, program, kubeconfig, test.args, test.status)
		t.Logf("kubectl gdr %s: %d nodes in %v, %d MiB", test.args, fleetNodes, took.Round(10*time.Millisecond), memory>>20)
		if took > fleetTime || memory>>20 > test.most {
			t.Errorf("%s: %d nodes took %v and %d MiB", test.args, fleetNodes, took, memory>>20)
		}
		if !strings.Contains(out, test.want) || errs != "" {
			t.Errorf("%s: no %q in\n%.2000s\n%s", test.args, test.want, out, errs)
		}
		if chain := "chain: 4999 of 5000 agents ready, no Node differs\n"; test.args == "" && !strings.HasPrefix(out, chain) {
			t.Errorf("no %q in\n%.2000s", chain, out)
		}
	}
}

// TestHostileServer: whatever a server or a proxy answers takes bounded memory and time.
func TestHostileServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const list = `{"metadata": {}, "items": [`
	const nics = `"gdr.nic": {"elements": [`
	nic := `{"attributes": {"address": "0000:00:00.0", "rail": "0", "name": "` + strings.Repeat("x", 300) + `"}},`
	large := strings.Replace(fleetObject(7), nics, nics+strings.Repeat(nic, 3800), 1) // 1.4 MB
	endless := func(begin, text string) http.HandlerFunc {
		text = strings.Repeat(text, 1+1<<16/len(text))
		return func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, begin)
			for err == nil {
				_, err = io.WriteString(w, text)
			}
		}
	}
	pages, longName := 0, strings.Repeat("x", 3<<20)
	program := buildFleet(t)
	for _, test := range []struct {
		name, args string
		serve      http.HandlerFunc
		status     int
		want       string
	}{
		{"an endless text", "", endless(`{"metadata": {"continue": "`, "x"), 1, "an object has more than 4 MiB"},
		{"an endless object", "", endless(list+`{"metadata": {"labels": {`, `"a": "b", `), 1, "an object has more than 4 MiB"},
		{"endless space", "", endless(list, " "), 1, "an object has more than 4 MiB"},
		{"endless objects", "", endless(list+"{}", ",{}"), 1, "there are more than 200000 NodeFeatures"},
		{"an endless error", "", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless("", "x")(w, r)
		}, 1, "temporary error"},
		{"continue tokens without end", "", func(w http.ResponseWriter, _ *http.Request) {
			pages++
			fmt.Fprintf(w, `{"metadata": {"continue": "%d"}, "items": []}`, pages)
		}, 1, "has more than 10000 parts"},
		{"large continue tokens", "", func(w http.ResponseWriter, _ *http.Request) {
			pages++
			fmt.Fprintf(w, `{"metadata": {"continue": "%s%d"}, "items": []}`, longName, pages)
		}, 1, "has a continue token of more than 16 KiB"},
		{"80 names of 3 MB", "", func(w http.ResponseWriter, r *http.Request) {
			form := `,{"metadata": {"name": "%s%d"}}`
			switch {
			case strings.HasSuffix(r.URL.Path, "/nodefeatures"):
				_, _ = io.WriteString(w, list+fleetObject(7)+"]}")
				return
			case strings.HasSuffix(r.URL.Path, "/pods"):
				form = `,{"spec": {"nodeName": "%s%d"}}`
			}
			_, _ = io.WriteString(w, list+"{}")
			for i := range 80 {
				fmt.Fprintf(w, form, longName, i)
			}
			_, _ = io.WriteString(w, "]}")
		}, 0, "\n1 node, 1 ready"},
		{"1,000 objects of 1.4 MB", "diff", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, list+large)
			for range 999 {
				_, _ = io.WriteString(w, ","+large)
			}
			_, _ = io.WriteString(w, "]}")
		}, 0, "1000 nodes of 1 kind: 1000 alike, 0 differ"},
	} {
		server := httptest.NewServer(test.serve)
		took, memory, out, errs := measured(t, program, config(t, server.URL), test.args, test.status)
		server.CloseClientConnections()
		server.Close()
		t.Logf("%s: %v, %d MiB", test.name, took.Round(10*time.Millisecond), memory>>20)
		if !strings.Contains(out+errs, test.want) || memory>>20 > hostileMemory {
			t.Errorf("%s: %d MiB, no %q in %.300s %.300s", test.name, memory>>20, test.want, out, errs)
		}
	}
}

// BenchmarkFleet measures comparing the fleet.
func BenchmarkFleet(b *testing.B) {
	program, kubeconfig := buildFleet(b), config(b, fleetServer(b).URL)
	most := int64(0)
	for b.Loop() {
		_, memory, _, _ := measured(b, program, kubeconfig, "diff", 2)
		most = max(most, memory)
	}
	b.ReportMetric(float64(most>>20), "MiB")
}
