package kmod

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/version"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

// Origin says where the RDMA drivers come from.
type Origin uint8

// Origins of the RDMA drivers.
const (
	OriginUnknown   Origin = iota
	OriginNotLoaded        // no driver that MOFED has is loaded
	OriginInbox            // the kernel's own
	OriginMOFED            // MLNX_OFED or DOCA-OFED
)

// MOFED is the origin of the RDMA drivers and, for MOFED and DOCA-OFED, their
// version ("24.10-1.1.4"; "" when it is not known).
type MOFED struct {
	Origin  Origin
	Version string
	// File is where the version stands, or would; "" where no driver tells it.
	File string
}

// mofed distinguishes MOFED from a kernel's own drivers. mlx_compat belongs to MOFED
// alone. Kernels up to 5.10 gave their drivers a version as well, constants that are
// no MOFED's.
func (s *scanner) mofed(nics []*family.NIC) MOFED {
	compat := s.present("mlx_compat")
	var modules []string
	for _, n := range nics {
		if n.MOFED {
			modules = append(modules, n.Drivers...)
		}
	}
	slices.Sort(modules)
	for _, module := range slices.Backward(modules) { // the newest driver first
		switch s.present(module) {
		case tristate.False:
			continue
		case tristate.Unknown:
			return MOFED{}
		case tristate.True:
		}
		file := AttributeFile(module, "version")
		text, err := s.fs.Line(file[1:])
		if err != nil && !host.Absent(err) {
			s.problem(err)
			compat = tristate.Or(compat, tristate.Unknown) // without the version, only mlx_compat proves anything
		}
		judged, err := judgeMOFED(compat, file, text)
		s.problem(err)
		return judged
	}
	return MOFED{Origin: originOr(compat, OriginNotLoaded)}
}

// judgeMOFED judges by the facts about a loaded driver that MOFED has: whether
// mlx_compat is loaded, and the module's version from a file, "" for none.
func judgeMOFED(compat tristate.State, file, text string) (MOFED, error) {
	switch {
	case isMOFEDVersion(text):
		return MOFED{OriginMOFED, text, file}, nil
	case compat != tristate.True && text != "" && !isInboxVersion(text):
		return MOFED{File: file}, fmt.Errorf("%s: %q is not a driver version", file, text)
	}
	return MOFED{Origin: originOr(compat, OriginInbox), File: file}, nil
}

// originOr is the origin without a version of MOFED's: other where mlx_compat is not loaded.
func originOr(compat tristate.State, other Origin) Origin {
	switch compat {
	case tristate.True:
		return OriginMOFED
	case tristate.False:
		return other
	default:
		return OriginUnknown
	}
}

// isInboxVersion recognizes the constants of kernels' own mlx4 and mlx5 drivers
// (DRIVER_VERSION in mlx5_core.h, DRV_VERSION in mlx4.h, over the releases).
func isInboxVersion(v string) bool {
	return slices.Contains([]string{"1.0", "1.1", "2.2-1", "3.0-1", "4.0-0", "5.0-0"}, v)
}

// isMOFEDVersion accepts "24.10-1.1.4": release, a dash, then the build.
func isMOFEDVersion(v string) bool {
	_, _, ok := release(v)
	return ok && !isInboxVersion(v)
}

// Release returns major and minor of the version; ok is false where it is not known.
func (m MOFED) Release() (major, minor int, ok bool) { return release(m.Version) }

// release takes major and minor from "24.10-1.1.4".
func release(v string) (major, minor int, ok bool) {
	numbers, behind := version.Parse(v)
	build, dash := strings.CutPrefix(behind, "-")
	if !dash || len(numbers) != 2 || max(numbers[0], numbers[1]) > 9999 {
		return 0, 0, false
	}
	// The build is numbers too, and may end in a distributor's word.
	if build == "" || build[0] < '0' || build[0] > '9' || strings.Trim(build, versionChars) != "" {
		return 0, 0, false
	}
	return numbers[0], numbers[1], true
}

const versionChars = "0123456789.-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
