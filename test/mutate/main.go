// Command mutate asks whether the tests notice when a judgement is wrong. It changes conditions of
// the packages that judge, one at a time (sites.go), and runs tests until one fails: those of the
// package, then those of packages above it, and at last the golden files. All changes are compiled
// into the tests at once, by the overlay of go build, and a variable switches one on; no file of
// the repository is written.
//
// A mutant that no test notices survives. Those that change nothing are listed in equal.txt, each
// with the reason; any other fails the run, and so does a line there that no longer holds.
//
// Each run takes a sample, the same ones as long as their functions stay: by a hash of the name. With
// -only it takes all whose name matches.
package main

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
	"time"
)

// judging are the packages that are changed.
var judging = []string{"verdict", "topology", "internal/nodelabel", "internal/assign", "internal/frameworks", "internal/findings"}

// above are the tests that see what these say, in the order in which they run.
var above = []suite{
	{dir: "verdict"}, {dir: "topology"}, {dir: "internal/nodelabel"}, {dir: "internal/assign"},
	{dir: "internal/report"}, {dir: "internal/frameworks"}, {dir: "internal/findings"},
	{dir: "cmd/gdr-features", run: "^TestGolden"},
}

//go:embed equal.txt
var equalText string

// suite is the tests of a package.
type suite struct {
	dir, run string
	program  string
	took     time.Duration
	met      map[int]bool // the mutants that its tests come by
}

func main() {
	every := flag.Uint("every", 8, "take every `n`th mutant")
	only := flag.String("only", "", "take all mutants whose name matches this `regexp`")
	flag.Parse()
	if err := run(uint32(*every), *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(every uint32, only string) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	equal := reasons(equalText)
	all, err := write(dir, func(name string) bool {
		if only != "" {
			return pattern.MatchString(name)
		}
		return equal[name] != "" || sum(name)%every == 0
	})
	if err != nil {
		return err
	}
	if err := prepare(dir); err != nil {
		return err
	}
	survived, unlisted := 0, 0
	byName := map[string]string{} // and what killed it
	for i, killer := range kill(all) {
		m := all[i]
		byName[m.name] = killer
		switch {
		case killer != "":
			fmt.Printf("killed    %s (%s)\n", m.name, killer)
		case equal[m.name] != "":
			survived++
			fmt.Printf("equal     %s: %s\n", m.name, equal[m.name])
		default:
			survived, unlisted = survived+1, unlisted+1
			fmt.Printf("SURVIVED  %s (%s)\n", m.name, metBy(m.id))
		}
	}
	fmt.Printf("%d mutants: %d killed, %d survived, %d of these not listed in equal.txt\n", len(all), len(all)-survived, survived, unlisted)
	stale := 0
	for name := range equal {
		if killer, there := byName[name]; only == "" && (killer != "" || !there) {
			stale++
			fmt.Printf("equal.txt: %s: is killed, or not there\n", name)
		}
	}
	if unlisted+stale > 0 {
		return fmt.Errorf("%d survived, %d lines of equal.txt do not hold", unlisted, stale)
	}
	return nil
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
	for _, pkg := range judging {
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
					all = append(all, mutant{name: name, dir: pkg, id: len(all) + 1})
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
func prepare(dir string) error {
	for i := range above {
		s := &above[i]
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
		fmt.Fprintf(os.Stderr, "%s: %d mutants are met, %.1f s\n", s.dir, len(s.met), s.took.Seconds())
	}
	return nil
}

// fails runs a suite. What takes far longer than without a mutant fails, too.
func (s *suite) fails(limit time.Duration, variable string) (failed bool, out []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, "-test.short", "-test.failfast", "-test.run="+s.run)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), variable)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return err != nil, out
}

// kill returns the tests that notice each mutant, "" for one that survives.
func kill(all []mutant) []string {
	killers := make([]string, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				killers[i] = killer(all[i])
				if killers[i] == "" {
					fmt.Fprintln(os.Stderr, "survives:", all[i].name)
				}
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	return killers
}

func killer(m mutant) string {
	own := func(s suite) int {
		if s.dir == m.dir {
			return 0
		}
		return 1
	}
	for _, s := range slices.SortedStableFunc(slices.Values(above), func(a, b suite) int { return own(a) - own(b) }) {
		if !s.met[m.id] {
			continue
		}
		if failed, _ := s.fails(10*s.took+10*time.Second, fmt.Sprintf("MUTANT=%d", m.id)); failed {
			return s.dir
		}
	}
	return ""
}

// metBy says whose tests come by a mutant.
func metBy(id int) string {
	var names []string
	for _, s := range above {
		if s.met[id] {
			names = append(names, s.dir)
		}
	}
	if names == nil {
		return "no test comes by"
	}
	return "met by " + strings.Join(names, ", ")
}
