//go:build mutate

package mutate_test

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// judging are the packages that are changed, with their tests. Those of findings see what all of
// them say.
var (
	findings = &suite{dir: "internal/findings"}
	judging  = []*suite{
		{dir: "verdict"},
		{dir: "topology"},
		{dir: "internal/nodelabel"},
		{dir: "internal/rooms/assign"},
		{dir: "internal/rooms/frameworks"},
		findings,
	}
)

//go:embed equal.txt
var equalText string

// mutant is one change of one place in the code.
type mutant struct {
	name  string // "PACKAGE FUNCTION: OLD => NEW"
	suite *suite
	id    int // switches it on, from 1
}

// suites are the tests that should notice it, in the order in which they run.
func (m mutant) suites() []*suite { return slices.Compact([]*suite{m.suite, findings}) }

// metBy reports whether tests come by it.
func (m mutant) metBy(s *suite) bool { return s.met[m.id] }

// suite is the tests of a package.
type suite struct {
	dir, program string
	took         time.Duration // without a mutant
	met          map[int]bool  // the mutants that it comes by
}

var (
	every = flag.Uint("every", 64, "take every `n`th mutant")
	only  = flag.String("only", "", "take all mutants whose name matches this `regexp`")
)

// TestMutants asks whether tests notice a wrong judgement. It changes conditions of the packages
// that judge, one at a time (sites_test.go), and runs tests until one fails: those of the package,
// and those of findings, which rest on all of them. All changes are compiled into the
// tests at once, by the overlay of go build, and a variable switches one on; no file of the
// repository is written.
//
// A mutant that no test notices survives. Those that change nothing are listed in equal.txt, each
// with the reason; any other fails, and so does a line there that no longer holds.
//
// A run takes a sample, by a hash of the mutant's name: the same ones as long as their functions
// stay. With -only it takes all whose name matches.
func TestMutants(t *testing.T) {
	t.Chdir("../..")
	dir, equal := t.TempDir(), reasons(equalText)
	pattern := regexp.MustCompile(*only)
	all, err := write(dir, func(name string) bool {
		if *only != "" {
			return pattern.MatchString(name)
		}
		return equal[name] != "" || sum(name)%uint32(*every) == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := prepare(t, dir, all); err != nil {
		t.Fatal(err)
	}
	survived := 0
	byName := map[string]bool{} // whether it was killed
	kill(all, func(m mutant, killed bool) {
		byName[m.name] = killed
		switch {
		case killed:
			t.Logf("killed %s", m.name)
			return
		case equal[m.name] != "":
			t.Logf("survived %s: %s", m.name, equal[m.name])
		default:
			t.Errorf("SURVIVED %s (a test comes by: %v)", m.name, slices.ContainsFunc(m.suites(), m.metBy))
		}
		survived++
	})
	t.Logf("%d mutants: %d killed, %d survived", len(all), len(all)-survived, survived)
	for name := range equal {
		if killed, there := byName[name]; *only == "" && (killed || !there) {
			t.Errorf("equal.txt: %s: is killed, or is not there", name)
		}
	}
}

// reasons reads equal.txt: the name of a mutant, and an indented line with the reason.
func reasons(text string) map[string]string {
	all, name := map[string]string{}, ""
	for line := range strings.Lines(text) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "", trimmed[0] == '#':
		case line[0] != '\t':
			name = trimmed
		default:
			all[name] = strings.TrimSpace(all[name] + " " + trimmed)
		}
	}
	return all
}

func sum(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32() >> 4 // the lowest bits of this hash are the least mixed
}

// write writes the packages with their mutants, and the overlay that go build takes them by.
func write(dir string, take func(name string) bool) ([]mutant, error) {
	var all []mutant
	overlay := map[string]string{}
	for _, s := range judging {
		pkg := s.dir
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil {
			return nil, err
		}
		name := filepath.Base(pkg)
		for _, path := range append(files, filepath.Join(pkg, "mutants.go")) {
			text := fmt.Appendf(nil, switches, name)
			if slices.Contains(files, path) {
				if strings.HasSuffix(path, "_test.go") {
					continue
				}
				text, err = mutate(pkg, path, func(name string) int {
					if !take(name) {
						return 0
					}
					all = append(all, mutant{name, s, len(all) + 1})
					return len(all)
				})
				if err != nil {
					return nil, err
				}
			}
			written := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
			if err := os.WriteFile(written, text, 0o600); err != nil {
				return nil, err
			}
			absolute, err := filepath.Abs(path)
			if err != nil {
				return nil, err
			}
			overlay[absolute] = written
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600)
}

// prepare builds every suite, runs it without a mutant, and notes which of them it comes by.
func prepare(t *testing.T, dir string, all []mutant) error {
	for _, s := range judging {
		if !slices.ContainsFunc(all, func(m mutant) bool { return slices.Contains(m.suites(), s) }) {
			continue
		}
		s.program = filepath.Join(dir, strings.ReplaceAll(s.dir, "/", "_")+".test")
		build := exec.Command("go", "test", "-c", "-trimpath", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", s.program, "./"+s.dir)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", s.dir, err, out)
		}
		met := filepath.Join(dir, "met")
		os.Remove(met)
		started := time.Now()
		if failed, out := s.fails(10*time.Minute, "MUTANTS_MET="+met); failed {
			return fmt.Errorf("%s fails without a mutant:\n%s", s.dir, out)
		}
		s.took = time.Since(started)
		text, err := os.ReadFile(met)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		s.met = map[int]bool{}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			id, err := strconv.Atoi(lines.Text())
			if err != nil {
				return err
			}
			s.met[id] = true
		}
		t.Logf("%s: its tests come by %d mutants, and take %.1f s", s.dir, len(s.met), s.took.Seconds())
	}
	return nil
}

// fails runs a suite. What takes far longer than without a mutant fails, too.
func (s *suite) fails(limit time.Duration, variable string) (failed bool, out []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, "-test.short", "-test.failfast")
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), variable)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return err != nil, out
}

// kill says of each mutant whether a test notices it.
func kill(all []mutant, say func(m mutant, killed bool)) {
	next := make(chan mutant)
	var workers sync.WaitGroup
	var one sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for m := range next {
				killed := false
				for _, s := range m.suites() {
					if m.metBy(s) && !killed {
						killed, _ = s.fails(10*s.took+10*time.Second, fmt.Sprintf("MUTANT=%d", m.id))
					}
				}
				one.Lock()
				say(m, killed)
				one.Unlock()
			}
		})
	}
	for _, m := range all {
		next <- m
	}
	close(next)
	workers.Wait()
}

// switches is a file for each package that has mutants. The program that runs says by variables
// which mutant is on, and where to note those that were met.
const switches = `package %s

import (
	"fmt"
	"os"
	"sync/atomic"
)

var (
	mutantID   = os.Getenv("MUTANT")
	mutantFile = os.Getenv("MUTANTS_MET")
	mutantsMet [10000]atomic.Bool
)

func mutantOn(id int) bool {
	if mutantFile != "" && !mutantsMet[id].Swap(true) {
		if f, err := os.OpenFile(mutantFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintln(f, id)
			f.Close()
		}
	}
	return mutantID != "" && mutantID == fmt.Sprint(id)
}

func mutantInstead[T any](id int, is, instead T) T {
	if mutantOn(id) {
		return instead
	}
	return is
}
`
