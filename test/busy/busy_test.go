package busy

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestOthers(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after sample
		want          float64
		busy          bool
	}{
		{"an idle machine", sample{1000, 900, 50}, sample{2000, 1900, 50}, 0, false},
		{"our own work alone", sample{1000, 900, 50}, sample{2000, 1400, 550}, 0, false},
		{"others take as much as they may", sample{1000, 900, 50}, sample{2000, 1200, 550}, 0.2, false},
		{"others take more", sample{1000, 900, 50}, sample{2000, 1190, 550}, 0.21, true},
		{"others take all", sample{0, 0, 0}, sample{1000, 0, 0}, 1, true},
		{"our own ticks are counted later than those of all", sample{1000, 900, 0}, sample{2000, 1850, 60}, 0, false},
		{"no time has passed", sample{1000, 900, 50}, sample{1000, 900, 50}, 0, false},
	} {
		got := others(test.before, test.after)
		if math.Abs(got-test.want) > 1e-9 || (Reason(got) != "") != test.busy {
			t.Errorf("%s: %v, %q", test.name, got, Reason(got))
		}
	}
	if got, want := Reason(0.5), "other programs took 50 % of the CPU time of all CPUs, more than 20 % (/proc/stat)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseStat(t *testing.T) {
	all, idle, err := parseStat("cpu  100 20 30 4000 500 6 7 80 90 1\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
	if all != 4743 || idle != 4500 || err != nil {
		t.Errorf("%d, %d idle, %v", all, idle, err)
	}
	for _, text := range []string{"", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 3\n", "cpu 1 2 3 x 5 6 7 8\n"} {
		if all, idle, err := parseStat(text); err == nil {
			t.Errorf("%q: %d, %d idle", text, all, idle)
		}
	}
}

func TestParseProcess(t *testing.T) {
	p, err := parseProcess("42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 12345\n")
	if want := (process{pid: 42, parent: 7, ticks: 127}); p != want || err != nil {
		t.Errorf("%+v, %v, want %+v", p, err, want)
	}
	for _, text := range []string{"", "42 (a", "42 (a) S 7 1\n", "x (a) S 7 42 42 0 -1 1 1 2 3 4 1 2 3 4\n", "42 (a) S 7 42 42 0 -1 1 1 2 3 4 1 2 x 4\n"} {
		if p, err := parseProcess(text); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

func TestTree(t *testing.T) {
	all := []process{{3, 2, 400}, {1, 0, 10000}, {2, 1, 30}, {5, 4, 7}, {4, 2, 1}, {6, 1, 20000}}
	if got := tree(all, 2); got != 438 {
		t.Errorf("%d ticks", got)
	}
	if got := tree(all, 9); got != 0 {
		t.Errorf("%d ticks of a process that is not there", got)
	}
}

// On this machine: the time of a child is ours, not another program's; that of a
// process that is not below the watched one is another's.
func TestWatch(t *testing.T) {
	child := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed
	}()
	sleeper := exec.CommandContext(t.Context(), "sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait() // it was killed
	}()
	ours, err := Watch(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := Watch(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	mine, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	other, err := theirs()
	if err != nil {
		t.Fatal(err)
	}
	// The child takes a CPU, or a part of one that many others want.
	if least := 0.02 / float64(runtime.NumCPU()); other-mine < least {
		t.Errorf("others took %.3f of the CPU time as this process sees it, %.3f as one does that sleeps: they must differ by %.3f", mine, other, least)
	}
}
