package kmod

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// maxKernelConfig is several times the largest configuration seen (300 KB, 70 KB packed).
const maxKernelConfig = 4 << 20

// kernelOptions reads those options of the kernel's configuration that the GPUs
// ask for. It does not change while the kernel runs: it is remembered when all of them are there.
func (m *Cache) kernelOptions(s *scanner) map[string]tristate.State {
	var options []family.KernelOption
	for _, g := range s.here.GPUs {
		if len(s.all(func(f *pci.Function) bool { return f.GPU == g && f.Counts() })) > 0 {
			options = append(options, g.KernelOptions...)
		}
	}
	if len(options) == 0 {
		return nil
	}
	if m != nil && m.options != nil {
		s.files.note(m.config)
		return m.options
	}
	release := s.release()
	file, text := s.kernelConfig(release)
	read := make(map[string]tristate.State, len(options))
	for _, o := range options {
		read[o.Name] = optionIn(text, release, o)
		if text != "" && read[o.Name] == tristate.Unknown {
			s.unread(host.PathError("read", file, fmt.Errorf("no line about CONFIG_%s", o.Name)))
		}
	}
	if m != nil && !slices.ContainsFunc(options, func(o family.KernelOption) bool { return read[o.Name] != tristate.True }) {
		m.options, m.config = read, file // what is not there may come with a file that is being written
	}
	return read
}

// kernelConfig returns the configuration of the running kernel, "" if none can be read. It
// is in the first of three files: /proc/config.gz (kernel: kernel/configs.c), or one of two
// that distributions install.
func (s *scanner) kernelConfig(release string) (file, text string) {
	const packed = "proc/config.gz"
	data, err := s.fs.Bytes(packed, maxKernelConfig)
	if err == nil {
		if data, err = Unpack(data); err == nil && !isConfig(data) {
			err = errNoConfig
		}
		if err == nil {
			return packed, string(data)
		}
		err = host.PathError("read", packed, err)
	}
	s.problem(err)
	if release == "" {
		return "", ""
	}
	for _, name := range [...]string{"boot/config-" + release, hostModule + release + "/config"} {
		if data, err = s.fs.Bytes(name, maxKernelConfig); err == nil && isConfig(data) {
			return name, string(data)
		} else if err == nil {
			err = host.PathError("read", name, errNoConfig)
		}
		s.problem(err)
	}
	if host.Absent(err) {
		s.unread(err)
	}
	return "", ""
}

var errNoConfig = errors.New("not a kernel configuration")

func isConfig(text []byte) bool {
	return bytes.HasPrefix(text, []byte("CONFIG_")) || bytes.Contains(text, []byte("\nCONFIG_"))
}

// Unpack unpacks /proc/config.gz.
func Unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxKernelConfig+1))
	if err == nil && len(text) > maxKernelConfig {
		err = host.ErrTooLarge
	}
	return text, err
}

// EndOfDrivers ends the menu that all of the options are in. Linux 5.4 and newer write it.
const EndOfDrivers = "# end of Device Drivers"

// optionIn reports whether a kernel with this configuration and release has an option built in:
// "CONFIG_PCI_P2PDMA=y". An option that is not built in is "# CONFIG_PCI_P2PDMA is not set", or is
// not mentioned; the latter proves it only where the place of the option was passed, since the
// file may be cut.
func optionIn(config, release string, option family.KernelOption) tristate.State {
	if !isConfig([]byte(config)) {
		return tristate.Unknown
	}
	var mentioned, always, passed bool
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		switch line {
		case "CONFIG_" + option.Name + "=y":
			return tristate.True
		case "CONFIG_" + option.Always + "=y":
			always = true
		case EndOfDrivers:
			passed = true
		}
		value, _ := strings.CutPrefix(line, "CONFIG_"+option.Name+"=")
		mentioned = mentioned || value != line && value != "" || line == "# CONFIG_"+option.Name+" is not set"
	}
	switch {
	case mentioned:
		return tristate.False
	case always && goneIn(release, option):
		return tristate.True
	case always, !passed: // where Always is, each kernel that has the option mentions it
		return tristate.Unknown
	}
	return tristate.False
}

// goneIn reports whether a kernel is known to be one of those that have no such option any more.
func goneIn(release string, option family.KernelOption) bool {
	var v [2]int
	n, _ := fmt.Sscanf(release, "%d.%d", &v[0], &v[1])
	return n == len(v) && option.Gone != [2]int{} && slices.Compare(v[:], option.Gone[:]) >= 0
}
