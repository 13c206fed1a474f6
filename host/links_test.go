package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLink(t *testing.T) {
	dir := oddTree(t)
	tests := []struct {
		name string
		want string
		base string
		err  error
	}{
		{name: "sys/link", want: "line", base: "line"},
		{name: "sys/dir/up", want: "../line", base: "line"},
		{name: "sys/dangling", want: "nowhere", base: "nowhere"},
		{name: "sys/loop", want: "pool", base: "pool"},
		{name: "sys/line", err: unix.EINVAL},
		{name: "sys/dir", err: unix.EINVAL},
		{name: "sys/fifo", err: unix.EINVAL},
		{name: "sys/missing", err: fs.ErrNotExist},
		{name: "sys/line/below", err: unix.ENOTDIR},
		{name: "sys/loop/below", err: unix.ELOOP},
	}
	for _, size := range []int{1, 511, 512, 513, 4000} {
		// A target may be long, and its parts may not.
		target := strings.Repeat(strings.Repeat("x", 99)+"/", size/100) + strings.Repeat("y", size%100)
		name := fmt.Sprintf("sys/long%d", size)
		link(t, dir, name, target)
		tests = append(tests, struct {
			name, want, base string
			err              error
		}{name: name, want: target, base: filepath.Base(target)})
	}
	for _, v := range views(t, dir) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				got, err := v.Link(v.path(tt.name))
				if got != tt.want || !errors.Is(err, tt.err) {
					t.Fatalf("Link = %q, %v; want %q, %v", got, err, tt.want, tt.err)
				}
				if err != nil {
					wantPath(t, err, "/"+v.path(tt.name))
				}
				got, err = v.Base(v.path(tt.name))
				if got != tt.base || !errors.Is(err, tt.err) {
					t.Errorf("Base = %q, %v; want %q, %v", got, err, tt.base, tt.err)
				}
			})
		}
	}
}

func TestResolve(t *testing.T) {
	dir := oddTree(t)
	link(t, dir, "sys/bus/pci/devices/0000:19:00.0", "../../../devices/pci0000:15/0000:19:00.0")
	write(t, dir, "sys/devices/pci0000:15/0000:19:00.0/vendor", "0x10de\n")
	link(t, dir, "sys/class/infiniband/mlx5_0", "../../devices/pci0000:15/0000:19:00.0/infiniband/mlx5_0")
	link(t, dir, "sys/devices/pci0000:15/0000:19:00.0/infiniband/mlx5_0/device", "../../../0000:19:00.0")
	link(t, dir, "sys/self", ".")
	for i := range 41 {
		link(t, dir, fmt.Sprintf("chain/%d", i+1), fmt.Sprint(i))
	}
	write(t, dir, "chain/0", "end\n")
	const gpu = "sys/devices/pci0000:15/0000:19:00.0"
	tests := []struct {
		name string
		want string
		err  error
	}{
		{name: "sys/line", want: "sys/line"},
		{name: "sys/dir", want: "sys/dir"},
		{name: "sys//dir/./inner", want: "sys/dir/inner"},
		{name: "sys/dir/../line", want: "sys/line"},
		{name: "sys/deep", want: "sys/line"},
		{name: "sys/self/self/line", want: "sys/line"},
		{name: "sys/bus/pci/devices/0000:19:00.0", want: gpu},
		{name: "sys/bus/pci/devices/0000:19:00.0/vendor", want: gpu + "/vendor"},
		{name: "sys/class/infiniband/mlx5_0/device", want: gpu},
		{name: "chain/40", want: "chain/0"},
		{name: "chain/41", err: ErrLoop},
		{name: "sys/loop", err: ErrLoop},
		{name: "sys/dangling", err: fs.ErrNotExist},
		{name: "sys/missing", err: fs.ErrNotExist},
		{name: "sys/line/below", err: unix.ENOTDIR},
	}
	for _, v := range views(t, dir) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				got, err := v.Resolve(v.path(tt.name))
				if !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				want := ""
				if err == nil {
					want = v.path(tt.want)
				}
				if got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// A tree that was copied or mounted from another machine has links that mean
// that machine's files. They end inside the tree and nowhere else.
func TestLinksStayInside(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, "mirrored", "outside\n")
	write(t, outside, "only-outside", "outside\n")
	dir := t.TempDir()
	write(t, dir, filepath.Join(outside, "mirrored"), "inside\n")
	up := strings.Repeat("../", 40)
	link(t, dir, "sys/absolute", filepath.Join(outside, "mirrored"))
	link(t, dir, "sys/relative", up+filepath.Join(outside, "mirrored"))
	link(t, dir, "sys/absolute-dir", outside)
	link(t, dir, "sys/absolute-gone", filepath.Join(outside, "only-outside"))
	link(t, dir, "sys/relative-gone", up+filepath.Join(outside, "only-outside"))
	link(t, dir, "sys/dir-gone", "absolute-dir/only-outside")
	name := strings.TrimPrefix(outside, "/")
	tests := []struct {
		name string
		want string // "" where the file is outside only
	}{
		{"sys/absolute", "inside"},
		{"sys/relative", "inside"},
		{"sys/absolute-dir/mirrored", "inside"},
		{up + name + "/mirrored", "inside"},
		{"sys/absolute-gone", ""},
		{"sys/relative-gone", ""},
		{"sys/dir-gone", ""},
		{up + name + "/only-outside", ""},
	}
	for _, v := range views(t, dir) {
		if !v.confined {
			continue
		}
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				got, err := v.Line(tt.name)
				if got == "outside" {
					t.Fatal("read a file outside the tree")
				}
				if _, refuses := v.Source.(*kernel).root.(walked); refuses && err != nil {
					return // os.Root does not follow links that would leave
				}
				if got != tt.want || Absent(err) != (tt.want == "") {
					t.Errorf("Line = %q, %v; want %q", got, err, tt.want)
				}
				if ok, err := v.Exists(tt.name); ok != (tt.want != "") || err != nil {
					t.Errorf("Exists = %v, %v", ok, err)
				}
			})
		}
	}
	t.Run("Resolve", func(t *testing.T) {
		for _, v := range views(t, dir) {
			for _, link := range []string{"sys/absolute", "sys/relative"} {
				got, err := v.Resolve(link)
				if v.confined && (err != nil || got != name+"/mirrored") {
					t.Errorf("%s: %s: got %q, %v; want %q", v.name, link, got, err, name+"/mirrored")
				}
			}
		}
	})
}
