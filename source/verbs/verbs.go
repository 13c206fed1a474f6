// Package verbs asks RDMA devices whether they can register DMA-BUF, the memory
// of a GPU for one. No file in sysfs says so, and the kernel's symbols say what its
// drivers support, not what a device does.
//
// A device is asked as libibverbs would, through ioctls on /dev/infiniband/uverbsN:
// a context and a protection domain are made, and a registration is tried that
// cannot succeed. Closing the device removes all of it. ibv_devinfo does the same
// but for the last step.
package verbs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

// Answer is what one device said.
type Answer struct {
	Device string
	// DMABuf reports whether it registers DMA-BUF. Unknown comes with Err.
	DMABuf tristate.State
	Err    error
}

// Prober asks devices, each once for every load of its driver; one that gave no
// answer is asked again. The zero value is ready. Its methods may not be called
// at the same time.
type Prober struct {
	// Dir is where the device nodes are. Empty is /dev/infiniband, and goes with
	// the files of the running machine alone: those of another one must not lead
	// to devices here.
	Dir string
	// Families are those whose devices are asked; the zero value stands for
	// family.Known.
	Families family.Table

	memory map[string]*memory
	// connect opens a device for tests, nil for the kernel itself.
	connect func(dir string, n node) (kernel, func(), error)
}

// memory is what is known of one device.
type memory struct {
	node   node
	answer Answer
	final  bool   // the device itself has answered
	wait   waiter // for the answer that it owes; nil for none
	late   bool   // it has owed it since an earlier time
}

// waiter waits for the answer of one device, as long as it is allowed to.
type waiter func(context.Context) (tristate.State, error)

var (
	errRoot   = errors.New("only devices of the running machine are asked, not those of another --root")
	errEntry  = errors.New("it has no entry in /" + class + "; modprobe ib_uverbs")
	errReload = errors.New("its driver was loaded again while it was asked")
)

// askTimeout is how long one device may hold up the others.
const askTimeout = 300 * time.Millisecond

// Ask asks devices by their names, in order. One that has not answered when ctx
// ends is left behind; it is neither waited for nor asked again while it hangs,
// and its answer counts when it comes.
func (p *Prober) Ask(ctx context.Context, fs *host.FS, devices []string) []Answer {
	answers := make([]Answer, len(devices))
	if p.Dir == "" && fs.Root() != "/" {
		for i, device := range devices {
			answers[i] = Answer{Device: device, Err: errRoot}
		}
		return answers
	}
	p.forget(devices)
	found := sync.OnceValues(func() (map[string]node, error) { return find(fs) })
	ended, end := context.WithCancel(ctx)
	end()
	for _, device := range devices { // one after the other as long as they are quick
		m := p.memory[device]
		m.await(ended, fs)
		if m.late = m.wait != nil; m.late || m.final && m.node.unchanged(fs, device) {
			continue
		}
		p.start(m, device, found)
		short, cancel := context.WithTimeout(ctx, askTimeout)
		m.await(short, fs)
		cancel()
	}
	for i, device := range devices {
		m := p.memory[device]
		if !m.late {
			m.await(ctx, fs)
		}
		answers[i] = m.answer
	}
	return answers
}

// forget drops devices that are gone, but for those that hang, and makes room for
// new ones.
func (p *Prober) forget(devices []string) {
	maps.DeleteFunc(p.memory, func(name string, m *memory) bool { return m.wait == nil && !slices.Contains(devices, name) })
	if p.memory == nil {
		p.memory = map[string]*memory{}
	}
	for _, device := range devices {
		if p.memory[device] == nil {
			p.memory[device] = &memory{}
		}
	}
}

func (p *Prober) start(m *memory, device string, found func() (map[string]node, error)) {
	m.answer, m.final = Answer{Device: device, Err: errEntry}, false
	all, err := found()
	if err != nil && !host.Absent(err) {
		m.answer.Err = err
	}
	n, ok := all[device]
	if !ok {
		return
	}
	dir, connect := p.Dir, p.connect
	if dir == "" {
		dir = Nodes
	}
	if connect == nil {
		connect = dial
	}
	asked := drivers(p.Families.OrDefault())
	m.node = n
	m.wait = deadline.Async(func() (tristate.State, error) {
		k, hangUp, err := connect(dir, n)
		if err != nil {
			return tristate.Unknown, err
		}
		defer hangUp()
		return ask(k, asked)
	})
}

// await waits for the answer that a device owes.
func (m *memory) await(ctx context.Context, fs *host.FS) {
	if m.wait == nil {
		return
	}
	m.answer.DMABuf, m.answer.Err = m.wait(ctx)
	if errors.Is(m.answer.Err, deadline.ErrTimeout) {
		return
	}
	m.wait = nil
	if !m.node.unchanged(fs, m.answer.Device) {
		m.answer.DMABuf, m.answer.Err = tristate.Unknown, errReload
		return
	}
	m.final = m.answer.Err == nil || errors.Is(m.answer.Err, errRefused) || errors.Is(m.answer.Err, errDriver)
}

// dial opens the device itself.
func dial(dir string, n node) (k kernel, hangUp func(), err error) {
	fd, err := open(dir, n)
	if err != nil {
		return nil, nil, err
	}
	return uverbs(fd), func() { _ = unix.Close(fd) }, nil
}

// Problems says why there is no answer from some devices, in one sentence for
// all that have the same reason.
func Problems(answers []Answer) []error {
	type problem struct {
		first, reason string
		more          int
	}
	var all []problem
	for _, a := range answers {
		if a.Err == nil {
			continue
		}
		one := problem{first: "--probe-verbs: " + a.Device, reason: a.Err.Error()}
		if file := (*os.PathError)(nil); errors.As(a.Err, &file) {
			one = problem{first: "--probe-verbs needs " + file.Path, reason: file.Err.Error()}
		}
		same := func(p problem) bool { return p.reason == one.reason }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].more++
		} else {
			all = append(all, one)
		}
	}
	var problems []error
	for _, p := range all {
		if p.more > 0 {
			p.first += fmt.Sprintf(" and %d more", p.more)
		}
		problems = append(problems, fmt.Errorf("%s: %s", p.first, p.reason))
	}
	return problems
}
