// Package mpqemu is the far end of QEMU's multi-process protocol, as far as a PCI
// function with nothing but a configuration space needs it: QEMU's device
// x-pci-proxy-dev asks over a socket, and Serve answers
// (include/hw/remote/mpqemu-link.h and hw/remote/proxy.c of QEMU 7.2).
package mpqemu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Command is what a message asks for (MPQemuCmd).
type Command int32

// The commands, in QEMU's order.
const (
	SyncSysmem Command = iota // here is the memory of the guest
	Return                    // the answer to the command before
	ConfigWrite
	ConfigRead
	BarWrite
	BarRead
	SetIRQFD
	DeviceReset
)

const (
	headerSize = 16  // int32 command, 4 bytes of padding, uint64 size
	accessSize = 12  // PciConfDataMsg: uint32 address, uint32 value, int32 length
	largest    = 192 // SyncSysmemMsg: three times eight uint64
)

// Access is a read or a write of configuration space (PciConfDataMsg).
type Access struct {
	Address, Value uint32
	Length         int32
}

// Message is one message without the file handles that may come with it.
type Message struct {
	Command Command
	Payload []byte
}

// ReadMessage reads a message. The file handles that came with it, the memory of
// the guest and its interrupts, are closed by the kernel since they are not asked
// for.
func ReadMessage(in io.Reader) (Message, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return Message{}, err
	}
	m := Message{Command: Command(binary.LittleEndian.Uint32(head[:]))} //nolint:gosec // a signed number in four bytes
	size := binary.LittleEndian.Uint64(head[8:])
	if size > largest {
		return Message{}, fmt.Errorf("command %d with %d bytes", m.Command, size)
	}
	m.Payload = make([]byte, size)
	if _, err := io.ReadFull(in, m.Payload); err != nil {
		return Message{}, fmt.Errorf("command %d: %w", m.Command, noEOF(err))
	}
	return m, nil
}

// noEOF makes an end within a message an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Access returns what a ConfigRead or a ConfigWrite is about.
func (m Message) Access() (Access, error) {
	if len(m.Payload) != accessSize {
		return Access{}, fmt.Errorf("command %d with %d bytes, want %d", m.Command, len(m.Payload), accessSize)
	}
	a := Access{
		Address: binary.LittleEndian.Uint32(m.Payload),
		Value:   binary.LittleEndian.Uint32(m.Payload[4:]),
		Length:  int32(binary.LittleEndian.Uint32(m.Payload[8:])), //nolint:gosec // a signed number in four bytes
	}
	if a.Length != 1 && a.Length != 2 && a.Length != 4 || a.Address > spaceSize-uint32(a.Length) {
		return Access{}, fmt.Errorf("command %d for %d bytes at %#x", m.Command, a.Length, a.Address)
	}
	return a, nil
}

// reply encodes the answer to a command.
func reply(value uint64) []byte {
	out := make([]byte, headerSize+8)
	binary.LittleEndian.PutUint32(out, uint32(Return))
	binary.LittleEndian.PutUint64(out[8:], 8)
	binary.LittleEndian.PutUint64(out[headerSize:], value)
	return out
}

// Serve answers for a function until QEMU hangs up.
func Serve(conn io.ReadWriter, space *Space) error {
	for {
		m, err := ReadMessage(conn)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		value, answered, err := space.handle(m)
		if err != nil {
			return err
		}
		if answered {
			if _, err := conn.Write(reply(value)); err != nil {
				return err
			}
		}
	}
}

// handle does what a message asks for. answered is false for one that QEMU
// expects no answer to.
func (s *Space) handle(m Message) (value uint64, answered bool, err error) {
	switch m.Command {
	case SyncSysmem, SetIRQFD:
		return 0, false, nil
	case ConfigRead, ConfigWrite:
		a, err := m.Access()
		if err != nil {
			return 0, false, err
		}
		if m.Command == ConfigRead {
			return uint64(s.Read(a.Address, a.Length)), true, nil
		}
		s.Write(a.Address, a.Value, a.Length)
		return 0, true, nil
	case DeviceReset:
		s.Reset()
		return 0, true, nil
	case BarRead, BarWrite: // there is no memory behind the function
		return ^uint64(0), true, nil
	case Return:
	}
	return 0, false, fmt.Errorf("command %d", m.Command)
}
