package rdma

import (
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// refusing is a tree in which reading some files gives EINVAL, as the kernel's empty entries
// do.
type refusing struct {
	host.Source
	refused []string
}

func (r refusing) Open(name string) (host.File, error) {
	for _, end := range r.refused {
		if strings.HasSuffix(name, end) {
			return nil, host.PathError("read", name, unix.EINVAL)
		}
	}
	return r.Source.Open(name)
}

const (
	noGID    = "0000:0000:0000:0000:0000:0000:0000:0000"
	localGID = "fe80:0000:0000:0000:5a00:00ff:fe00:0001"
	v4GID    = "0000:0000:0000:0000:0000:ffff:0a00:0001"
	v6GID    = "2001:0db8:0000:0000:0000:0000:0000:0001"
)

// TestReadGIDs changes the table of a port with an entry of each kind.
func TestReadGIDs(t *testing.T) {
	const port = "sys/class/infiniband/mlx5_0/ports/1/"
	good := []GID{
		{0, netip.MustParseAddr(localGID), "IB/RoCE v1", "eth0"},
		{1, netip.MustParseAddr(localGID), RoCEv2, "eth0"},
		{3, netip.MustParseAddr(v4GID), RoCEv2, "eth0"},
		{10, netip.MustParseAddr(v6GID), RoCEv2, ""},
	}
	without := func(index int) (some []GID) {
		for _, g := range good {
			if g.Index != index {
				some = append(some, g)
			}
		}
		return some
	}
	untyped := append([]GID{}, good...)
	untyped[0] = GID{Index: 0, Address: good[0].Address, NetDev: "eth0"}
	unread := append([]GID{}, good...)
	unread[2] = GID{Index: 3, Address: good[2].Address}
	tests := []struct {
		name    string
		change  func(dir string)
		refused []string
		want    []GID
		bad     string
	}{
		{name: "as it is", want: good},
		{name: "an entry that is refused", refused: []string{"gids/10"}, want: without(10)},
		{name: "an entry of another network namespace", refused: []string{"types/3", "ndevs/3"}, want: without(3)},
		{name: "no such port", change: func(dir string) { remove(t, dir, port+"gids") }, bad: "gids"},
		{name: "garbage for a GID", change: func(dir string) { put(t, dir, port+"gids/3", "10.0.0.1\n") }, want: without(3), bad: "not a GID"},
		{name: "a GID with a zone", change: func(dir string) { put(t, dir, port+"gids/3", "fe80::1%eth0\n") }, want: without(3), bad: "not a GID"},
		{name: "an empty GID file", change: func(dir string) { put(t, dir, port+"gids/3", "") }, want: without(3), bad: "empty"},
		{name: "a huge index", change: func(dir string) { put(t, dir, port+"gids/999999999", v4GID+"\n") }, want: good, bad: "not an entry"},
		{name: "garbage for an index", change: func(dir string) { put(t, dir, port+"gids/007", v4GID+"\n") }, want: good, bad: "not an entry"},
		{name: "an unknown type", change: func(dir string) { put(t, dir, port+"gid_attrs/types/0", "RoCE v3\n") }, want: untyped, bad: "not a type"},
		{name: "a type that is missing", change: func(dir string) { remove(t, dir, port+"gid_attrs/types/3") }, want: unread, bad: "types/3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, strings.Replace(nics, "ib 15b3:1021", "eth 15b3:1021", 1))
			for i := range 12 {
				put(t, dir, port+"gids/"+strconv.Itoa(i), noGID+"\n")
			}
			for _, g := range good {
				n := strconv.Itoa(g.Index)
				put(t, dir, port+"gids/"+n, g.Address.StringExpanded()+"\n")
				if g.Index == 3 {
					put(t, dir, port+"gids/"+n, v4GID+"\n") // as the kernel writes it
				}
				put(t, dir, port+"gid_attrs/types/"+n, g.Type+"\n")
				if g.NetDev != "" {
					put(t, dir, port+"gid_attrs/ndevs/"+n, g.NetDev+"\n")
				}
			}
			if tt.change != nil {
				tt.change(dir)
			}
			tree, err := host.Open(host.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			d := Device{Name: "mlx5_0", dir: filepath.Dir(filepath.Dir(filepath.Clean(port)))}
			got, err := d.ReadGIDs(host.New(refusing{tree, tt.refused}, dir), 1)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (tt.bad == "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("error %v, want one about %q", err, tt.bad)
			}
		})
	}
}

func TestGIDAddresses(t *testing.T) {
	tests := map[string]struct{ local, v4 bool }{
		localGID: {true, false}, v4GID: {false, true}, v6GID: {false, false},
		"fe80::": {true, false}, "fe80:0:0:1::1": {false, false}, "fec0::1": {false, false}, "fd00::1": {false, false},
		"::ffff:169.254.1.1": {false, true},
	}
	for text, want := range tests {
		g := GID{Address: netip.MustParseAddr(text)}
		if g.LinkLocal() != want.local || g.IPv4() != want.v4 {
			t.Errorf("%s: link-local %v, IPv4 %v; want %v", text, g.LinkLocal(), g.IPv4(), want)
		}
	}
}

// FuzzGID: whatever an entry's files hold, it is read as a whole, as none, or with an error.
func FuzzGID(f *testing.F) {
	f.Add(v4GID+"\n", "RoCE v2\n", "eth0\n", "3")
	f.Add(noGID, "", "\x1b[2J", "-1")
	f.Fuzz(func(t *testing.T, gid, kind, device, index string) {
		files := texts{"dir/gids/" + index: gid, "dir/gid_attrs/types/" + index: kind, "dir/gid_attrs/ndevs/" + index: device}
		got, there, err := readGID(host.New(files, "/"), "dir/", index)
		if there && (!got.Address.Is6() || got.Address.IsUnspecified() || err == nil && got.Type == "") {
			t.Errorf("%+v, %v", got, err)
		}
		if strings.ContainsAny(got.NetDev, "\x1b\n") {
			t.Errorf("%q goes to the terminal", got.NetDev)
		}
	})
}

// texts is a source of files alone.
type texts map[string]string

type text struct{ *strings.Reader }

func (text) Close() error { return nil }

func (t texts) Open(name string) (host.File, error) {
	s, ok := t[name]
	if !ok {
		return nil, host.PathError("open", name, unix.ENOENT)
	}
	return text{strings.NewReader(s)}, nil
}
func (texts) Names(string) ([]string, error) { return nil, unix.ENOENT }
func (texts) Link(string) (string, error)    { return "", unix.EINVAL }
func (texts) Inode(string) (uint64, error)   { return 0, unix.ENOENT }
