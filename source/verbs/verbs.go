// Package verbs asks RDMA devices whether they can register DMA-BUF, the memory
// of a GPU for one. No file in sysfs says so, and the kernel's symbols say what its
// drivers support, not what a device does. It also asks for the active MTU of ports,
// which no file shows either.
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
	// MTUs are the active MTUs of its ports in bytes, 256 to 4096, by the number of the
	// port. A port that was not asked, or did not tell, is not there.
	MTUs map[int]int
}

// Question is what a device is asked beside whether it registers DMA-BUF.
type Question struct {
	Device string
	// Ports are those whose active MTU is wanted.
	Ports []Port
}

// Port is a port whose active MTU is wanted.
type Port struct {
	Number int
	// Seen is what else is known of the port. When it changes, the device is asked again.
	Seen string
}

// Prober asks devices, each once for every load of its driver, and again when what is
// seen of its ports changes; one that gave no answer is asked again. The zero value is ready. Its methods may not be called
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
	ports  []Port // that it was asked about
	final  bool   // the device itself has answered
	wait   waiter // for the answer that it owes; nil for none
	late   bool   // it has owed it since an earlier time
}

// waiter waits for the answer of one device, as long as it is allowed to.
type waiter func(context.Context) (said, error)

var (
	errRoot   = errors.New("only devices of the running machine are asked, not those of another --root")
	errEntry  = errors.New("it has no entry in /" + class + "; modprobe ib_uverbs")
	errReload = errors.New("its driver was loaded again while it was asked")
)

// askTimeout is how long one device may hold up the others.
const askTimeout = 300 * time.Millisecond

// Ask asks devices, in order. One that has not answered when ctx
// ends is left behind; it is neither waited for nor asked again while it hangs,
// and its answer counts when it comes.
func (p *Prober) Ask(ctx context.Context, fs *host.FS, questions []Question) []Answer {
	answers := make([]Answer, len(questions))
	if p.Dir == "" && fs.Root() != "/" {
		for i, q := range questions {
			answers[i] = Answer{Device: q.Device, Err: errRoot}
		}
		return answers
	}
	p.forget(questions)
	found := sync.OnceValues(func() (map[string]node, error) { return find(fs) })
	ended, end := context.WithCancel(ctx)
	end()
	for _, q := range questions { // one after the other as long as they are quick
		m := p.memory[q.Device]
		m.await(ended, fs)
		if m.late = m.wait != nil; m.late || m.final && slices.Equal(m.ports, q.Ports) && m.node.unchanged(fs, q.Device) {
			continue
		}
		p.start(m, q, found)
		short, cancel := context.WithTimeout(ctx, askTimeout)
		m.await(short, fs)
		cancel()
	}
	for i, q := range questions {
		m := p.memory[q.Device]
		if !m.late {
			m.await(ctx, fs)
		}
		answers[i] = m.answer
	}
	return answers
}

// forget drops devices that are gone, but for those that hang, and makes room for
// new ones.
func (p *Prober) forget(questions []Question) {
	maps.DeleteFunc(p.memory, func(name string, m *memory) bool {
		return m.wait == nil && !slices.ContainsFunc(questions, func(q Question) bool { return q.Device == name })
	})
	if p.memory == nil {
		p.memory = map[string]*memory{}
	}
	for _, q := range questions {
		if p.memory[q.Device] == nil {
			p.memory[q.Device] = &memory{}
		}
	}
}

func (p *Prober) start(m *memory, q Question, found func() (map[string]node, error)) {
	m.answer, m.final, m.ports = Answer{Device: q.Device, Err: errEntry}, false, q.Ports
	all, err := found()
	if err != nil && !host.Absent(err) {
		m.answer.Err = err
	}
	n, ok := all[q.Device]
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
	m.wait = deadline.Async(func() (said, error) {
		k, hangUp, err := connect(dir, n)
		if err != nil {
			return said{}, err
		}
		defer hangUp()
		return ask(k, asked, q.Ports)
	})
}

// await waits for the answer that a device owes.
func (m *memory) await(ctx context.Context, fs *host.FS) {
	if m.wait == nil {
		return
	}
	var s said
	s, m.answer.Err = m.wait(ctx)
	m.answer.DMABuf, m.answer.MTUs = s.dmabuf, s.mtus
	if errors.Is(m.answer.Err, deadline.ErrTimeout) {
		return
	}
	m.wait = nil
	if !m.node.unchanged(fs, m.answer.Device) {
		m.answer = Answer{Device: m.answer.Device, Err: errReload}
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
