package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/source"
)

// answer is what the reader of one device found.
type answer struct {
	ports    []Port
	err      error
	problems []error
}

// readPorts reads the ports of every device that may be touched. When ctx ends, those that
// have not answered stay unread. A reader that hangs outlives this call, so it takes copies of
// what it needs and touches neither the inventory nor its devices.
func (s *Scanner) readPorts(ctx context.Context, fs *host.FS, inv *Inventory, what source.What) {
	var devices []*Device
	var read []func() answer
	for i := range inv.Devices {
		d := &inv.Devices[i]
		if d.NVLinkManagement || d.PCI == nil && !what.Publish && !what.Advice {
			continue
		}
		dir, net := d.dir, ""
		if d.netDevMTU {
			net = functionDir(*d.PCI) + "/net"
		}
		devices = append(devices, d)
		read = append(read, func() answer { return s.ports(fs, dir, net, what) })
	}
	answers := make([]atomic.Pointer[answer], len(devices)) // nil until a device has answered
	deadline.InTurn(ctx, len(devices), func(i int) {
		a := read[i]()
		answers[i].Store(&a)
	})
	for i, d := range devices {
		a := answers[i].Load()
		if a == nil {
			inv.problem(fmt.Errorf("/%s/ports: no answer from the device", d.dir))
			continue
		}
		d.Ports, d.PortsRead = a.ports, a.err == nil
		for j := range d.Ports {
			d.Ports[j].Layers = d.layers
		}
		if a.err != nil {
			inv.problem(a.err)
		}
		inv.Problems = append(inv.Problems, a.problems...)
	}
}

// errStuck tells that an earlier Scan is still reading a device.
var errStuck = errors.New("no answer from the device since an earlier reading")

// ports reads the ports of one device, unless an earlier Scan still does.
func (s *Scanner) ports(fs *host.FS, dir, net string, what source.What) answer {
	if _, busy := s.stuck.LoadOrStore(dir, true); busy {
		return answer{err: fmt.Errorf("/%s/ports: %w", dir, errStuck)}
	}
	defer s.stuck.Delete(dir)
	return portsOf(fs, dir+"/ports", net, what)
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
		if state, _ := attribute(fs, d.PortFile(p.Number, StateFile)[1:], parseState); state != p.State {
			return true
		}
	}
	return false
}

// portsOf reads the ports in a directory. net is that of the device's network devices, "" where
// they do not matter.
func portsOf(fs *host.FS, dir, net string, what source.What) (a answer) {
	ports := fs.In(dir)
	defer ports.Close()
	names, err := ports.Names(dir)
	if err != nil {
		a.err = err
		return a
	}
	problem := func(err error) {
		if err != nil {
			a.problems = append(a.problems, err)
		}
	}
	for _, number := range names {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > 255 {
			problem(fmt.Errorf("/%s/%s is not a port", dir, number))
			continue
		}
		p := Port{Number: n}
		base := dir + "/" + number + "/"
		if what.Everything { // for the snapshot alone; the kernel knows them without asking the NIC
			_, _ = readGIDs(fs, base)
		}
		p.State, err = attribute(ports, base+StateFile, parseState)
		problem(err)
		p.LinkLayer, err = attribute(ports, base+LinkLayerFile, parseLinkLayer)
		problem(err)
		if what.Advice && p.State != "ACTIVE" && p.State != "" {
			p.Physical, err = attribute(ports, base+"phys_state", parsePhysical)
			if !host.Absent(err) { // not every driver has it
				problem(err)
			}
		}
		p.RateGbps, err = attribute(ports, base+RateFile, parseRate)
		problem(err)
		if what.Publish && p.State == "ACTIVE" && p.LinkLayer == "Ethernet" {
			p.RoCE, err = readRoCE(fs, base, net)
			problem(err)
		}
		a.ports = append(a.ports, p)
	}
	slices.SortFunc(a.ports, func(a, b Port) int { return a.Number - b.Number })
	return a
}

func attribute[T any](fs *host.FS, name string, parse func(string) (T, error)) (value T, err error) {
	text, err := fs.Line(name)
	if err != nil {
		return value, err
	}
	if value, err = parse(text); err != nil {
		err = fmt.Errorf("/%s: %w", name, err)
	}
	return value, err
}

// parseState reads "4: ACTIVE" by its number (Documentation/ABI/stable/
// sysfs-class-infiniband; names: InfiniBand Architecture, PortInfo:PortState).
func parseState(text string) (string, error) {
	return byNumber(text, "a port state", portStates[:])
}

var portStates = [...]string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}

// parsePhysical reads "2: Polling" by its number (PortInfo:PortPhysicalState).
func parsePhysical(text string) (string, error) {
	return byNumber(text, "a physical state", physicalStates[:])
}

var physicalStates = [...]string{
	"", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test",
}

// byNumber returns the name whose index is the number before a text's colon.
func byNumber(text, what string, names []string) (string, error) {
	number, _, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if !ok || err != nil || n < 0 || n >= len(names) {
		return "", fmt.Errorf("%q is not %s", text, what)
	}
	return names[n], nil
}

const unspecified = "Unspecified"

// parseLinkLayer reads one of the words the kernel knows. It writes "Unknown" for
// IB_LINK_LAYER_UNSPECIFIED (kernel: drivers/infiniband/core/sysfs.c, link_layer_show).
func parseLinkLayer(text string) (string, error) {
	switch text {
	case "InfiniBand", "Ethernet", unspecified:
		return text, nil
	case "Unknown":
		return unspecified, nil
	}
	return "", fmt.Errorf("%q is not a link layer", text)
}

// parseRate reads "400 Gb/sec (4X NDR)" as Gbit/s.
func parseRate(text string) (float64, error) {
	number, rest, ok := strings.Cut(text, " ")
	rate, err := strconv.ParseFloat(number, 64)
	// The comparison is false for NaN too.
	if sane := rate >= 0 && rate < 1e6; !ok || err != nil || !strings.HasPrefix(rest, "Gb/sec") || !sane {
		return 0, fmt.Errorf("%q is not a port rate", text)
	}
	return rate, nil
}
