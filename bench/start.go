package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// binaries are the programs built.
type binaries struct{ product, agent, bare, life, ghwpci, launch string }

// build compiles everything that is run: Go as for a release, C by the usual
// compiler.
func build(ctx context.Context, dir string) (binaries, error) {
	b := binaries{
		product: filepath.Join(dir, "gdr-features"), agent: filepath.Join(dir, "gdr-features-agent"), bare: filepath.Join(dir, "bare"),
		ghwpci: filepath.Join(dir, "ghwpci"), launch: filepath.Join(dir, "launch"),
		life: filepath.Join(dir, "life"),
	}
	cc, err := compiler()
	if err != nil {
		return b, err
	}
	const strip = "-s -w"
	for _, argv := range [][]string{
		{"go", "build", "-trimpath", "-ldflags", strip, "-o", b.product, "./cmd/gdr-features"},
		{"go", "build", "-trimpath", "-ldflags", strip, "-o", b.agent, "./cmd/gdr-features-agent"},
		{"go", "build", "-trimpath", "-ldflags", strip, "-o", b.ghwpci, "./bench/ghwpci"},
		{cc, "-O2", "-o", b.bare, "bench/bare/bare.c"},
		{cc, "-O2", "-o", b.launch, "bench/launch/launch.c"},
		{cc, "-O2", "-o", b.life, "bench/life/life.c"},
	} {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, text)
		}
	}
	return b, nil
}

func compiler() (string, error) {
	for _, name := range []string{"cc", "gcc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no C compiler, and bench/bare is C: install gcc and libc6-dev")
}

// start is what happens before main, and what makes it happen.
type start struct {
	total    float64 // ms
	packages []initCost
	// linked are the packages in the program, heavy those that must not be.
	linked int
	heavy  []string
}

// initCost is the time one package takes to initialise.
type initCost struct {
	name string
	ms   float64
}

// startUp measures the initialisation of packages and finds out what is linked in.
func startUp(ctx context.Context, product, tree string, runs int) (start, error) {
	var st start
	byPackage := map[string][]float64{}
	var totals []float64
	for range runs {
		cmd := exec.CommandContext(ctx, product, "--root", tree, "labels")
		var trace bytes.Buffer
		cmd.Env, cmd.Stderr = []string{"GODEBUG=inittrace=1"}, &trace
		if err := cmd.Run(); err != nil {
			return st, fmt.Errorf("inittrace: %w: %s", err, &trace)
		}
		total := 0.0
		for _, p := range parseInitTrace(trace.String()) {
			byPackage[p.name] = append(byPackage[p.name], p.ms)
			total += p.ms
		}
		totals = append(totals, total)
	}
	st.total = median(totals)
	for name, ms := range byPackage {
		st.packages = append(st.packages, initCost{name, median(ms)})
	}
	slices.SortFunc(st.packages, func(a, b initCost) int {
		return cmp.Or(cmp.Compare(b.ms, a.ms), cmp.Compare(a.name, b.name))
	})
	linked, err := linkedPackages(ctx)
	st.linked = len(linked)
	for _, name := range linked {
		if isHeavy(name) {
			st.heavy = append(st.heavy, name)
		}
	}
	return st, err
}

// parseInitTrace reads lines "init net/http @0.76 ms, 0.12 ms clock, 5344 bytes,
// 58 allocs" (package runtime, GODEBUG inittrace) and skips others. Names are as
// in symbols: "gopkg.in/yaml%2ev3".
func parseInitTrace(text string) []initCost {
	var all []initCost
	for line := range strings.Lines(text) {
		var p initCost
		var at float64
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &p.name, &at, &p.ms); err != nil {
			continue
		}
		if name, err := url.PathUnescape(p.name); err == nil {
			p.name = name
		}
		all = append(all, p)
	}
	return all
}

func linkedPackages(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "./cmd/gdr-features")
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &stderr)
	}
	return strings.Fields(string(text)), nil
}

// isHeavy reports whether a package would slow down every start.
func isHeavy(name string) bool {
	for _, prefix := range []string{"k8s.io/client-go", "k8s.io/api", "github.com/prometheus", "sigs.k8s.io/node-feature-discovery"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
