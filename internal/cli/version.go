package cli

import "runtime/debug"

// Version is the version set by the linker, or else the one that the toolchain
// recorded: the module's version, or the commit it was built from.
func Version(linked string) string {
	if linked != "" {
		return linked
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}
