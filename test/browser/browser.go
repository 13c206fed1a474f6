// Command browser takes the screenshot of the README, a page of topo -o html, with a
// real Chromium. Its tests measure the pages of all machines there.
//
//	go run . -o ../../docs/topo.png
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// view is how a page is displayed.
type view struct {
	name          string
	media, scheme string // screen or print; light or dark
	width         int64  // in CSS pixels
	scale         float64
}

// The views of a page. A window of 1280 pixels with a scroll bar leaves 1265.
var (
	light = view{"light", "screen", "light", 1265, 1}
	dark  = view{"dark", "screen", "dark", 1265, 1}
	phone = view{"phone", "screen", "dark", 375, 2}
	paper = view{"paper", "print", "dark", 718, 1} // A4 with margins of 10 mm
	sharp = view{"sharp", "screen", "light", 1265, 2}
)

// repository is the root of the repository, relative to this directory.
const repository = "../.."

// chromium finds the browser.
func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium: apt-get install chromium")
}

// start starts a browser that ends with the context.
func start(ctx context.Context) (context.Context, context.CancelFunc, error) {
	path, err := chromium()
	if err != nil {
		return nil, nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("allow-pre-commit-input", true)) // a key pressed before the first paint would be lost
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to be root in its sandbox
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancel := chromedp.NewContext(ctx)
	if err := chromedp.Run(ctx); err != nil {
		cancel()
		stop()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return ctx, func() { cancel(); stop() }, nil
}

// set sets the window up for a view, without motion.
func (v view) set() chromedp.Action {
	return chromedp.Tasks{
		emulation.SetDeviceMetricsOverride(v.width, 900, v.scale, false),
		emulation.SetEmulatedMedia().WithMedia(v.media).WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: v.scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		}),
	}
}

// product builds the program once into a directory.
func product(ctx context.Context, dir string) (string, error) {
	return goTool(ctx, dir, "gdr-features", "./cmd/gdr-features")
}

// goTool builds a command of the product.
func goTool(ctx context.Context, dir, name, pkg string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, pkg)
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// machines lays machines out and asks the product about them.
type machines struct{ dir, product, mktree string }

func newMachines(ctx context.Context, dir string) (*machines, error) {
	binary, err := product(ctx, dir)
	if err != nil {
		return nil, err
	}
	mktree, err := goTool(ctx, dir, "mktree", "./test/machine/mktree")
	return &machines{dir, binary, mktree}, err
}

// description is the file that describes a machine of the tests.
func description(machine string) string {
	return filepath.Join(repository, "testdata/machines", machine+".txt")
}

// topo writes what topo says of a machine in a state to a file and gives its name.
func (m *machines) topo(ctx context.Context, description, state, format string) (string, error) {
	name := strings.TrimSuffix(filepath.Base(description), ".txt")
	tree := filepath.Join(m.dir, name+"-"+state)
	if _, err := os.Stat(tree); err != nil {
		lay := exec.CommandContext(ctx, m.mktree, description, tree, state)
		if out, err := lay.CombinedOutput(); err != nil {
			return "", fmt.Errorf("lay out %s: %w\n%s", name, err, out)
		}
	}
	text, err := exec.CommandContext(ctx, m.product, "--root", tree, "topo", "-o", format).Output()
	if err != nil {
		return "", fmt.Errorf("topo -o %s of %s: %w", format, name, err)
	}
	file := tree + "." + format
	return file, os.WriteFile(file, text, 0o600)
}

// screenshot takes the page of a machine down to the end of its matrix.
func screenshot(ctx context.Context, file string) ([]byte, error) {
	var bottom float64
	var png []byte
	err := chromedp.Run(ctx, sharp.set(), chromedp.Navigate("file://"+file),
		chromedp.Evaluate(`document.querySelector("table.matrix").getBoundingClientRect().bottom`, &bottom),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).
				WithClip(&page.Viewport{Width: float64(sharp.width), Height: bottom + 16, Scale: 1}).Do(ctx)
			return err
		}))
	return png, err
}
