// Package imagecommand is the command image of kubectl gdr.
package imagecommand

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/fleet/image"
	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

// New is the command image, which tells what an unpacked image has, without a node.
// variable returns one of the environment.
func New(out io.Writer, variable func(name string) string) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "image DIR",
		Short: "Tell what RDMA libraries and frameworks an unpacked image has",
		Long: `image reads the files of an unpacked container image and runs none of them. It prints
libibverbs and its providers, as a program in the image finds them, whether they take
DMA-BUF, and the frameworks that are there, with the ways to GPU memory that they know
(docs/mechanisms.md). LD_LIBRARY_PATH and other variables are those of the environment.

On a node, or with the snapshot of one, gdr-features check --pod --image DIR compares the
image with the node. This command needs neither, and runs on macOS and Windows, too.

Exit status: 0; 2 if programs in the image cannot open any RDMA device; 1 on an error.`,
		Example: `  crane export registry.example.com/job:v1 - | tar -x -C job && kubectl gdr image job
  LD_LIBRARY_PATH=/opt/hpcx/ucx/lib kubectl gdr image -o json job | jq .frameworks`,
		Args: cli.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			root, err := os.OpenRoot(args[0])
			if err != nil {
				return err
			}
			defer root.Close()
			variables := map[string]string{}
			for _, name := range append(image.Variables(), mechanism.Variables()...) {
				variables[name] = variable(name)
			}
			i := imageOf(image.Read(root.FS(), variables), variables)
			if format == "json" {
				err = show.JSON(out, i)
			} else {
				err = i.text(out)
			}
			if err == nil && !i.usable() {
				return cli.StatusOf(tristate.False)
			}
			return err
		},
	}
	cli.Output(c, &format, "table or json", "table", "json")
	return c
}

// imageJSON is the output for programs. Names without a value are "".
type imageJSON struct {
	Loader     string          `json:"loader"`
	Libibverbs *libraryJSON    `json:"libibverbs"`
	Providers  []libraryJSON   `json:"providers"`
	Frameworks []frameworkJSON `json:"frameworks"`
	Problems   []string        `json:"problems"`
}

type libraryJSON struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	File    string `json:"file"`
	DMABuf  *bool  `json:"dmabuf,omitempty"`
	// ABI are the first and last version of the kernel driver's interface.
	ABI []uint32 `json:"abi,omitempty"`
	// Wrong says why a program does not get to use it; "" for nothing.
	Wrong string `json:"wrong"`
}

type frameworkJSON struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	File    string `json:"file"`
	Peermem string `json:"peermem"`
	DMABuf  string `json:"dmabuf"`
}

func imageOf(i *image.Image, variables map[string]string) imageJSON {
	j := imageJSON{
		Loader: i.Loader, Providers: []libraryJSON{}, Frameworks: []frameworkJSON{},
		Problems: append([]string{}, sanitize.Errors(i.Problems)...),
	}
	if v := i.Verbs; v != nil {
		dmabuf := v.Exports(image.RegisterDMABuf)
		j.Libibverbs = &libraryJSON{Name: image.Libibverbs, Version: v.Release(), File: v.Path, DMABuf: &dmabuf, Wrong: lacks(v)}
	}
	for n := range i.Providers {
		j.Providers = append(j.Providers, providerOf(&i.Providers[n]))
	}
	for _, f := range i.Frameworks {
		ways := mechanism.Ways{}
		if rows := mechanism.For(f.Name, f.Version); len(rows) == 1 {
			ways = rows[0].Ways(variables)
		}
		j.Frameworks = append(j.Frameworks, frameworkJSON{f.Name, sanitize.Terminal(f.Version), sanitize.Terminal(f.File), ways.Peermem.String(), ways.DMABuf.String()})
	}
	return j
}

func lacks(l *image.Library) string {
	if len(l.Lacks) == 0 {
		return ""
	}
	return "the image lacks " + sanitize.Terminal(strings.Join(l.Lacks, ", "))
}

func providerOf(p *image.Provider) libraryJSON {
	j := libraryJSON{Name: sanitize.Terminal(p.Name)}
	switch {
	case p.Err != nil:
		j.Wrong = sanitize.Terminal(p.Err.Error())
	case p.Library != nil:
		j.File, j.Wrong = sanitize.Terminal(p.Library.Path), lacks(p.Library)
		if p.ABI != nil {
			j.ABI = []uint32{p.ABI.Min, p.ABI.Max}
		}
		if p.Listed == "" {
			j.Wrong = cmp.Or(j.Wrong, "not listed in libibverbs.d")
		}
	case p.Other != "":
		j.File, j.Wrong = sanitize.Terminal(p.Other), "of another release than libibverbs"
	default:
		j.Wrong = "listed, and not here"
	}
	return j
}

// usable reports whether programs in the image can open the devices of some family.
func (j *imageJSON) usable() bool {
	return j.Libibverbs != nil && j.Libibverbs.Wrong == "" &&
		slices.ContainsFunc(j.Providers, func(p libraryJSON) bool { return p.Wrong == "" })
}

func (j *imageJSON) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")) }
	switch {
	case j.Loader == "":
		line("no dynamic loader: a static program's image, in which no job runs")
	case j.Libibverbs == nil:
		line("libibverbs", "-", "the loader finds none: programs see no RDMA device")
	default:
		dmabuf := "with DMA-BUF"
		if !*j.Libibverbs.DMABuf {
			dmabuf = "without DMA-BUF (ibv_reg_dmabuf_mr)"
		}
		line("libibverbs", cmp.Or(j.Libibverbs.Version, "-"), orWrong(dmabuf, j.Libibverbs.Wrong), j.Libibverbs.File)
	}
	for _, p := range j.Providers {
		abi := ""
		if len(p.ABI) > 0 {
			abi = fmt.Sprintf("kernel ABI %d to %d", p.ABI[0], p.ABI[1])
		}
		line("provider", p.Name, orWrong(abi, p.Wrong), p.File)
	}
	for _, f := range j.Frameworks {
		line(f.Name, cmp.Or(f.Version, "-"), "peermem "+f.Peermem+", DMA-BUF "+f.DMABuf, f.File)
	}
	for _, problem := range j.Problems {
		line("not readable", problem)
	}
	return w.Flush()
}

func orWrong(text, wrong string) string {
	if wrong != "" {
		return "WRONG: " + wrong
	}
	return text
}
