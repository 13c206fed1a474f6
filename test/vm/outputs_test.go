//go:build vm

package vm

import (
	"strings"
	"testing"

	"gdr-features/internal/rooms/proof"
	"gdr-features/tristate"
)

// TestOutputs: what perftest prints where somebody runs it by hand, well or badly, is read with its right
// value; and no output that is cut after any line gives a true that the whole does not give.
func TestOutputs(t *testing.T) {
	m := transfers(t, map[string]string{"both.sh": bothSides})
	const short = " -s 65536 -n 200 -F"
	cuts := 0
	for _, test := range []struct {
		name, server, client string // the options of a side; "" for a side that is not started
		before               string
		uid                  uint32
		want                 tristate.State
		why                  string
	}{
		{name: "good", server: short, client: short, want: tristate.True},
		{name: "good in Gbit", server: short + " --report_gbits", client: short + " --report_gbits", want: tristate.True},
		{name: "good with JSON", server: short, client: short + " --out_json --out_json_file=x.json", want: tristate.True},
		{name: "JSON that cannot be written", server: short, client: short + " --out_json --out_json_file=/none/x.json", want: tristate.True},
		{name: "Gbit on one side", server: short, client: short + " --report_gbits", why: "one of both sides had --report_gbits"},
		{name: "a limit", server: short + " --report_gbits", client: short + " --report_gbits --limit_bw=3500", why: "a limit was set (--limit_bw) and missed"},
		{name: "memlock", server: short, client: short, before: "ulimit -l 0", uid: nobody, why: "this process may lock little memory"},
		{name: "no GID", server: short, client: short + " -x 9", why: "the GID of this index is not there"},
		{name: "other NICs", server: short, client: short + " -d mlx5_1", why: "the sides could not connect"},
		{name: "no NIC", client: short + " -d mlx5_9", why: "there is no such NIC here"},
		{name: "no CUDA", client: short + " --use_cuda=0", why: "built without this kind of memory"},
		{name: "port in use", server: short, before: "timeout 20 ib_write_bw & sleep 3", why: "the TCP port is in use"},
		{name: "no client", server: short, why: "did not end in time"},
		{name: "killed", server: short + " -D 8", client: short + " -D 8", before: "kill=1", why: "the server was killed"},
	} {
		dir := "/tmp/nobody/" + strings.ReplaceAll(test.name, " ", "-")
		m.shell(test.uid, "mkdir "+dir+"; cd "+dir+"; server='"+test.server+"' client='"+test.client+"'; "+test.before+"\n. /both.sh; true")
		files := written(m.shell(root, "cd "+dir+`; for f in *; do echo "=== $f"; cat "$f"; done`).Out)
		whole := proof.Read(files, nil)
		if len(whole.Lines) != 1 || whole.Lines[0].State != test.want || !strings.Contains(whole.Lines[0].Why, test.why) {
			t.Errorf("%s: %+v, want %v: %s; of %+v", test.name, whole.Lines, test.want, test.why, files)
			continue
		}
		for i, file := range files {
			text := file.Text
			for at := range strings.Count(text, "\n") + 1 {
				files[i].Text = strings.Join(strings.SplitAfter(text, "\n")[:at], "")
				cuts++
				if l := proof.Read(files, nil).Lines[0]; l.State == tristate.True && test.want != tristate.True {
					t.Errorf("%s: %s cut after line %d: %+v", test.name, file.Name, at, l)
				}
			}
			files[i].Text = text
		}
		t.Logf("%s: %v: %s", test.name, whole.Lines[0].State, whole.Lines[0].Why)
	}
	t.Logf("%d cuts", cuts)
}

// bothSides runs the sides that have options, and writes what each prints as the script of a plan does.
const bothSides = `side() { # side LETTER OPTIONS
	echo "ib_write_bw -d mlx5_0$2" >"x.$1.cmd"
	timeout -k 1 15 ib_write_bw -d mlx5_0 $2 >"x.$1.out" 2>"x.$1.err"
	echo "$?" >"x.$1.rc"
}
[ -z "$server" ] || side s "$server" &
sleep 2
[ -z "$client" ] || side c "$client 127.0.0.1" &
[ -z "$kill" ] || {
	sleep 2
` + killServers + `}
wait
`

// written are files as they are printed one after the other, each below a line with its name.
func written(out string) (files []proof.File) {
	for _, part := range strings.Split("\n"+strings.TrimSuffix(out, "\n"), "\n=== ")[1:] {
		name, text, has := strings.Cut(part, "\n")
		if has {
			text += "\n"
		}
		files = append(files, proof.File{Name: name, Text: text})
	}
	return files
}
