package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"gdr-features/host"
)

// readerTimeout is how long one device may hold up the others.
const readerTimeout = 300 * time.Millisecond

// answer is what the reader of one device found.
type answer struct {
	ports    []Port
	err      error
	problems []error
}

// readPorts reads the ports of every device that may be touched. When ctx ends,
// those that have not answered stay unread.
func (inv *Inventory) readPorts(ctx context.Context, facts Facts, read func(device string) answer) {
	var devices []*Device
	for i := range inv.Devices {
		if d := &inv.Devices[i]; !d.NVLinkManagement && (d.PCI != nil || facts&SoftwareDevices != 0) {
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
	answers := inTurn(ctx, len(devices), func(i int) answer { return read(dirs[i]) })
	for i, d := range devices {
		if a := answers[i]; a != nil {
			inv.store(d, a)
		} else {
			inv.problem(fmt.Errorf("/%s/ports: no answer from the device", d.dir))
		}
	}
}

// inTurn reads n devices one after the other and gives their answers, nil for
// none. A reader that makes no progress for a while is left waiting for its device,
// and another goes on with the next. When ctx ends, no further device is read.
func inTurn(ctx context.Context, n int, read func(i int) answer) []*answer {
	type numbered struct {
		device int
		answer answer
	}
	from := make(chan numbered, n) // so that a reader never blocks on sending
	var begun atomic.Int64         // devices whose reading has begun
	reader := func() {
		for ctx.Err() == nil {
			i := int(begun.Add(1)) - 1
			if i >= n {
				return
			}
			from <- numbered{i, read(i)}
		}
	}
	go reader()
	ticks := time.NewTicker(readerTimeout)
	defer ticks.Stop()
	answers := make([]*answer, n)
	keep := func(a numbered) { answers[a.device] = &a.answer }
	before := int64(0)
	for missing := n; missing > 0; {
		select {
		case a := <-from:
			keep(a)
			missing--
		case <-ticks.C:
			if now := begun.Load(); now > before {
				before = now
			} else if int(now) < n {
				go reader()
			}
		case <-ctx.Done():
			for len(from) > 0 { // answers that had come as well
				keep(<-from)
			}
			return answers
		}
	}
	return answers
}

func (inv *Inventory) store(d *Device, a *answer) {
	d.Ports, d.PortsRead = a.ports, a.err == nil
	for i := range d.Ports {
		d.Ports[i].Layers = d.layers
	}
	if a.err != nil {
		inv.problem(a.err)
	}
	inv.Problems = append(inv.Problems, a.problems...)
}

// errStuck tells that an earlier Scan is still reading a device.
var errStuck = errors.New("no answer from the device since an earlier reading")

// ports reads the ports of one device, unless an earlier Scan still does.
func (s *Scanner) ports(fs *host.FS, device string, facts Facts) answer {
	if _, busy := s.stuck.LoadOrStore(device, true); busy {
		return answer{err: fmt.Errorf("/%s/ports: %w", device, errStuck)}
	}
	defer s.stuck.Delete(device)
	return portsOf(fs, device, facts)
}

// Moved reports whether the state of some port has changed since inv was scanned. It
// reads no more than that, and nothing of a device that an earlier Scan or Moved is
// still reading.
func (s *Scanner) Moved(fs *host.FS, inv *Inventory) bool {
	for i := range inv.Devices {
		if d := &inv.Devices[i]; d.PortsRead && s.moved(fs, d) {
			return true
		}
	}
	return false
}

func (s *Scanner) moved(fs *host.FS, d *Device) bool {
	if _, busy := s.stuck.Load(d.dir); busy {
		return false
	}
	if _, busy := s.polled.LoadOrStore(d.dir, true); busy {
		return false
	}
	defer s.polled.Delete(d.dir)
	for _, p := range d.Ports {
		text, err := fs.Line(d.dir + "/ports/" + strconv.Itoa(p.Number) + "/" + StateFile)
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
func portsOf(fs *host.FS, device string, facts Facts) (a answer) {
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
		if text, err := fs.Line(base + StateFile); err != nil {
			problem(err)
		} else if p.State, err = parseState(text); err != nil {
			problem(fmt.Errorf("/%sstate: %w", base, err))
		}
		if p.LinkLayer, err = linkLayer(fs, base+LinkLayerFile); err != nil {
			problem(err)
		}
		if facts&PhysicalStates != 0 && p.State != "ACTIVE" && p.State != "" {
			if p.Physical, err = physical(fs, base+"phys_state"); err != nil {
				problem(err)
			}
		}
		if text, err := fs.Line(base + RateFile); err != nil {
			problem(err)
		} else if p.RateGbps, err = parseRate(text); err != nil {
			problem(fmt.Errorf("/%srate: %w", base, err))
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

const unspecified = "Unspecified"

// linkLayer reads one of the words the kernel knows. It writes "Unknown" for
// IB_LINK_LAYER_UNSPECIFIED (kernel: drivers/infiniband/core/sysfs.c, link_layer_show).
func linkLayer(fs *host.FS, name string) (string, error) {
	text, err := fs.Line(name)
	if err != nil {
		return "", err
	}
	switch text {
	case "InfiniBand", "Ethernet", unspecified:
		return text, nil
	case "Unknown":
		return unspecified, nil
	}
	return "", fmt.Errorf("/%s: %q is not a link layer", name, text)
}
