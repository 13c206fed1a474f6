package rdma

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gdr-features/internal/host"
	"gdr-features/source/pci"
)

// patience is how long one device may hold up the next. A device that takes
// longer is left behind and looked at again at the end.
const patience = 300 * time.Millisecond

// answer is what the reader of one device found.
type answer struct {
	ports    []Port
	err      error
	problems []error
}

// readPorts reads the ports of every device, each in a goroutine of its own, so
// that one whose firmware does not answer costs its own facts only.
func (inv *Inventory) readPorts(ctx context.Context, fs *host.FS, detail pci.Detail) {
	type waiting struct {
		device *Device
		from   chan answer
	}
	var late []waiting
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for i := range inv.Devices {
		d := &inv.Devices[i]
		if d.NVLinkManagement || d.PCI == nil && detail != pci.Everything {
			continue
		}
		from := make(chan answer, 1)
		go func() { from <- portsOf(fs, d.Name, detail) }()
		timer.Reset(patience)
		select {
		case a := <-from:
			inv.take(d, a)
		case <-timer.C:
			late = append(late, waiting{d, from})
		case <-ctx.Done():
			late = append(late, waiting{d, from})
		}
	}
	for _, w := range late {
		select {
		case a := <-w.from:
			inv.take(w.device, a)
		case <-ctx.Done():
			select {
			case a := <-w.from: // both were ready
				inv.take(w.device, a)
			default:
				inv.problem(fmt.Errorf("/%s/%s/ports: no answer from the device", classDir, w.device.Name))
			}
		}
	}
}

func (inv *Inventory) take(d *Device, a answer) {
	d.Ports, d.PortsRead = a.ports, a.err == nil
	if a.err != nil {
		inv.problem(a.err)
	}
	inv.Problems = append(inv.Problems, a.problems...)
}

// portsOf reads the ports of one device. It runs beside the others and shares
// nothing with them.
func portsOf(fs *host.FS, name string, detail pci.Detail) (a answer) {
	dir := classDir + "/" + name + "/ports"
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
		if detail == pci.Everything {
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
