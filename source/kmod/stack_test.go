package kmod

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/tristate"
)

func TestRelease(t *testing.T) {
	tests := []struct {
		in           string
		major, minor int
		mofed        bool // MOFED's, and no constant of a kernel's own driver
		bad          bool
	}{
		{in: "24.10-1.1.4", major: 24, minor: 10, mofed: true},
		{in: "25.10-1.7.1", major: 25, minor: 10, mofed: true},
		{in: "23.10-3.2.2", major: 23, minor: 10, mofed: true},
		{in: "5.8-1.1.2", major: 5, minor: 8, mofed: true},
		{in: "5.0-2.1.8", major: 5, minor: 0, mofed: true},
		{in: "4.9-4.0.8", major: 4, minor: 9, mofed: true},
		{in: "4.0-2.0.0", major: 4, minor: 0, mofed: true},
		{in: "24.10-1.1.4.0.ubuntu22_04", major: 24, minor: 10, mofed: true},
		{in: "9999.9999-9", major: 9999, minor: 9999, mofed: true},
		{in: "5.0-0", major: 5},
		{in: "4.0-0", major: 4},
		{in: "3.0-1", major: 3},
		{in: "2.2-1", major: 2, minor: 2},

		{in: "", bad: true},
		{in: "1.0", bad: true},
		{in: "1.1", bad: true},
		{in: "24.10", bad: true},
		{in: "24-1.1.4", bad: true},
		{in: "24.10-", bad: true},
		{in: "24.10-rc1", bad: true},
		{in: "24.10--1", bad: true},
		{in: ".10-1.1.4", bad: true},
		{in: "24.-1.1.4", bad: true},
		{in: "24.10.1-1.1.4", bad: true},
		{in: "x4.10-1.1.4", bad: true},
		{in: "z4.10-1.1.4", bad: true},
		{in: "24.z0-1.1.4", bad: true},
		{in: "24.1x-1.1.4", bad: true},
		{in: "-24.10-1.1.4", bad: true},
		{in: "+24.10-1.1.4", bad: true},
		{in: "24.10000-1", bad: true},
		{in: "10000.10-1", bad: true},
		{in: "24.10-1.1.4 ", bad: true},
		{in: " 24.10-1.1.4", bad: true},
		{in: "24.10-1\x00", bad: true},
		{in: "24.10-1/../..", bad: true},
		{in: "24.10-١", bad: true},
		{in: "garbage", bad: true},
	}
	for _, tt := range tests {
		major, minor, ok := release(tt.in)
		if major != tt.major || minor != tt.minor || ok == tt.bad {
			t.Errorf("release(%q) = %d, %d, %v; want %d, %d, %v", tt.in, major, minor, ok, tt.major, tt.minor, !tt.bad)
		}
		if got := isMOFEDVersion(tt.in); got != tt.mofed {
			t.Errorf("isMOFEDVersion(%q) = %v, want %v", tt.in, got, tt.mofed)
		}
	}
}

func TestJudgeMOFED(t *testing.T) {
	none, inbox, mofed := MOFED{}, MOFED{Origin: OriginInbox}, MOFED{Origin: OriginMOFED}
	tests := []struct {
		version                string
		absent, present, maybe MOFED // by whether mlx_compat is loaded
		garbage                bool
	}{
		{version: "24.10-1.1.4", absent: MOFED{Origin: OriginMOFED, Version: "24.10-1.1.4"}, present: MOFED{Origin: OriginMOFED, Version: "24.10-1.1.4"}, maybe: MOFED{Origin: OriginMOFED, Version: "24.10-1.1.4"}},
		{version: "4.9-4.0.8", absent: MOFED{Origin: OriginMOFED, Version: "4.9-4.0.8"}, present: MOFED{Origin: OriginMOFED, Version: "4.9-4.0.8"}, maybe: MOFED{Origin: OriginMOFED, Version: "4.9-4.0.8"}},
		{version: "", absent: inbox, present: mofed, maybe: none},
		{version: "5.0-0", absent: inbox, present: mofed, maybe: none},
		{version: "4.0-0", absent: inbox, present: mofed, maybe: none},
		{version: "3.0-1", absent: inbox, present: mofed, maybe: none},
		{version: "2.2-1", absent: inbox, present: mofed, maybe: none},
		{version: "1.1", absent: inbox, present: mofed, maybe: none},
		{version: "1.0", absent: inbox, present: mofed, maybe: none},
		{version: "rolling", absent: none, present: mofed, maybe: none, garbage: true},
		{version: "1.2", absent: none, present: mofed, maybe: none, garbage: true},
	}
	for _, tt := range tests {
		for compat, want := range map[tristate.State]MOFED{tristate.False: tt.absent, tristate.True: tt.present, tristate.Unknown: tt.maybe} {
			got, err := judgeMOFED(compat, "/f", tt.version)
			if want.File = "/f"; got != want {
				t.Errorf("version %q, mlx_compat %v: %+v, want %+v", tt.version, compat, got, want)
			}
			if (err != nil) != (tt.garbage && compat != tristate.True) {
				t.Errorf("version %q, mlx_compat %v: %v", tt.version, compat, err)
			}
		}
	}
}

