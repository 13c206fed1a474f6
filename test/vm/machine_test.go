//go:build vm

package vm

import (
	"encoding/json"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"gdr-features/test/vm/initramfs"
	"gdr-features/test/vm/wire"
)

// machine is a virtual machine that has started.
type machine struct {
	t       *testing.T
	line    net.Conn
	ask     *json.Encoder
	answer  *json.Decoder
	modules initramfs.Modules
	wiring  *wiring
	up      time.Duration     // the machine's own time when it last answered
	address map[string]string // of the functions, by name
	driven  map[string]driven // by name of the function
}

// driven is what drives a function: its PCI driver, and its RDMA device.
type driven struct{ driver, rdma string }

const (
	devices = "/sys/bus/pci/devices/"
	root    = 0
	nobody  = 65534
)

// receive waits for the machine to say something.
func (m *machine) receive(limit time.Duration) wire.Response {
	m.t.Helper()
	var r wire.Response
	if err := m.line.SetReadDeadline(time.Now().Add(limit)); err != nil {
		m.t.Fatal(err)
	}
	if err := m.answer.Decode(&r); err != nil {
		m.t.Fatalf("the machine: %v", err)
	}
	m.up = r.Up
	return r
}

// try asks for something that may fail.
func (m *machine) try(q wire.Request) wire.Response {
	m.t.Helper()
	if err := m.ask.Encode(q); err != nil {
		m.t.Fatal(err)
	}
	return m.receive(askLimit)
}

// do asks for something that must not fail.
func (m *machine) do(q wire.Request) wire.Response {
	m.t.Helper()
	r := m.try(q)
	if r.Failed != "" {
		m.t.Fatalf("%+v: %s", q, r.Failed)
	}
	return r
}

func (m *machine) read(path string) string {
	m.t.Helper()
	return string(m.do(wire.Request{Command: wire.Read, Path: path}).Data)
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	m.do(wire.Request{Command: wire.Write, Path: path, Data: []byte(text)})
}

// functions are the addresses of all PCI functions.
func (m *machine) functions() iter.Seq[string] {
	m.t.Helper()
	return strings.SplitSeq(m.do(wire.Request{Command: wire.List, Path: devices}).Out, "\n")
}

// locate finds out where the kernel sees the functions that were wired.
func (m *machine) locate() {
	m.t.Helper()
	m.address = map[string]string{}
	for address := range m.functions() {
		vendor := m.read(devices + address + "/subsystem_vendor")
		wired := func(f function) bool { return vendor == fmt.Sprintf("%#04x\n", f.Vendor) }
		if !slices.ContainsFunc(m.wiring.functions, wired) {
			continue
		}
		var number int
		if _, err := fmt.Sscanf(m.read(devices+address+"/subsystem_device"), "%v", &number); err != nil {
			m.t.Fatal(err)
		}
		m.address[m.wiring.functions[number-1].name] = address
	}
	if len(m.address) != len(m.wiring.functions) {
		m.t.Fatalf("the kernel sees %v", m.address)
	}
}

// device is the directory of a function that was wired.
func (m *machine) device(name string) string {
	m.t.Helper()
	address, ok := m.address[name]
	if !ok {
		m.t.Fatalf("no function %s", name)
	}
	return devices + address
}

// gdr runs gdr-features as somebody. It must end with that status and say nothing
// on standard error. On a busy machine the emulated one may take longer to read
// than gdr-features waits; then it runs again.
func (m *machine) gdr(uid uint32, status int, args ...string) string {
	m.t.Helper()
	var r wire.Response
	for range rounds {
		r = m.do(wire.Request{Command: wire.Run, UID: uid, Args: append([]string{"/gdr-features"}, args...)})
		if !strings.Contains(r.Err, "no answer in time") {
			break
		}
	}
	if r.Err != "" || r.Status != status {
		m.t.Errorf("user %d, %v: status %d, want %d; %s", uid, args, r.Status, status, r.Err)
	}
	return r.Out
}

// decode runs gdr-features and reads the JSON that it prints.
func (m *machine) decode(into any, uid uint32, status int, args ...string) {
	m.t.Helper()
	if err := json.Unmarshal([]byte(m.gdr(uid, status, append(args, "-o", "json")...)), into); err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
}

// load loads a module and those that it needs.
func (m *machine) load(module string) {
	m.t.Helper()
	m.loadNeeds(module)
	m.insert(module)
}

// loadNeeds loads the modules that a module needs.
func (m *machine) loadNeeds(module string) {
	m.t.Helper()
	order, err := m.modules.Order(module)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, one := range order[:len(order)-1] {
		m.insert(one)
	}
}

// insert loads one module, unless it is there.
func (m *machine) insert(module string) {
	m.t.Helper()
	r := m.try(wire.Request{Command: wire.Insert, Path: "/modules/" + module + ".ko"})
	if r.Failed != "" && r.Failed != "file exists" {
		m.t.Fatalf("%s: %s", module, r.Failed)
	}
}

func (m *machine) unload(module string) {
	m.t.Helper()
	m.do(wire.Request{Command: wire.Remove, Path: module})
}
