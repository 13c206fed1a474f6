package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdr-features/test/machine"
)

// TestMetricsPairs: the agent serves a metric for each pair only with the flag.
func TestMetricsPairs(t *testing.T) {
	dir := t.TempDir()
	if err := machine.LayOut("../../testdata/machines/vllm-1gpu-dualport-node.txt", "ready", filepath.Join(dir, "host")); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]int{"--metrics-pairs=false": 0, "--metrics-pairs": 2} {
		text := metrics(t, "run", "--root", filepath.Join(dir, "host"), "--publish", "file", "--features-dir", filepath.Join(dir, "features.d"),
			"--listen", "127.0.0.1:0", "--log-format", "json", flag)
		if got := strings.Count(text, "\ngdr_pair_level{"); got != want || !strings.Contains(text, "\ngdr_level{level=") {
			t.Errorf("%s: %d pairs, want %d\n%s", flag, got, want, text)
		}
	}
}

// metrics runs the agent until it has read the machine, and returns its metrics.
func metrics(t *testing.T, args ...string) string {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	log, to := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, args, time.Now, io.Discard, to)
		_ = to.Close()
	}()
	defer func() {
		end()
		if status := <-ended; status != 0 {
			t.Errorf("status %d", status)
		}
	}()
	lines := bufio.NewScanner(log)
	address := ""
	for address == "" && lines.Scan() {
		var line struct{ Address string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("log %q: %v", lines.Text(), err)
		}
		address = line.Address
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	for ctx.Err() == nil && address != "" {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			t.Error(err)
			return ""
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return ""
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if strings.Contains(string(text), "\ngdr_ready ") {
			return string(text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("nothing was read within 30 s")
	return ""
}
