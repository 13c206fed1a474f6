// Command bench measures what gdr-features costs and holds it against the bars of
// docs/cost.md. Run it in the root of the repository, as `make bench` does.
//
//	go run ./bench [-n ROUNDS] [-dir DIRECTORY]
//
// The bars on time are ratios within one run: to bare (bare/bare.c, the cost of only
// reading the files), and to lstopo of hwloc, which reads the same devices. Each round runs
// all programs once, one after the other, in another order each time: the second on a tree
// finds it in the CPU's caches. The cost of a program is the user and system time of its
// cheapest run, a whole process from exec to exit.
//
// Where bare's own runs differ much from each other, other programs use the machine: then
// no claim about time is judged. Nor is one that is over its bar by less than bare's runs
// differ.
//
// The trees are files, in memory where that is possible, and so is their kallsyms. A
// kernel takes 20 ms and more to make up the real one, for every program that reads it: a
// run on a live machine is nearer to bare than here.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// errOver: something costs more than its bar.
var errOver = errors.New("over the bar")

func main() {
	rounds := flag.Int("n", 20, "measured `rounds`; each runs every program once on each tree")
	dir := flag.String("dir", "", "`directory` for programs and trees, 600 MB (default /dev/shm where it has room, else the temporary one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case flag.Arg(0) == "peak": // see peakOf
		err = peak(ctx, os.Stdout, flag.Args()[1:])
	case flag.NArg() > 0 || *rounds < 1:
		flag.Usage()
		os.Exit(2)
	default:
		err = run(ctx, os.Stdout, *rounds, *dir)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run works in a directory of its own, which it removes.
func run(ctx context.Context, out io.Writer, rounds int, parent string) (err error) {
	lstopo, err := exec.LookPath("lstopo-no-graphics")
	if err != nil {
		return fmt.Errorf("%w: install the package hwloc-nox (Debian, Ubuntu) or hwloc", err)
	}
	if parent == "" {
		parent = roomyDir()
	}
	dir, err := os.MkdirTemp(parent, "gdr-features-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	product, bare, err := build(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d rounds on %d CPUs, %s, trees in %s\n", rounds, runtime.NumCPU(), runtime.Version(), parent)
	tree := func(name string) string { return filepath.Join(dir, name) }
	base, more, wide, widest := tree("base"), tree("more"), tree("wide"), tree("widest")
	if err := layOut(base, more, wide, widest); err != nil {
		return fmt.Errorf("trees: %w", err)
	}
	job, err := onLog(filepath.Join(dir, "job.log"), product)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	on := func(tree string) programs { return onTree(tree, product, bare, lstopo) }
	m := measured{base: on(base), more: on(more), wide: on(wide), widest: on(widest), job: job}
	all := slices.Concat(m.base.all(), m.more.all(), m.wide.ofNICs(), m.widest.ofNICs(), m.job.all())
	for range rounds {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, p := range all {
			if err := p.once(ctx); err != nil {
				return err
			}
		}
	}
	if m.peak, err = peakOf(ctx, m.base.labels.argv); err != nil {
		return err
	}
	if m.widePeak, err = peakOf(ctx, m.widest.labels.argv); err != nil {
		return err
	}
	if m.logPeak, err = peakOf(ctx, m.job.log.argv); err != nil {
		return err
	}
	file, err := os.Stat(product)
	if err != nil {
		return err
	}
	m.size = float64(file.Size()) / 1e6
	if m.idle, err = idleShare(base); err != nil {
		return err
	}
	return report(out, &m)
}

// build compiles both programs, Go as for a release.
func build(ctx context.Context, dir string) (product, bare string, err error) {
	product, bare = filepath.Join(dir, "gdr-features"), filepath.Join(dir, "bare")
	for _, argv := range [][]string{
		{"go", "build", "-trimpath", "-ldflags", "-s -w", "-o", product, "./cmd/gdr-features"},
		{"gcc", "-O2", "-o", bare, "bench/bare/bare.c"},
	} {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, text)
		}
	}
	return product, bare, nil
}

// roomyDir is a file system in memory where there is one with room: containers often have
// 64 MB.
func roomyDir() string {
	const shm, room = "/dev/shm", 1 << 30
	var st syscall.Statfs_t
	if err := syscall.Statfs(shm, &st); err == nil && st.Bavail*uint64(st.Bsize) >= room {
		return shm
	}
	return os.TempDir()
}
