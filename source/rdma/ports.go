package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"gdr-features/internal/host"
	"gdr-features/source/pci"
)

// patience is how long one device may hold up the others.
const patience = 300 * time.Millisecond

// answer is what the reader of one device found.
type answer struct {
	ports    []Port
	err      error
	problems []error
}

// relay reads the ports of devices one after the other. A reader that gets
// stuck in a device is left behind, and another goes on with the next.
type relay struct {
	mu      sync.Mutex
	answers []*answer // by device, nil for none yet
	next    int       // the device to read next
	missing int       // how many answers are missing
	all     chan struct{}
}

func (r *relay) run(read func(i int) answer) {
	for {
		r.mu.Lock()
		i := r.next
		r.next++
		r.mu.Unlock()
		if i >= len(r.answers) {
			return
		}
		a := read(i)
		r.mu.Lock()
		r.answers[i] = &a
		if r.missing--; r.missing == 0 {
			close(r.all)
		}
		r.mu.Unlock()
	}
}

// readPorts reads the ports of every device that may be touched. When ctx ends,
// those that have not answered stay unread.
func (inv *Inventory) readPorts(ctx context.Context, detail pci.Detail, read func(device string) answer) {
	var devices []*Device
	for i := range inv.Devices {
		if d := &inv.Devices[i]; !d.NVLinkManagement && (d.PCI != nil || detail >= pci.Published) {
			devices = append(devices, d)
		}
	}
	if len(devices) == 0 {
		return
	}
	dirs := make([]string, len(devices)) // readers may be left behind: they share nothing
	for i, d := range devices {
		dirs[i] = d.dir
	}
	r := &relay{answers: make([]*answer, len(devices)), missing: len(devices), all: make(chan struct{})}
	r.wait(ctx, func(i int) answer { return read(dirs[i]) })
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range devices {
		if a := r.answers[i]; a != nil {
			inv.take(d, a)
		} else {
			inv.problem(fmt.Errorf("/%s/ports: no answer from the device", d.dir))
		}
	}
}

// wait runs a reader, and another whenever one has got no further for a while,
// until all devices have answered or ctx ends.
func (r *relay) wait(ctx context.Context, read func(i int) answer) {
	go r.run(read)
	ticks := time.NewTicker(patience)
	defer ticks.Stop()
	for before := 0; ; {
		select {
		case <-r.all:
			return
		case <-ctx.Done():
			return
		case <-ticks.C:
			r.mu.Lock()
			stuck := r.next == before
			before = r.next
			r.mu.Unlock()
			if stuck {
				go r.run(read)
			}
		}
	}
}

func (inv *Inventory) take(d *Device, a *answer) {
	d.Ports, d.PortsRead = a.ports, a.err == nil
	if a.err != nil {
		inv.problem(a.err)
	}
	inv.Problems = append(inv.Problems, a.problems...)
}

// errStuck tells that a device is still being read by an earlier scan.
var errStuck = errors.New("no answer from the device since an earlier reading")

// ports reads the ports of one device, unless an earlier scan still does.
func (s *Scanner) ports(fs *host.FS, device string, detail pci.Detail) answer {
	if _, busy := s.stuck.LoadOrStore(device, true); busy {
		return answer{err: fmt.Errorf("/%s/ports: %w", device, errStuck)}
	}
	defer s.stuck.Delete(device)
	return portsOf(fs, device, detail)
}

// Moved tells whether the state of some port is another one than when inv was
// scanned. It reads no more than that, and nothing of a device that an earlier
// reading is stuck in.
func (s *Scanner) Moved(fs *host.FS, inv *Inventory) bool {
	for i := range inv.Devices {
		if d := &inv.Devices[i]; d.PortsRead && s.moved(fs, d) {
			return true
		}
	}
	return false
}

func (s *Scanner) moved(fs *host.FS, d *Device) bool {
	if _, busy := s.stuck.LoadOrStore(d.dir, true); busy {
		return false
	}
	defer s.stuck.Delete(d.dir)
	for _, p := range d.Ports {
		text, err := fs.Line(d.dir + "/ports/" + strconv.Itoa(p.Number) + "/state")
		state := ""
		if err == nil {
			state, err = parseState(text)
		}
		if state != p.State || err != nil && p.State != "" {
			return true
		}
	}
	return false
}

// portsOf reads the ports of one device. It runs beside the others and shares
// nothing with them.
func portsOf(fs *host.FS, device string, detail pci.Detail) (a answer) {
	dir := device + "/ports"
	names, err := fs.Names(dir)
	if err != nil {
		a.err = err
		return a
	}
	problem := func(err error) { a.problems = append(a.problems, err) }
	for _, number := range names {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > 255 {
			problem(fmt.Errorf("/%s/%s is not a port", dir, number))
			continue
		}
		p := Port{Number: n}
		base := dir + "/" + number + "/"
		if text, err := fs.Line(base + "state"); err != nil {
			problem(err)
		} else if p.State, err = parseState(text); err != nil {
			problem(fmt.Errorf("/%sstate: %w", base, err))
		}
		if p.LinkLayer, err = linkLayer(fs, base+"link_layer"); err != nil {
			problem(err)
		}
		if detail >= pci.Advised && p.State != "ACTIVE" && p.State != "" {
			if p.Physical, err = physical(fs, base+"phys_state"); err != nil {
				problem(err)
			}
		}
		if detail >= pci.Published {
			if text, err := fs.Line(base + "rate"); err != nil {
				problem(err)
			} else if p.RateGbps, err = parseRate(text); err != nil {
				problem(fmt.Errorf("/%srate: %w", base, err))
			}
		}
		a.ports = append(a.ports, p)
	}
	slices.SortFunc(a.ports, func(a, b Port) int { return a.Number - b.Number })
	return a
}

// physical reads a port's physical state; "" where the driver has none.
func physical(fs *host.FS, name string) (string, error) {
	text, err := fs.Line(name)
	switch {
	case host.Absent(err):
		return "", nil
	case err != nil:
		return "", err
	}
	if text, err = parsePhysical(text); err != nil {
		return "", fmt.Errorf("/%s: %w", name, err)
	}
	return text, nil
}

// linkLayer reads one of the words the kernel knows (rdma_port_get_link_layer).
func linkLayer(fs *host.FS, name string) (string, error) {
	text, err := fs.Line(name)
	if err != nil {
		return "", err
	}
	switch text {
	case "InfiniBand", "Ethernet", "Unspecified", "Unknown":
		return text, nil
	}
	return "", fmt.Errorf("/%s: %q is not a link layer", name, text)
}
