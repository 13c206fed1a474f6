//go:build vm

// Package vm runs the programs on a real kernel: Debian's, in a virtual machine
// whose PCI Express hierarchy has every level, with GPUs and NICs that this
// test plays. It needs what build.sh builds, and Debian's qemu-system-x86.
package vm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/test/vm/initramfs"
	"gdr-features/test/vm/mpqemu"
)

const (
	built       = ".bin/"
	serialLine  = 3 // file handles in QEMU
	firstSocket = 4
	bootLimit   = 15 * time.Minute // of a machine that emulates slowly
	askLimit    = 5 * time.Minute
)

// kernelOptions let the kernel run under emulation. On a busy machine it would find
// that its timer does not work, and give up; and every timer of high resolution,
// which Go's runtime sets one after the other, costs as much as many system calls.
const kernelOptions = "console=ttyS0 panic=-1 no_timer_check highres=off "

// boot starts a machine and waits for its first process.
func boot(t *testing.T, w *wiring, kernelArgs string, extra ...string) *machine {
	t.Helper()
	start := time.Now()
	m := &machine{t: t, wiring: w}
	image := filepath.Join(t.TempDir(), "initramfs")
	if err := os.WriteFile(image, m.pack(), 0o600); err != nil {
		t.Fatal(err)
	}
	m.qemu(image, kernelArgs, extra)
	if up := m.receive(bootLimit); up.Out != "up" {
		t.Fatalf("the first word is %+v", up)
	}
	t.Logf("up after %.1f s", time.Since(start).Seconds())
	m.locate()
	return m
}

// pack returns the initramfs.
func (m *machine) pack() []byte {
	m.t.Helper()
	m.findModules()
	order, err := m.modules.Order(m.wiring.modules...)
	if err != nil {
		m.t.Fatal(err)
	}
	files := map[string]string{"init": built + "guest", "gdr-features": built + "gdr-features", "gdr-features-agent": built + "gdr-features-agent"}
	config := one(m.t, built+"kernel/boot/config-*")
	files["boot/"+filepath.Base(config)] = config
	for _, name := range order {
		files["modules/"+name+".ko"] = m.modules[name]
	}
	var archive bytes.Buffer
	w := initramfs.NewWriter(&archive)
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp"} {
		w.Dir(dir)
	}
	for to, from := range files {
		body, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatalf("%v (build.sh builds it)", err)
		}
		w.File(to, body)
	}
	for name, text := range m.wiring.files {
		w.File(name, []byte(text))
	}
	if err := w.Close(); err != nil {
		m.t.Fatal(err)
	}
	return archive.Bytes()
}

// findModules looks for the kernel's own modules and for those that stand in for
// drivers: of vendors, which go before the kernel's own, and of newer kernels, which
// have "inbox/" before their name.
func (m *machine) findModules() {
	m.t.Helper()
	m.modules = initramfs.Modules{}
	for _, from := range []struct{ dir, prefix string }{{"kernel/lib/modules", ""}, {"modules/vendor", ""}, {"modules/inbox", "inbox/"}} {
		found, err := initramfs.FindModules(built + from.dir)
		if err != nil {
			m.t.Fatalf("%v (build.sh makes it)", err)
		}
		for name, path := range found {
			m.modules[from.prefix+name] = path
		}
	}
}

// one returns the one file of a pattern.
func one(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, error %v (build.sh fetches a kernel)", pattern, files, err)
	}
	return files[0]
}

// qemu starts QEMU with emulation alone, and plays the functions.
func (m *machine) qemu(image, kernelArgs string, extra []string) {
	m.t.Helper()
	console := filepath.Join(m.t.TempDir(), "console")
	args := []string{
		// One CPU: while a proxy device waits for its answer, QEMU refuses
		// another CPU's access to PCI Express configuration space.
		"-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "768",
		// Its time passes with its instructions, 500 million a second: other load on this
		// machine makes the test longer, but no event in it late.
		"-icount", "shift=1",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", one(m.t, built+"kernel/boot/vmlinuz-*"), "-initrd", image, "-append", kernelOptions + kernelArgs,
		"-serial", "file:" + console,
		"-chardev", fmt.Sprintf("socket,id=line,fd=%d", serialLine), "-serial", "chardev:line",
	}
	c := exec.Command("qemu-system-x86_64", slices.Concat(args, memory(), extra, m.wiring.args)...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	near, far := sockets(m.t)
	m.line, m.ask, m.answer = near, json.NewEncoder(near), json.NewDecoder(near)
	c.ExtraFiles = []*os.File{far}
	p := &players{}
	for _, f := range m.wiring.functions {
		near, far := sockets(m.t)
		c.ExtraFiles = append(c.ExtraFiles, far)
		p.play(m.t, f, near)
	}
	err := c.Start()
	for _, f := range c.ExtraFiles {
		f.Close()
	}
	if err != nil {
		m.t.Fatalf("%v; on Debian: apt-get install --no-install-recommends qemu-system-x86", err)
	}
	m.t.Cleanup(func() {
		p.over.Store(true)
		_ = c.Process.Kill()
		_ = c.Wait()
		p.all.Wait()
		if text := withoutSharing(said.String()); text != "" {
			m.t.Errorf("QEMU said:\n%s", text)
		}
		if text, err := os.ReadFile(console); m.t.Failed() {
			m.t.Logf("QEMU: %v; console (error %v):\n%s", c.ProcessState, err, text)
		}
	})
}

// memory returns the machine 768 MB: two NUMA nodes that matter, and as many more as
// keep QEMU from sharing memory. It would tell every proxy device of each change
// of the memory's layout, without its lock in the midst of that change, and crash
// when the change came from the IOMMU. More than eight pieces, each a file, it does
// not share.
func memory() []string {
	var args []string
	for node, size := range []int{384, 256, 16, 16, 16, 16, 16, 16, 16, 16} {
		cpus := ""
		if node == 0 {
			cpus = ",cpus=0"
		}
		args = append(args, "-object", fmt.Sprintf("memory-backend-memfd,id=ram%d,size=%dM,share=on", node, size),
			"-numa", fmt.Sprintf("node,nodeid=%d,memdev=ram%d%s", node, node, cpus))
	}
	return args
}

// withoutSharing takes out what QEMU says each time it does not share memory.
func withoutSharing(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "Number of fds is more than 8\n") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// players are the goroutines that answer for the functions.
type players struct {
	all  sync.WaitGroup
	over atomic.Bool // QEMU may be cut short in the midst of a message
}

func (p *players) play(t *testing.T, f function, conn net.Conn) {
	p.all.Go(func() {
		if err := mpqemu.Serve(conn, mpqemu.NewSpace(f.Function)); err != nil && !p.over.Load() {
			t.Errorf("function %s: %v", f.name, err)
		}
	})
}

// sockets returns two ends of a socket, the second one for another program.
func sockets(t *testing.T) (net.Conn, *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(pair[0]), "near")
	defer file.Close()
	near, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	return near, os.NewFile(uintptr(pair[1]), "far")
}
