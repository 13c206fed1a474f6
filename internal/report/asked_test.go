package report_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
)

// TestAskVerbs: the devices that count are asked, and software devices, at every
// reading; the answers reach the labels, and only missing ones that count are
// problems.
func TestAskVerbs(t *testing.T) {
	m := parse(t, one+`
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a acs=0000
    0000:21:00.0 ib 15b3:1003 rdma=mlx4_0 driver=mlx4_core
    0000:22:00.0 eth 15b3:101d rdma=mlx5_1
`)
	for _, tc := range []struct {
		state  string
		answer verbs.Answer
		want   string
	}{
		{"ready", verbs.Answer{DMABuf: tristate.True}, "true"},
		{"inbox-old", verbs.Answer{DMABuf: tristate.True}, "true"},
		{"kallsyms-missing", verbs.Answer{DMABuf: tristate.True}, "true"},
		{"closed-peermem", verbs.Answer{DMABuf: tristate.True}, "false"},
		{"dmabuf-only", verbs.Answer{DMABuf: tristate.False}, "false"},
		{"kallsyms-missing", verbs.Answer{DMABuf: tristate.False}, "false"},
		{"dmabuf-only", verbs.Answer{Err: errors.New("mute")}, "true"},
		{"inbox-old", verbs.Answer{Err: errors.New("mute")}, "false"},
		{"kallsyms-missing", verbs.Answer{Err: errors.New("mute")}, ""},
	} {
		dir := m.Tree(t, state(t, tc.state))
		if err := os.Symlink("../../devices/virtual/infiniband/rxe0", filepath.Join(dir, "sys/class/infiniband/rxe0")); err != nil {
			t.Fatal(err)
		}
		fs, err := host.Open(host.Options{Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		var asked [][]string
		rd := report.NewReader(fs, report.Options{
			What: report.ForPublishing.What,
			AskVerbs: func(_ context.Context, _ *host.FS, questions []verbs.Question) (answers []verbs.Answer) {
				var devices []string
				for _, q := range questions {
					d := q.Device
					devices = append(devices, d)
					a := tc.answer
					a.Device = d
					if d == "rxe0" {
						a = verbs.Answer{Device: d, Err: errors.New("of no interest")}
					}
					answers = append(answers, a)
				}
				asked = append(asked, devices)
				return answers
			},
		})
		before := len(collect(t, dir, report.ForPublishing.What).Problems)
		for range 2 {
			r := rd.Read(t.Context(), report.RDMA)
			if got := r.Labels[label.DMABuf]; got != tc.want {
				t.Errorf("%s, %+v: dmabuf %q, want %q", tc.state, tc.answer, got, tc.want)
			}
			more := r.Problems[before:]
			if tc.answer.Err == nil && len(more) > 0 || tc.answer.Err != nil && (len(more) != 1 || more[0].Error() != "--probe-verbs: mlx5_0 and 1 more: mute") {
				t.Errorf("%s, %+v: problems %q", tc.state, tc.answer, more)
			}
		}
		want := []string{"mlx5_0", "mlx5_1", "rxe0"}
		if diff := cmp.Diff([][]string{want, want}, asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", tc.state, diff)
		}
		_ = fs.Close()
	}
}
