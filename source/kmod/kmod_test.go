package kmod

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/tristate"
)

const (
	openLine   = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release Build  (dvs-builder@U22-I3-B03-07-1)  Fri Jan 30 10:00:00 PM UTC 2026\n"
	closedLine = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
)

// A GPU that is bound to the driver proves it loaded, whatever the type of its kernel modules.
func TestScanBoundDriver(t *testing.T) {
	for bound, want := range map[bool]Driver{
		false: {Loaded: tristate.False, Open: tristate.False},
		true:  {Loaded: tristate.True, Open: tristate.Unknown},
	} {
		functions, table := machine("nvidia")
		if bound {
			functions.Functions[0].Driver = "nvidia"
		}
		if got := Scan(tree(t, withKernel(nil)), functions, table, source.What{}).Drivers["nvidia"]; got != want {
			t.Errorf("bound %v: %+v, want %+v", bound, got, want)
		}
	}
}

func TestParseDriver(t *testing.T) {
	tests := []struct {
		name, in string
		open     tristate.State
		version  string
	}{
		{"open", openLine + "GCC version:  gcc version 12.3.0\n", tristate.True, "595.45.04"},
		{"open on Arm", "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.86.15  Release Build\n", tristate.True, "570.86.15"},
		{"closed", closedLine + "GCC version:  gcc version 12.3.0\n", tristate.False, "550.54.14"},
		{"closed on Arm", "NVRM version: NVIDIA UNIX aarch64 Kernel Module  535.104.12  Sat Aug 19 01:15:15 UTC 2023\n", tristate.False, "535.104.12"},
		{"an old one of two numbers", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  418.67  Sat Apr  6 03:07:24 CDT 2019\n", tristate.False, "418.67"},
		{"no newline", strings.TrimSuffix(closedLine, "\n"), tristate.False, "550.54.14"},
		{"the first of two versions", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  570.86.15\n", tristate.False, "550.54.14"},
		{"no version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  unknown\n", tristate.True, ""},
		{"a version of the compiler alone", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64\nGCC version: 570.86.15\n", tristate.True, ""},
		{"empty", "", tristate.Unknown, ""},
		{"garbage", "\x7fELF\x02\x01\x01", tristate.Unknown, ""},
		{"another driver", "nouveau 570.86.15\n", tristate.Unknown, ""},
		{"the compiler alone", "GCC version:  gcc version 12.3.0\n", tristate.Unknown, ""},
		{"no kernel module", "NVRM version: NVIDIA 570.86.15\n", tristate.Unknown, ""},
		{"a kernel module in the second line", "NVRM version: NVIDIA\nUNIX Open Kernel Module 570.86.15\n", tristate.Unknown, ""},
		{"open in the second line", closedLine + "Open Kernel Module\n", tristate.False, "550.54.14"},
	}
	for _, tt := range tests {
		if open, version := parseDriver(tt.in); open != tt.open || version != tt.version {
			t.Errorf("%s: %v, %q; want %v, %q", tt.name, open, version, tt.open, tt.version)
		}
	}
}

func TestIsDriverVersion(t *testing.T) {
	tests := map[string]bool{
		"570.86.15": true, "550.54.14": true, "418.67": true, "1000.1.1": true, "570.0": true, "570.9999.9999": true,
		"": false, "570": false, "570.": false, ".570.86": false, "570..15": false, "570.86.15.1": false,
		"57.86.15": false, "57086.15": false, "570.86.15-rc1": false, "570.86.15\n": false, "x86_64": false,
		"5a0.86": false, "57z.86": false, "z57.86": false, "570.z86": false, "570.8b": false, "570.86.12345": false, "٥٧٠.86": false, "+70.86": false, "12.3.0": false,
	}
	for in, want := range tests {
		if got := isDriverVersion(in); got != want {
			t.Errorf("isDriverVersion(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestScanDriver(t *testing.T) {
	const version = "proc/driver/nvidia/version"
	tests := []struct {
		name     string
		files    map[string]string
		want     Driver
		problems []string
	}{
		{"none", nil, Driver{Loaded: tristate.False, Open: tristate.False}, nil},
		{"open", map[string]string{version: openLine}, Driver{tristate.True, tristate.True, "595.45.04"}, nil},
		{"closed", map[string]string{version: closedLine}, Driver{tristate.True, tristate.False, "550.54.14"}, nil},
		{
			"the module without its version file",
			map[string]string{"sys/module/nvidia/initstate": "live\n"},
			Driver{Loaded: tristate.True},
			[]string{"open /proc/driver/nvidia/version: no such file"},
		},
		{
			"no modules to see, and no version file",
			map[string]string{"sys/module/kernel": absent},
			Driver{},
			[]string{"open /sys/module: no such file"},
		},
		{
			"a module that cannot be looked at",
			map[string]string{"sys/module/nvidia": isLoop},
			Driver{},
			[]string{"stat /sys/module/nvidia: too many levels of symbolic links"},
		},
		{
			"a file in place of /proc",
			map[string]string{"proc/cpuinfo": absent, kallsyms: absent, "proc": "a file"},
			Driver{Loaded: tristate.False, Open: tristate.False},
			[]string{"open /proc/driver/nvidia/version: not a", "open /proc/kallsyms: not a"},
		},
		{
			"garbage, without the module",
			map[string]string{version: "garbage\n"},
			Driver{Loaded: tristate.False},
			[]string{"/" + version + ": no NVIDIA driver version in it"},
		},
		{
			"garbage, with the module",
			map[string]string{version: "garbage\n", "sys/module/nvidia/initstate": "live\n"},
			Driver{Loaded: tristate.True},
			[]string{"/" + version + ": no NVIDIA driver version in it"},
		},
		{
			"an empty file",
			map[string]string{version: "", "sys/module/nvidia/initstate": "live\n"},
			Driver{Loaded: tristate.True},
			[]string{"read /" + version + ": file is empty"},
		},
		{
			"a file without end",
			map[string]string{version: openLine + strings.Repeat("x", 16<<10), "sys/module/nvidia/initstate": "live\n"},
			Driver{Loaded: tristate.True},
			[]string{"read /" + version + ": more data than expected"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files)
			if diff := cmp.Diff(tt.want, st.Drivers["nvidia"]); diff != "" {
				t.Errorf("driver (-want +got):\n%s", diff)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}

// A module counts as loaded when the kernel says so, and as not loaded only when
// modules can be seen at all.
func TestScanInit(t *testing.T) {
	const file = "sys/module/nvidia_peermem/initstate"
	tests := []struct {
		name     string
		files    map[string]string
		want     Init
		loaded   tristate.State
		problems []string
	}{
		{"live", map[string]string{file: "live\n"}, Live, tristate.True, nil},
		{"coming", map[string]string{file: "coming\n"}, Coming, tristate.False, nil},
		{"going", map[string]string{file: "going\n"}, Going, tristate.False, nil},
		{"not loaded", nil, Absent, tristate.False, nil},
		{"built in: a directory without state", map[string]string{"sys/module/nvidia_peermem/parameters": isDir}, Absent, tristate.False, nil},
		{"garbage", map[string]string{file: "alive\n"}, Unread, tristate.Unknown, []string{"/" + file + `: "alive" is not a module state`}},
		{"a word of ours", map[string]string{file: "absent\n"}, Unread, tristate.Unknown, []string{"/" + file + `: "absent" is not a module state`}},
		{"empty", map[string]string{file: ""}, Unread, tristate.Unknown, []string{"read /" + file + ": file is empty"}},
		{"a FIFO", map[string]string{file: isFIFO}, Unread, tristate.Unknown, []string{"read /" + file + ": file is empty"}},
		{"a directory", map[string]string{file: isDir}, Unread, tristate.Unknown, []string{"read /" + file + ": is a directory"}},
		{"no modules to see", map[string]string{"sys/module/kernel": absent}, Unread, tristate.Unknown, []string{"open /sys/module: no such file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files)
			if got := st.Peers.Modules["nvidia_peermem"]; got != tt.want || tt.want.Loaded() != tt.loaded {
				t.Errorf("state %q, want %q, %v", got, tt.want, tt.loaded)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}

// The words are published in raw features and advice.
func TestWords(t *testing.T) {
	want := []string{"", "absent", "live", "coming", "going"}
	got := []string{string(Unread), string(Absent), string(Live), string(Coming), string(Going)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}

// A scan closes what it opened, whatever it found there.
func TestScanGivesHandlesBack(t *testing.T) {
	for name, text := range map[string]string{"good": "0000000000000000 t x\n", "garbage": "garbage", "empty": "", "a FIFO": isFIFO} {
		fs := tree(t, map[string]string{
			"sys/module/nvidia/initstate": text, "proc/driver/nvidia/version": text, kallsyms: text, "proc/cpuinfo": text,
		})
		open := func() int {
			entries, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(entries)
		}
		before := open()
		functions, table := machine("nvidia", "mlx5", "mlx4")
		Scan(fs, functions, table, source.What{})
		if after := open(); after != before {
			t.Errorf("%s: %d descriptors are open, %d before", name, after, before)
		}
	}
}

func TestScanStorage(t *testing.T) {
	const file = "sys/module/nvidia_fs/initstate"
	tests := []struct {
		name  string
		files map[string]string
		want  tristate.State
	}{
		{"live", map[string]string{file: "live\n"}, tristate.True},
		{"coming", map[string]string{file: "coming\n"}, tristate.False},
		{"not loaded", nil, tristate.False},
		{"empty", map[string]string{file: ""}, tristate.Unknown},
		{"no modules to see", map[string]string{"sys/module/kernel": absent}, tristate.Unknown},
	}
	for _, tt := range tests {
		if got := scan(t, tt.files).Storage; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
