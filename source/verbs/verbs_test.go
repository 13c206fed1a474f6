package verbs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/tristate"
)

// tree is a machine with verbs devices.
type tree struct {
	*testing.T
	dir string
	fs  *host.FS
}

func newTree(t *testing.T) tree {
	t.Helper()
	dir := t.TempDir()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return tree{t, dir, fs}
}

// load makes the entry of a device, or makes it anew.
func (tr tree) load(entry, device, number string) {
	tr.Helper()
	dir := filepath.Join(tr.dir, class, entry)
	if err := os.RemoveAll(dir + ".old"); err != nil {
		tr.Fatal(err)
	}
	_ = os.Rename(dir, dir+".old") // keeps its inode, which would be given away again
	_ = os.Remove(filepath.Join(dir+".old", "ibdev"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tr.Fatal(err)
	}
	tr.write(entry+"/ibdev", device)
	tr.write(entry+"/dev", number)
}

func (tr tree) write(name, text string) {
	tr.Helper()
	if err := os.WriteFile(filepath.Join(tr.dir, class, name), []byte(text+"\n"), 0o644); err != nil {
		tr.Fatal(err)
	}
}

// exchange is a prober whose devices are fakes, by the names of their nodes.
type exchange struct {
	Prober
	fakes        map[string]*fake
	dialed, hung map[string]int
}

func newExchange() *exchange {
	x := &exchange{fakes: map[string]*fake{}, dialed: map[string]int{}, hung: map[string]int{}}
	x.connect = func(n node) (kernel, error) {
		x.dialed[n.name]++
		f := x.fakes[n.name]
		if f == nil {
			return nil, unix.ENODEV
		}
		now := *f
		now.hangUp = func() { x.hung[n.name]++ }
		return &now, nil
	}
	return x
}

// named are questions about devices without ports.
func named(devices ...string) (questions []Question) {
	for _, d := range devices {
		questions = append(questions, Question{Device: d})
	}
	return questions
}

// A device is asked again when what is seen of a port changes.
func TestPortChanges(t *testing.T) {
	tr, x := newTree(t), newExchange()
	tr.load("uverbs0", "mlx5_0", "231:192")
	x.fakes["uverbs0"] = &fake{driver: mlx5.Driver, register: unix.EBADF, mtu: map[int]byte{1: 5}}
	for i, step := range []struct {
		ports       []Port
		mtu, dialed int
	}{
		{[]Port{{1, "9000"}}, 4096, 1}, {[]Port{{1, "9000"}}, 4096, 1}, {[]Port{{1, "1500"}}, 1024, 2}, {[]Port{{1, "1500"}}, 1024, 2}, {nil, 0, 3},
	} {
		if i == 2 {
			x.fakes["uverbs0"].mtu[1] = 3
		}
		got := x.Ask(t.Context(), tr.fs, []Question{{"mlx5_0", step.ports}})[0]
		if got.MTUs[1] != step.mtu || got.DMABuf != tristate.True || x.dialed["uverbs0"] != step.dialed {
			t.Errorf("step %d: %+v, asked %d times; want %d, %d", i, got, x.dialed["uverbs0"], step.mtu, step.dialed)
		}
	}
}

func states(answers []Answer) (text string) {
	for _, a := range answers {
		text += a.Device + " " + a.DMABuf.String() + "\n"
	}
	return text
}

// noDriver is the number of no driver.
const noDriver = 999

// A device is asked once for every load of its driver, and until it answers.
func TestOncePerLoad(t *testing.T) {
	tr, x := newTree(t), newExchange()
	tr.load("uverbs0", "mlx5_0", "231:192")
	tr.load("uverbs1", "mlx5_1", "231:193")
	tr.write("abi_version", "6")
	x.fakes["uverbs0"] = &fake{driver: mlx5.Driver, register: unix.EBADF}
	x.fakes["uverbs1"] = &fake{driver: mlx5.Driver, context: unix.EAGAIN, register: unix.EOPNOTSUPP}
	expect := func(want string, dialed0, dialed1 int) {
		t.Helper()
		for range 3 { // known answers cost no more
			if diff := cmp.Diff(want, states(x.Ask(t.Context(), tr.fs, named("mlx5_0", "mlx5_1")))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if x.dialed["uverbs0"] != dialed0 || x.dialed["uverbs1"] != dialed1 {
			t.Errorf("asked %v, want %d and %d times", x.dialed, dialed0, dialed1)
		}
		if diff := cmp.Diff(x.dialed, x.hung); diff != "" {
			t.Errorf("opened and closed: %s", diff)
		}
	}
	expect("mlx5_0 true\nmlx5_1 unknown\n", 1, 3) // it is resetting
	x.fakes["uverbs1"].context = 0
	expect("mlx5_0 true\nmlx5_1 false\n", 1, 4)

	x.fakes["uverbs0"].register = unix.EINVAL
	tr.load("uverbs0", "mlx5_0", "231:192")
	expect("mlx5_0 unknown\nmlx5_1 false\n", 2, 4) // its answer, clear or not

	x.fakes["uverbs1"].driver = noDriver
	tr.load("uverbs1", "mlx5_1", "231:193")
	expect("mlx5_0 unknown\nmlx5_1 unknown\n", 2, 5) // nobody knows how to ask it
	x.fakes["uverbs1"].driver = mlx5.Driver

	tr.write("uverbs0/ibdev", "mlx5_1") // rdma dev set mlx5_0 name ...
	tr.write("uverbs1/ibdev", "mlx5_0")
	expect("mlx5_0 false\nmlx5_1 unknown\n", 3, 6)

	if x.Ask(t.Context(), tr.fs, nil); len(x.memory) != 0 {
		t.Errorf("remembers %d devices that are gone", len(x.memory))
	}
}

// A device that hangs does not delay others for long and is not asked again
// meanwhile; its answer counts when it comes, unless its driver was loaded again.
func TestHanging(t *testing.T) {
	for _, reload := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { hanging(t, reload) })
	}
}

func hanging(t *testing.T, reload bool) {
	t.Helper()
	tr, x := newTree(t), newExchange()
	tr.load("uverbs0", "mlx5_0", "231:192")
	tr.load("uverbs1", "mlx5_1", "231:193")
	hang, started := make(chan struct{}), 0
	connect := x.connect
	x.connect = func(n node) (kernel, error) {
		if n.name == "uverbs0" {
			started++
			<-hang
		}
		return connect(n)
	}
	x.fakes["uverbs0"] = &fake{driver: mlx5.Driver, register: unix.EBADF}
	x.fakes["uverbs1"] = &fake{driver: mlx5.Driver, register: unix.EBADF}
	far, cancelFar := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancelFar()
	ctx, cancel := context.WithTimeout(far, 3*deadline.Patience)
	defer cancel()
	for i := range 3 {
		start := time.Now()
		answers := x.Ask(ctx, tr.fs, named("mlx5_0", "mlx5_1"))
		if got := states(answers); got != "mlx5_0 unknown\nmlx5_1 true\n" || !errors.Is(answers[0].Err, deadline.ErrTimeout) {
			t.Fatal(got, answers[0].Err)
		}
		if took := time.Since(start); i > 0 && took > deadline.Patience {
			t.Errorf("waited %v for a device that was left behind", took)
		}
		ctx = far
	}
	x.Ask(ctx, tr.fs, named("mlx5_1")) // it is gone from the list while it hangs
	if reload {
		tr.load("uverbs0", "mlx5_0", "231:192")
	}
	close(hang)
	last := Answer{Err: deadline.ErrTimeout}
	for end := time.Now().Add(20 * time.Second); errors.Is(last.Err, deadline.ErrTimeout) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		last = x.Ask(t.Context(), tr.fs, named("mlx5_0"))[0]
	}
	if last.DMABuf != tristate.True || reload != (started == 2) {
		t.Errorf("reload %v: asked %d times, %+v", reload, started, last)
	}
}

