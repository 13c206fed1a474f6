package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "")
	good, file, missing := dir, filepath.Join(dir, "file"), filepath.Join(dir, "missing")
	tests := []struct {
		name    string
		options Options
		missing bool
		names   string // what the error must name
	}{
		{"root missing", Options{Root: missing}, true, missing},
		{"root is a file", Options{Root: file}, false, file},
		{"sysfs missing", Options{Root: good, Sysfs: missing}, true, missing},
		{"sysfs is a file", Options{Root: good, Sysfs: file}, false, file},
		{"procfs missing", Options{Root: good, Sysfs: good, Procfs: missing}, true, missing},
		{"procfs is a file", Options{Procfs: file}, false, file},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := descriptors(t)
			tree, err := Open(tt.options)
			if err == nil || tree != nil {
				t.Fatalf("Open = %v, %v; want an error alone", tree, err)
			}
			if !strings.Contains(err.Error(), tt.names) {
				t.Errorf("%q does not name %s", err, tt.names)
			}
			if errors.Is(err, fs.ErrNotExist) != tt.missing {
				t.Errorf("%v: is fs.ErrNotExist: %v, want %v", err, !tt.missing, tt.missing)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors are open, %d before", after, before)
			}
		})
	}
}

func TestRootAndSysfs(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name        string
		options     Options
		root, sysfs string
	}{
		{"default", Options{}, "/", ""},
		{"slash", Options{Root: "/"}, "/", ""},
		{"directory", Options{Root: dir}, dir, ""},
		{"other sysfs", Options{Sysfs: dir}, "/", dir},
		{"other procfs", Options{Procfs: dir}, "/", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree, err := Open(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			if tree.Root() != tt.root || tree.Sysfs() != tt.sysfs {
				t.Errorf("Root() = %q, Sysfs() = %q; want %q, %q", tree.Root(), tree.Sysfs(), tt.root, tt.sysfs)
			}
		})
	}
}

// The root of the running machine is read as it is, magic links included.
func TestRunningMachine(t *testing.T) {
	tree, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	want, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.Bytes("proc/self/comm", 100)
	if err != nil || string(got) != string(want) {
		t.Errorf("proc/self/comm: %q, %v; want %q", got, err, want)
	}
}

// Directories given for sysfs and procfs replace those of the root, but do not show
// in names.
func TestOverrides(t *testing.T) {
	root, sysfs, procfs := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, root, "sys/which", "root's sys\n")
	write(t, root, "proc/which", "root's proc\n")
	write(t, root, "etc/which", "root's etc\n")
	write(t, root, "system/which", "root's system\n")
	write(t, sysfs, "which", "sysfs\n")
	write(t, procfs, "which", "procfs\n")
	link(t, sysfs, "bus/up", "../../../../which") // "/" is as far up as one gets
	tests := []struct {
		name          string
		sysfs, procfs string
		want          map[string]string // by file; "" for one that is missing
	}{
		{"none", "", "", map[string]string{
			"sys/which": "root's sys", "proc/which": "root's proc", "etc/which": "root's etc",
		}},
		{"sysfs", sysfs, "", map[string]string{
			"sys/which": "sysfs", "proc/which": "root's proc", "etc/which": "root's etc",
			"system/which": "root's system", "sys/bus/up": "sysfs", "sys/sys/which": "",
		}},
		{"procfs", "", procfs, map[string]string{
			"sys/which": "root's sys", "proc/which": "procfs", "proc/proc/which": "",
		}},
		{"both", sysfs, procfs, map[string]string{
			"sys/which": "sysfs", "proc/which": "procfs", "etc/which": "root's etc",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree, err := Open(Options{Root: root, Sysfs: tt.sysfs, Procfs: tt.procfs})
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			for name, want := range tt.want {
				got, err := tree.Line(name)
				if got != want || Absent(err) != (want == "") {
					t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
				}
				if err != nil {
					wantPath(t, err, "/"+name)
				}
			}
		})
	}
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Every call closes what it opened, above all one that fails.
func TestDescriptorsAreGivenBack(t *testing.T) {
	dir := oddTree(t)
	names := []string{
		"sys/line", "sys/spaces", "sys/empty", "sys/dir", "sys/fifo", "sys/deep",
		"sys/dangling", "sys/loop", "sys/missing", "sys/line/below",
	}
	write(t, dir, "sys/large", strings.Repeat("x", maxLine+1))
	names = append(names, "sys/large")
	calls := map[string]func(v view, name string){
		"Line":    func(v view, name string) { v.Line(v.path(name)) },      //nolint:errcheck // both ways count
		"Bytes":   func(v view, name string) { v.Bytes(v.path(name), 10) }, //nolint:errcheck // both ways count
		"Names":   func(v view, name string) { v.Names(v.path(name)) },     //nolint:errcheck // both ways count
		"Link":    func(v view, name string) { v.Link(v.path(name)) },      //nolint:errcheck // both ways count
		"Exists":  func(v view, name string) { v.Exists(v.path(name)) },    //nolint:errcheck // both ways count
		"Resolve": func(v view, name string) { v.Resolve(v.path(name)) },   //nolint:errcheck // both ways count
	}
	for _, v := range views(t, dir) {
		for call, f := range calls {
			for _, name := range names {
				t.Run(v.name+"/"+call+"/"+name, func(t *testing.T) {
					f(v, name) // the first use of a FIFO starts the runtime's poller, which has its own
					before := descriptors(t)
					f(v, name)
					if after := descriptors(t); after != before {
						t.Errorf("%d descriptors are open, %d before", after, before)
					}
				})
			}
		}
	}
	before := descriptors(t)
	tree, err := Open(Options{Root: dir, Sysfs: dir, Procfs: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("Open and Close: %d descriptors are open, %d before", after, before)
	}
}

// Kernels before 5.6 lack openat2, and some old sandboxes forbid it.
func TestOpenWithoutOpenat2(t *testing.T) {
	dir := oddTree(t)
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		withoutOpenat2(t, errno, func() {
			before := descriptors(t)
			tree, err := Open(Options{Root: dir})
			if err != nil {
				t.Errorf("%v: %v", errno, err)
				return
			}
			if text, err := tree.Line("sys/deep"); text != "value" || err != nil {
				t.Errorf("%v: %q, %v", errno, text, err)
			}
			if err := tree.Close(); err != nil {
				t.Errorf("%v: Close: %v", errno, err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%v: %d descriptors are open, %d before", errno, after, before)
			}
		})
	}
}

// withoutOpenat2 runs f on a thread of its own for which openat2 fails.
func withoutOpenat2(t *testing.T, errno unix.Errno, f func()) {
	t.Helper()
	const number = 0 // offset in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT2, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with its goroutine
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Errorf("no_new_privs: %v", err)
			return
		}
		_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
		if failed != 0 {
			t.Errorf("seccomp: %v", failed)
			return
		}
		if _, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{}); err != errno { //nolint:errorlint // a bare errno from the call itself
			t.Errorf("openat2: %v, want %v", err, errno)
		}
		f()
	}()
	<-done
}

// TestUnread: what is not there, and what a recording lacks, was not asked in vain.
func TestUnread(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false,
		PathError("open", "sys/a", fs.ErrNotExist):   false,
		PathError("open", "sys/a", ErrNotRecorded):   false,
		PathError("open", "sys/a", fs.ErrPermission): true,
		fmt.Errorf("sys/a: %w", ErrTooLarge):         true,
	} {
		if got := Unread(err); got != want {
			t.Errorf("Unread(%v) = %v", err, got)
		}
	}
}
