package snapshot

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/source/rdma"
)

const port = "sys/class/infiniband/mlx5_0/ports/1/"

// TestScrubGIDs: of each address its kind remains, and equal ones stay equal.
func TestScrubGIDs(t *testing.T) {
	texts := []string{
		"fe80:0000:0000:0000:b83f:d203:00a1:c2e4", "fe80:0000:0000:0000:b83f:d203:00a1:c2e4", "fe80:0000:0000:0000:0000:0000:0000:0001",
		"0000:0000:0000:0000:0000:ffff:0a01:0203", "0000:0000:0000:0000:0000:ffff:0a01:0203", "0000:0000:0000:0000:0000:ffff:0000:0001",
		"0000:0000:0000:0000:0000:0000:0000:0000",
		"2600:1f18:4a3b:0000:b83f:d2ff:fea1:c2e4", "fd00:0000:0000:0000:0000:0000:0000:0001", "fe80:0000:0000:0001:b83f:d203:00a1:c2e4",
	}
	r := &Recording{answers: map[question]*answer{}}
	name := func(i int) string { return fmt.Sprintf("%sgids/%d", port, i) }
	for i, text := range texts {
		r.answers[question{name(i), read}] = &answer{data: []byte(text + "\n")}
	}
	guid := question{"sys/class/infiniband/mlx5_0/node_guid", read}
	r.answers[guid] = &answer{data: []byte("b83f:d203:00a1:c2e4\n")}
	r.Scrub()
	for range 2 { // a snapshot of a snapshot is the same
		for i, text := range texts {
			before := rdma.GID{Address: netip.MustParseAddr(text)}
			said := strings.TrimSpace(string(r.answers[question{name(i), read}].data))
			after := rdma.GID{Address: netip.MustParseAddr(said)}
			if len(said) != len(text) || before.LinkLocal() != after.LinkLocal() || before.IPv4() != after.IPv4() ||
				before.Address.IsUnspecified() != after.Address.IsUnspecified() || !after.Address.Is6() {
				t.Errorf("%s became %s", text, said)
			}
			for j, other := range texts {
				is := strings.TrimSpace(string(r.answers[question{name(j), read}].data)) == said
				if is != (text == other) {
					t.Errorf("%s and %s: equal %v", text, other, is)
				}
			}
			if strings.Contains(said, "c2e4") || strings.Contains(said, "0a01:0203") || strings.Contains(said, "2600") {
				t.Errorf("%s is left of %s", said, text)
			}
		}
		first := written(t, r)
		r.Notes = nil
		r.Scrub()
		if second := written(t, r); strings.SplitN(first, "\n", 2)[1] != strings.SplitN(second, "\n", 2)[1] {
			t.Errorf("scrubbed again:\n%s\n%s", first, second)
		}
	}
	if got := string(r.answers[guid].data); got != "0000:0000:0000:0001\n" || string(r.answers[question{name(0), read}].data) != "fe80:0000:0000:0000:"+got {
		t.Errorf("the GUID became %q, and the GID with it %q", got, r.answers[question{name(0), read}].data)
	}
}

// TestScrubNoGID: of garbage in place of a GID nothing is left but its form.
func TestScrubNoGID(t *testing.T) {
	for text, want := range map[string]string{
		"10.20.30.40\n": "xx.xx.xx.xx\n", "fe80::1%eth0\n": "xxxx::x%xxxx\n", "node-7": "xxxx-x", "": "",
	} {
		_, after, _ := scrubbed(t, port+"gids/0", text)
		if got, _ := after.Bytes(port+"gids/0", 100); string(got) != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestLastGIDs: empty entries at the end of a table are left out, so that reading it gives the same.
func TestLastGIDs(t *testing.T) {
	const zero, used = "0000:0000:0000:0000:0000:0000:0000:0000\n", "fe80:0000:0000:0000:0000:0000:0000:0001\n"
	entry := func(text string) *answer { return &answer{data: []byte(text)} }
	refused := func() *answer { return &answer{err: unix.EINVAL} }
	for name, tt := range map[string]struct {
		table []*answer // nil: not read
		want  int
	}{
		"empty ones":           {[]*answer{entry(zero), entry(used), entry(zero), entry(used), entry(zero), refused(), entry(zero)}, 4},
		"all empty":            {[]*answer{entry(zero), refused()}, 0},
		"none empty":           {[]*answer{entry(used), entry(used)}, 2},
		"one that is not read": {[]*answer{entry(used), entry(zero), nil, entry(zero)}, 3},
		"one of another error": {[]*answer{entry(zero), {err: unix.EIO}, entry(zero)}, 2},
		"one cut short":        {[]*answer{entry(zero), {data: []byte("0000:"), stop: ErrNotRecorded}, entry(zero)}, 2},
		"garbage":              {[]*answer{entry("0000\n"), entry(zero)}, 1},
	} {
		all := &answer{names: []string{"seven"}}
		r := &Recording{answers: map[question]*answer{{port + "gids", list}: all}}
		for i, a := range tt.table {
			all.names = append(all.names, fmt.Sprint(i))
			if a != nil {
				r.answers[question{fmt.Sprintf("%sgids/%d", port, i), read}] = a
			}
		}
		r.Scrub()
		names, err := parse(t, written(t, r)).FS("").Names(port + "gids")
		if len(names) != tt.want+1 || err != nil {
			t.Errorf("%s: %q, %v", name, names, err)
		}
		if _, err := r.FS("").Line(fmt.Sprintf("%sgids/%d", port, len(tt.table)-1)); len(tt.table) > tt.want && !host.Absent(err) {
			t.Errorf("%s: the last entry: %v", name, err)
		}
	}
}