// An answer does not count if the driver was loaded again meanwhile.
func TestReloadedWhileAsked(t *testing.T) {
	tr, x := newTree(t), newExchange()
	tr.load("uverbs0", "mlx5_0", "231:192")
	x.fakes["uverbs0"] = &fake{driver: mlx5.Driver, register: unix.EBADF, seen: func(r *request) {
		if x.dialed["uverbs0"] == 1 && r.header.method == methodGetContext {
			tr.load("uverbs0", "mlx5_0", "231:192")
		}
	}}
	for _, want := range []error{errReload, nil, nil} {
		if got := x.Ask(t.Context(), tr.fs, named("mlx5_0"))[0]; !errors.Is(got.Err, want) || (want == nil) != (got.DMABuf == tristate.True) {
			t.Errorf("%+v, want %v", got, want)
		}
	}
	if x.dialed["uverbs0"] != 2 {
		t.Errorf("asked %v times", x.dialed)
	}
}

// A file in the place of a device node is opened only if it is that device node.
func TestNodes(t *testing.T) {
	tr := newTree(t)
	for entry, number := range map[string]string{
		"uverbs0": "0:0", "uverbs1": "231:1", "uverbs2": "231:2", "uverbs3": "231:3", "uverbs4": "231:4", "uverbs5": "1:3", "uverbs6": "x", "uverbs7": "1:3",
	} {
		tr.load(entry, "device"+strings.TrimPrefix(entry, "uverbs"), number)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("uverbs0"), nil, 0o666), os.WriteFile(at("uverbs2"), nil, 0o666), unix.Mkfifo(at("uverbs3"), 0o666),
		os.Mkdir(at("uverbs4"), 0o755), os.Symlink("/dev/null", at("uverbs5")),
		os.Symlink("/dev/null", at("uverbs7")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := descriptors(t)
	var p Prober
	p.connect = func(n node) (kernel, error) { return open(dir, n) }
	answers := p.Ask(t.Context(), tr.fs, named("device0", "device1", "device2", "device3", "device4", "device5", "device6", "device7", "device8"))
	for i, want := range []error{errOther, unix.ENOENT, errOther, errOther, errOther, errOther, errEntry, errOther, errEntry} {
		if a := answers[i]; a.DMABuf != tristate.Unknown || !errors.Is(a.Err, want) {
			t.Errorf("%s: %v, %v", a.Device, a.DMABuf, a.Err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	want := []string{
		"--probe-verbs needs " + at("uverbs0") + " and 5 more: not the character device that sysfs names",
		"--probe-verbs needs " + at("uverbs1") + ": no such file or directory",
		"--probe-verbs: device6 and 1 more: it has no entry in /sys/class/infiniband_verbs; modprobe ib_uverbs",
	}
	if diff := cmp.Diff(want, sentences(Problems(answers))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func sentences(errs []error) (text []string) {
	for _, err := range errs {
		text = append(text, err.Error())
	}
	return text
}

// A device of another kind is opened, asked and closed through the kernel: the
// null device knows no such ioctl.
func TestAnotherDevice(t *testing.T) {
	tr := newTree(t)
	tr.load("null", "device", "1:3")
	tr.load("zero", "other", "1:3")
	var p Prober
	p.connect = func(n node) (kernel, error) { return open("/dev", n) }
	before := descriptors(t)
	for range 10 {
		answers := p.Ask(t.Context(), tr.fs, named("device", "other"))
		if a := answers[0]; a.DMABuf != tristate.Unknown || !errors.Is(a.Err, unix.ENOTTY) {
			t.Fatalf("%+v", a)
		}
		if a := answers[1]; !errors.Is(a.Err, errOther) {
			t.Fatalf("opened by another number: %+v", a)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// The files of another machine lead to no device of this one.
func TestAnotherRoot(t *testing.T) {
	tr := newTree(t)
	tr.load("uverbs0", "mlx5_0", "231:192")
	var p Prober
	answers := p.Ask(t.Context(), tr.fs, named("mlx5_0", "mlx5_1"))
	if got := states(answers); got != "mlx5_0 unknown\nmlx5_1 unknown\n" {
		t.Error(got)
	}
	if got := Problems(answers); len(got) != 1 || !strings.Contains(got[0].Error(), "--root") {
		t.Error(got)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
