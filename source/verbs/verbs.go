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

// Prober asks devices, each once for every load of its driver, and again when what is seen of
// its ports changes; one that gave no answer is asked again. The zero value is ready. Its methods
// may not be called at the same time.
type Prober struct {
	// Families are those whose devices are asked; the zero value stands for
	// family.Known.
	Families family.Table

	mu     sync.Mutex // of memory: a device may answer late
	memory map[string]*memory
	// connect opens a device for tests. Nil opens those in Nodes, for the files of the running
	// machine alone: those of another one must not lead to devices here.
	connect func(node) (kernel, error)
}

type memory struct {
	node   node
	ports  []Port // that it was asked about
	answer Answer
	final  bool // the device itself has answered
	asking bool // it owes an answer
}

var (
	errRoot   = errors.New("only devices of the running machine are asked, not those of another --root")
	errEntry  = errors.New("it has no entry in /" + class + "; modprobe ib_uverbs")
	errReload = errors.New("its driver was loaded again while it was asked")
)

// Ask asks devices, in order. One that has not answered when ctx
// ends is left behind; it is neither waited for nor asked again while it hangs,
// and its answer counts when it comes.
func (p *Prober) Ask(ctx context.Context, fs *host.FS, questions []Question) []Answer {
	answers := make([]Answer, len(questions))
	if p.connect == nil && fs.Root() != "/" {
		for i, q := range questions {
			answers[i] = Answer{Device: q.Device, Err: errRoot}
		}
		return answers
	}
	due := p.due(fs, questions)
	deadline.InTurn(ctx, len(due), func(i int) { due[i]() })
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, q := range questions {
		answers[i] = p.memory[q.Device].answer
	}
	return answers
}

// due returns what asks the devices that have to be asked. It drops those from the memory that
// are gone, but for those that hang.
func (p *Prober) due(fs *host.FS, questions []Question) (due []func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.memory == nil {
		p.memory = map[string]*memory{}
	}
	maps.DeleteFunc(p.memory, func(name string, m *memory) bool {
		return !m.asking && !slices.ContainsFunc(questions, func(q Question) bool { return q.Device == name })
	})
	found := sync.OnceValues(func() (map[string]node, error) { return find(fs) })
	for _, q := range questions {
		m := p.memory[q.Device]
		if m != nil && (m.asking || m.final && slices.Equal(m.ports, q.Ports) && m.node.unchanged(fs, q.Device)) {
			continue
		}
		m = &memory{ports: q.Ports, answer: Answer{Device: q.Device, Err: errEntry}}
		p.memory[q.Device] = m
		all, err := found()
		if err != nil && !host.Absent(err) {
			m.answer.Err = err
		}
		if n, ok := all[q.Device]; ok {
			m.node, m.answer.Err = n, deadline.ErrTimeout
			due = append(due, func() { p.ask(fs, m, q) })
		}
	}
	return due
}

// ask asks one device and remembers its answer, when that comes.
func (p *Prober) ask(fs *host.FS, m *memory, q Question) {
	p.mu.Lock()
	m.asking = p.memory[q.Device] == m
	p.mu.Unlock()
	if !m.asking { // a later Ask has begun anew
		return
	}
	answer := p.answer(m.node, q.Ports)
	if !m.node.unchanged(fs, q.Device) {
		answer = Answer{Err: errReload}
	}
	answer.Device = q.Device
	final := answer.Err == nil || errors.Is(answer.Err, errRefused) || errors.Is(answer.Err, errDriver)
	p.mu.Lock()
	defer p.mu.Unlock()
	m.answer, m.final, m.asking = answer, final, false
}

func (p *Prober) answer(n node, ports []Port) Answer {
	connect := p.connect
	if connect == nil {
		connect = func(n node) (kernel, error) { return open(Nodes, n) }
	}
	k, err := connect(n)
	if err != nil {
		return Answer{Err: err}
	}
	defer k.close()
	return ask(k, drivers(p.Families.OrDefault()), ports)
}

// Problems says why there is no answer from some devices, in one sentence for
// all that have the same reason.
func Problems(answers []Answer) (problems []error) {
	var reasons []string
	first, more := map[string]string{}, map[string]int{} // by reason
	for _, a := range answers {
		if a.Err == nil {
			continue
		}
		device, reason := "--probe-verbs: "+a.Device, a.Err.Error()
		if file, ok := errors.AsType[*os.PathError](a.Err); ok {
			device, reason = "--probe-verbs needs "+file.Path, file.Err.Error()
		}
		if first[reason] != "" {
			more[reason]++
			continue
		}
		first[reason], reasons = device, append(reasons, reason)
	}
	for _, reason := range reasons {
		others := ""
		if n := more[reason]; n > 0 {
			others = fmt.Sprintf(" and %d more", n)
		}
		problems = append(problems, fmt.Errorf("%s%s: %s", first[reason], others, reason))
	}
	return problems
}
