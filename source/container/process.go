package container

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/tristate"
)

// Files that a Process is read from.
const (
	LimitsFile = "/proc/self/limits"
	StatusFile = "/proc/self/status"
	UIDMapFile = "/proc/self/uid_map"
)

// Process is what the kernel allows a process. A container's processes start with what the
// container has.
type Process struct {
	// Locked is how much memory it may lock, from LimitsFile; nil where it is not known.
	Locked *Limit
	// Capabilities are from StatusFile; nil where they are not known.
	Capabilities *Capabilities
	// User is its effective user id, from StatusFile; -1 where it is not known.
	User int
	// OwnUsers: it is in a user namespace whose ids are not those of the machine, in which
	// its capabilities do not lift the machine's limits. From UIDMapFile.
	OwnUsers tristate.State
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// Limit is a soft resource limit: a number of bytes, or none.
type Limit struct {
	Bytes     uint64
	Unlimited bool
}

// Capabilities are sets of capabilities, bit n for the capability number n
// (include/uapi/linux/capability.h).
type Capabilities struct{ Effective, Bounding uint64 }

// Capabilities that lift limits, by number.
const (
	CapIPCLock  = 14 // of locked memory
	CapSysAdmin = 21
)

// HasCapability reports whether a set has a capability.
func HasCapability(set uint64, capability int) bool { return set>>capability&1 == 1 }

// readProcess reads what this process may do: that which the file tree's /proc/self belongs to.
func readProcess(fs *host.FS) Process {
	p := Process{User: -1}
	read := func(name string, parse func(text string) error) {
		text, err := fs.Bytes(name[1:], 64<<10) // several times the size of either
		if err == nil {
			if err = parse(string(text)); err != nil {
				err = host.PathError("read", name[1:], err)
			}
		}
		if err != nil {
			p.Problems = append(p.Problems, err)
		}
	}
	read(LimitsFile, func(text string) error {
		limit, err := lockedMemory(text)
		if err == nil {
			p.Locked = &limit
		}
		return err
	})
	read(StatusFile, p.status)
	p.OwnUsers = ownUsers(fs, &p)
	return p
}

// lockedMemory reads the soft limit of locked memory in the text of /proc/PID/limits, the
// first of the two values (fs/proc/base.c, proc_pid_limits):
//
//	Max locked memory         8388608              8388608              bytes
func lockedMemory(text string) (Limit, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "Max locked memory ")
		if !ok {
			continue
		}
		if words := strings.Fields(rest); len(words) == 3 && words[2] == "bytes" {
			n, err := strconv.ParseUint(words[0], 10, 64)
			if unlimited := words[0] == "unlimited"; unlimited || err == nil {
				return Limit{n, unlimited}, nil
			}
		}
		return Limit{}, fmt.Errorf("%.80q is not a limit in bytes", strings.TrimSpace(line))
	}
	return Limit{}, errors.New(`no line "Max locked memory"`)
}

// status reads the lines Uid (real, effective, saved, of the file system), CapEff and CapBnd
// of /proc/PID/status (fs/proc/array.c).
func (p *Process) status(text string) error {
	var sets Capabilities
	user, found := -1, 0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		var err error
		switch key {
		case "Uid":
			if words := strings.Fields(value); len(words) > 1 {
				value = words[1]
			}
			user, err = strconv.Atoi(value)
		case "CapEff":
			sets.Effective, err = strconv.ParseUint(value, 16, 64)
		case "CapBnd":
			sets.Bounding, err = strconv.ParseUint(value, 16, 64)
		default:
			continue
		}
		if err != nil || user < -1 {
			return fmt.Errorf("%.80q is not what it should be", strings.TrimSpace(line))
		}
		found++
	}
	if found != 3 || user < 0 {
		return errors.New("no lines Uid, CapEff and CapBnd")
	}
	p.User, p.Capabilities = user, &sets
	return nil
}

// ownUsers compares the user ids of the process with those of the machine. Kernels without
// user namespaces have no such file.
func ownUsers(fs *host.FS, p *Process) tristate.State {
	text, err := fs.Line(UIDMapFile[1:])
	if host.Absent(err) && p.Capabilities != nil {
		return tristate.False
	}
	words := strings.Fields(text)
	if err == nil && (len(words)%3 != 0 || strings.Trim(strings.Join(words, ""), "0123456789") != "") {
		err = host.PathError("read", UIDMapFile[1:], errors.New("not lines of three numbers"))
	}
	if err != nil {
		p.Problems = append(p.Problems, err)
		return tristate.Unknown
	}
	// All ids, each as itself (kernel/user.c, init_user_ns).
	return tristate.Of(strings.Join(words, " ") != "0 0 4294967295")
}
