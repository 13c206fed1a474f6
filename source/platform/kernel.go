package platform

import (
	"strings"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
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

// ReadRelease reads the release of the running kernel from ReleaseFile, "6.8.0-45-generic"; ""
// where it is not known, or is none that can be part of a path.
func ReadRelease(fs *host.FS) (string, error) {
	release, err := fs.Line(ReleaseFile[1:])
	if strings.ContainsAny(release, "/ ") || sanitize.Terminal(release) != release {
		return "", err
	}
	return release, err
}
