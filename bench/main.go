// Command bench measures what a run of gdr-features costs and compares it with what
// docs/cost.md claims. Run it in the root of the repository, as `make bench` does.
//
//	go run ./bench [-n ROUNDS] [-dir DIRECTORY]
//
// It compares three programs on the same trees: `gdr-features --root TREE
// labels`; bare (bare/bare.c, the cost of only reading the files); and ghwpci
// (ghwpci/main.go, one call of ghw.PCI). Each round runs all of them once, one
// after the other, so that whatever slows the machine down slows down all of
// them. Costs are whole processes, from exec to exit: user and system time and
// peak resident memory, from wait4(2). Ratios are those of medians over rounds,
// so they can be checked against the table. Where other programs used the machine
// meanwhile, or where the runs of bare differ from each other, no claim about time
// is judged: bench says so and why, and judges the others. Nor is one that is over its
// limit by less than the runs of bare differ.
//
// The trees are files, in memory where that is possible, and so is their
// kallsyms. A kernel takes 20 ms and more to make up the real one, for every
// program that reads it: a run on a live machine is nearer to bare than here, and
// nearer to ghw.PCI, which does not read it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"gdr-features/test/busy"
)

// Names of the programs in the tables.
const (
	product = "gdr-features"
	bare    = "bare"
	ghwpci  = "ghw.PCI"
)

// The machine, and the same one with NICs of another family.
const (
	machineFile     = "testdata/machines/dell-xe9680-h100.txt"
	otherFamilyFile = "testdata/machines/made-xe9680-h100-thor2.txt"
)

// errOver: something costs more than claimed.
var errOver = errors.New("over the limit")

func main() {
	rounds := flag.Int("n", 40, "measured `rounds`; each runs every program once on each tree")
	dir := flag.String("dir", "", "`directory` for programs and trees, 400 MB (default /dev/shm where it has room, else the temporary one)")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *rounds, *dir)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run works in a directory of its own, which it removes.
func run(ctx context.Context, out io.Writer, rounds int, parent string) (err error) {
	if err := findPCIIDs(); err != nil {
		return err
	}
	if parent == "" {
		parent = roomyDir()
	}
	dir, err := os.MkdirTemp(parent, "gdr-features-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin, err := build(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d rounds on %d CPUs, %s, trees in %s\n", rounds, runtime.NumCPU(), runtime.Version(), parent)
	trees, shared, otherFamily, err := layOut(dir)
	if err != nil {
		return fmt.Errorf("trees: %w", err)
	}
	m, err := measureAll(ctx, bin, subjects(bin, append(trees, shared), otherFamily), trees[0].dir, dir, rounds)
	if err != nil {
		return err
	}
	return report(out, m)
}

// measured is all that is measured.
type measured struct {
	// subjects are the machine, the machine with more and more functions, and last
	// the machine with virtual functions.
	subjects []subject
	start    start
	hour     idle
	life     life
	// others is the share of the CPU time, 0 to 1, that other programs took
	// meanwhile.
	others float64
}

func measureAll(ctx context.Context, bin binaries, all []subject, tree, dir string, rounds int) (m measured, err error) {
	others, err := busy.Watch(os.Getpid())
	if err != nil {
		return m, err
	}
	m.subjects = all
	if err := measure(ctx, bin.launch, all, rounds); err != nil {
		return m, err
	}
	if m.start, err = startUp(ctx, bin.product, tree, rounds); err != nil {
		return m, err
	}
	idles, err := idleHours(ctx, bin, tree, all[0].bare)
	if err != nil {
		return m, err
	}
	m.hour = middle(idles)
	if m.life, err = cheapestLife(ctx, bin, tree, dir); err != nil {
		return m, err
	}
	m.others, err = others()
	return m, err
}

// subjects are the programs on each tree; ghw.PCI and check on the first alone, and with it
// the product on a tree with NICs of another family. What a
// program must print proves that it read the tree.
func subjects(bin binaries, trees []tree, otherFamily string) []subject {
	var all []subject
	for i, t := range trees {
		counted := fmt.Sprintf("functions=%d", t.functions)
		s := subject{
			functions: t.functions,
			product:   &series{name: product, argv: []string{bin.product, "--root", t.dir, "labels"}, want: "gdr.gpus=8\n"},
			bare:      &series{name: bare, argv: []string{bin.bare, t.dir}, want: counted},
		}
		if i == 0 {
			s.ghw = &series{name: ghwpci, argv: []string{bin.ghwpci, t.dir}, want: counted}
			s.check = &series{name: product + " check", argv: []string{bin.product, "--root", t.dir, "check"}, want: "PCIe links"}
			s.otherFamily = &series{name: product + " other NICs", argv: []string{bin.product, "--root", otherFamily, "labels"}, want: "gdr.nic.bnxt_re=true\n"}
			s.bareCheck = &series{name: bare + " check", argv: []string{bin.bare, t.dir, "check"}, want: counted}
		}
		all = append(all, s)
	}
	return all
}

// pciIDs are where ghw finds its database on this machine.
var pciIDs = []string{"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"}

func findPCIIDs() error {
	for _, name := range pciIDs {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no pci.ids at %s or %s, and ghw.PCI needs one: install the package pci.ids (Debian, Ubuntu) or hwdata", pciIDs[0], pciIDs[1])
}

// room is the space that programs and trees need, and half as much again.
const room = 512 << 20

// roomyDir is a file system in memory where there is one with room: containers
// often have 64 MB.
func roomyDir() string {
	const shm = "/dev/shm"
	var st syscall.Statfs_t
	if err := syscall.Statfs(shm, &st); err == nil && st.Bavail*uint64(st.Bsize) >= room {
		return shm
	}
	return os.TempDir()
}
