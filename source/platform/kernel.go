package platform

import (
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/version"
	"gdr-features/tristate"
)

// Files of the kernel as a whole.
const (
	CommandLineFile   = "/proc/cmdline"
	NUMABalancingFile = "/proc/sys/kernel/numa_balancing"
	ReleaseFile       = "/proc/sys/kernel/osrelease"
)

// AboutIOMMU reports whether a word of the kernel's command line is about the IOMMU.
func AboutIOMMU(word string) bool {
	key, _, _ := strings.Cut(word, "=")
	return strings.Contains(key, "iommu")
}

// KernelBefore reports whether a release is older than a version, "6.8.0-45-generic" than 6.11.
// Unknown for what does not begin with two numbers.
func KernelBefore(release string, major, minor int) tristate.State {
	numbers, _ := version.Parse(release)
	if len(numbers) < 2 {
		return tristate.Unknown
	}
	return tristate.Of(slices.Compare(numbers[:2], []int{major, minor}) < 0)
}

// ReadRelease reads the release of the running kernel from ReleaseFile, "6.8.0-45-generic"; ""
// where it is not known, or is none that can be part of a path.
func ReadRelease(fs *host.FS) (string, error) {
	release, err := fs.Line(ReleaseFile[1:])
	if strings.ContainsAny(release, "/ ") || sanitize.Terminal(release) != release {
		return "", err
	}
	return release, err
}
