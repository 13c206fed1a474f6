package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gdr-features/internal/monitor"
	"gdr-features/test/testsize"
)

// serverOnly is set for the process that TestHeaders starts. It is this program, as a server.
const serverOnly = "GDR_TEST_SERVER_ONLY"

// TestHeaders: clients that each hold a connection with as many header lines as the server
// reads need less memory than the agent's limit leaves, and probes are answered all the while.
// The server is a process of its own, so that its memory is not that of the clients.
func TestHeaders(t *testing.T) {
	if os.Getenv(serverOnly) != "" {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("at", listener.Addr())
		_ = newServer(monitor.New("v1", []string{"file"}, time.Hour, time.Now).Handler()).Serve(listener)
		return
	}
	const most = 56 << 20 // the DaemonSet's limit of 64 MiB, less 8 for what an agent reads
	clients, probes, limit := 520, 30, "GOMEMLIMIT=48MiB"
	if testsize.Partial() || testsize.Race() { // with which that limit is far too low
		clients, probes, limit = 100, 5, "GOMEMLIMIT=off"
	}
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer func() { end(); all.Wait() }()
	server := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHeaders$")
	server.Env = append(os.Environ(), serverOnly+"=1", limit, "GOGC=100") // as the agent runs
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	idle := peak(t, server.Process.Pid)
	// 12 KB in lines as short as they can be: each becomes an entry of a map.
	lines := "GET /metrics HTTP/1.1\r\nHost: x\r\n"
	for n := 0; len(lines) < 12<<10; n++ {
		lines += strconv.FormatInt(int64(n), 36) + ":\r\n"
	}
	elsewhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)} // a Pod's address, not the kubelet's
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil { // again, when the server has closed it
				c, err := (&net.Dialer{Timeout: 20 * time.Second, LocalAddr: elsewhere}).DialContext(ctx, "tcp", address)
				if err != nil {
					return
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = io.WriteString(c, lines)
				_, _ = io.Copy(io.Discard, c)
				stop()
				_ = c.Close()
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	slowest := time.Duration(0)
	for range probes {
		time.Sleep(50 * time.Millisecond)
		start := time.Now()
		if err := probe(ctx, address); err != nil {
			t.Error(err)
		}
		slowest = max(slowest, time.Since(start))
	}
	used := peak(t, server.Process.Pid)
	t.Logf("%d clients with 12 KB of header lines: %d MB at most, %d MB before; the slowest of %d probes took %v",
		clients, used>>20, idle>>20, probes, slowest.Round(time.Millisecond))
	if used > most && !testsize.Race() {
		t.Errorf("the server needs %d MB, more than %d MB", used>>20, most>>20)
	}
}

// peak is how much memory a process has had at most.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
