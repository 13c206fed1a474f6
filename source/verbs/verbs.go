// Package verbs asks RDMA devices whether they can register DMA-BUF, the memory
// of a GPU for one. Nothing in sysfs tells; the kernel's symbols tell what its
// drivers know, not what a device can.
//
// A device is asked as libibverbs would, through ioctls on /dev/infiniband/uverbsN:
// a context and a protection domain are made, and a registration is tried that
// cannot succeed. Closing the device takes everything away again. It is what
// ibv_devinfo does, and one step more.
package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/internal/host"
	"gdr-features/internal/timed"
	"gdr-features/internal/tri"
)

// Answer is what one device said.
type Answer struct {
	Device string
	// DMABuf tells whether it registers DMA-BUF. Unknown comes with Err.
	DMABuf tri.State
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

	memory map[string]*memory
	// connect opens a device for tests, nil for the kernel itself.
	connect func(dir string, n node) (kernel, func(), error)
}

// memory is what is known of one device.
type memory struct {
	one    timed.One[tri.State]
	node   node
	answer tri.State
	err    error
	final  bool // the device itself has answered
}

var (
	errRoot  = errors.New("only devices of the running machine are asked, not those of another --root")
	errEntry = errors.New("it has no entry in /" + class + "; modprobe ib_uverbs")
)

// patience is how long one device may hold up the others.
const patience = 300 * time.Millisecond

// Ask asks devices by their names, in order. One that has not answered when ctx
// ends is left behind, and not asked again while it hangs.
func (p *Prober) Ask(ctx context.Context, fs *host.FS, devices []string) []Answer {
	answers := make([]Answer, len(devices))
	for i, device := range devices {
		answers[i].Device = device
	}
	if p.Dir == "" && fs.Root() != "/" {
		for i := range answers {
			answers[i].Err = errRoot
		}
		return answers
	}
	p.forget(devices)
	waits := p.start(ctx, fs, devices)
	for i, device := range devices {
		m := p.memory[device]
		if wait := waits[i]; wait != nil {
			m.answer, m.err = wait(ctx)
			m.final = m.err == nil || errors.Is(m.err, errRefused) || errors.Is(m.err, errDriver)
		}
		answers[i].DMABuf, answers[i].Err = m.answer, m.err
	}
	return answers
}

// forget drops devices that are gone, but those that still hang.
func (p *Prober) forget(devices []string) {
	for name, m := range p.memory {
		if !slices.Contains(devices, name) && !errors.Is(m.err, timed.ErrNoAnswer) {
			delete(p.memory, name)
		}
	}
	if p.memory == nil {
		p.memory = map[string]*memory{}
	}
}

// waiter waits for the answer of one device.
type waiter func(context.Context) (tri.State, error)

// start asks whoever has to be asked, one after the other as long as they answer
// quickly. It gives nil for a device whose answer is known.
func (p *Prober) start(ctx context.Context, fs *host.FS, devices []string) []waiter {
	waits := make([]waiter, len(devices))
	var found map[string]node
	for i, device := range devices {
		m := p.memory[device]
		if m == nil {
			m = &memory{}
			p.memory[device] = m
		}
		if m.final && m.node.still(fs, device) {
			continue
		}
		if found == nil {
			var err error
			if found, err = find(fs); err != nil && !host.Absent(err) {
				m.answer, m.err, m.final = tri.Unknown, err, false
				continue
			}
		}
		n, ok := found[device]
		if !ok {
			m.answer, m.err, m.final = tri.Unknown, errEntry, false
			continue
		}
		m.node = n
		waits[i] = p.askOne(ctx, m)
	}
	return waits
}

// askOne begins to ask a device, and gives it a moment before the next.
func (p *Prober) askOne(ctx context.Context, m *memory) waiter {
	dir, connect, n := p.Dir, p.connect, m.node
	if dir == "" {
		dir = nodes
	}
	if connect == nil {
		connect = dial
	}
	wait := m.one.Start(func() (tri.State, error) {
		k, hangUp, err := connect(dir, n)
		if err != nil {
			return tri.Unknown, err
		}
		defer hangUp()
		return ask(k)
	})
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state, err := wait(short)
	if errors.Is(err, timed.ErrNoAnswer) {
		return wait
	}
	return func(context.Context) (tri.State, error) { return state, err }
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