func TestScanMOFED(t *testing.T) {
	const (
		mlx5, mlx4 = "sys/module/mlx5_core", "sys/module/mlx4_core"
		compat     = "sys/module/mlx_compat"
	)
	none := map[string]string{"sys/module/kernel": absent}
	tests := []struct {
		name     string
		files    map[string]string
		want     MOFED
		problems []string
	}{
		{"no driver", nil, MOFED{Origin: OriginNotLoaded}, nil},
		{"mlx_compat alone", map[string]string{compat: isDir}, MOFED{Origin: OriginMOFED}, nil},
		{"no modules to see", none, MOFED{}, []string{"open /sys/module: no such file"}},
		{"inbox", map[string]string{mlx5: isDir}, MOFED{Origin: OriginInbox, File: "/" + mlx5 + "/version"}, nil},
		{"inbox with a version", map[string]string{mlx5 + "/version": "5.0-0\n"}, MOFED{Origin: OriginInbox, File: "/" + mlx5 + "/version"}, nil},
		{"MOFED", map[string]string{mlx5 + "/version": "24.10-1.1.4\n", compat: isDir}, MOFED{Origin: OriginMOFED, Version: "24.10-1.1.4", File: "/" + mlx5 + "/version"}, nil},
		{"MOFED of ConnectX-3", map[string]string{mlx4 + "/version": "4.9-4.0.8\n", compat: isDir}, MOFED{Origin: OriginMOFED, Version: "4.9-4.0.8", File: "/" + mlx4 + "/version"}, nil},
		{
			"both drivers: mlx5 counts",
			map[string]string{mlx4 + "/version": "4.9-4.0.8\n", mlx5 + "/version": "5.8-1.1.2\n"},
			MOFED{Origin: OriginMOFED, Version: "5.8-1.1.2", File: "/" + mlx5 + "/version"},
			nil,
		},
		{
			"garbage for a version",
			map[string]string{mlx5 + "/version": "garbage\n"},
			MOFED{File: "/" + mlx5 + "/version"},
			[]string{"/" + mlx5 + `/version: "garbage" is not a driver version`},
		},
		{"garbage for a version with mlx_compat", map[string]string{mlx5 + "/version": "garbage\n", compat: isDir}, MOFED{Origin: OriginMOFED, File: "/" + mlx5 + "/version"}, nil},
		{
			"an empty version",
			map[string]string{mlx5 + "/version": ""},
			MOFED{File: "/" + mlx5 + "/version"},
			[]string{"read /" + mlx5 + "/version: file is empty"},
		},
		{
			"an empty version with mlx_compat",
			map[string]string{mlx5 + "/version": "", compat: isDir},
			MOFED{Origin: OriginMOFED, File: "/" + mlx5 + "/version"},
			[]string{"read /" + mlx5 + "/version: file is empty"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files)
			if diff := cmp.Diff(tt.want, st.MOFED); diff != "" {
				t.Errorf("origin (-want +got):\n%s", diff)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}
