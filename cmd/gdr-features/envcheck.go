package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdr-features/internal/cli"
	"gdr-features/internal/regular"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

// maxGiven is the largest file of variables read, in bytes.
const maxGiven = 1 << 20

func (a *app) checkEnv(ctx context.Context, o envOptions, args []string) error {
	given, err := a.given(args)
	if err != nil {
		return err
	}
	here, err := a.assign(ctx, o.gpus)
	if err != nil {
		return err
	}
	state, found := tristate.True, 0
	var text bytes.Buffer
	rows := []envRow{}
	for _, g := range given {
		g.Networks = here.seen.Visible.Networks
		m := here.Assignment
		if selected := frameworks.SelectHere(here.seen, g.Variables); o.gpus == "" && !g.Foreign && len(selected.GPUs) > 0 {
			m, g.UnknownGPUs = m.Only(selected.GPUs), selected.Unknown
		}
		findings := frameworks.Check(m, g)
		for _, f := range findings {
			text.WriteString(linesOf(f))
			rows = append(rows, rowsOf(f)...)
			state = tristate.And(state, f.State)
		}
		found += len(findings)
	}
	if found == 0 {
		text.WriteString("none of the variables is set: frameworks choose NICs themselves\n")
	}
	if o.format == "json" {
		err = show.JSON(a.out, map[string][]envRow{"variables": rows})
	} else {
		_, err = a.page.Write(text.Bytes())
	}
	if found == 0 || !here.seen.Node.PCIRead || len(here.Choices) == 0 {
		state = tristate.And(state, tristate.Unknown)
	}
	return cmp.Or(err, cli.StatusOf(state))
}

func (a *app) given(args []string) ([]frameworks.Environment, error) {
	given := []frameworks.Environment{{Variables: environment(frameworks.Read())}}
	if len(args) > 0 {
		data, err := a.readInput(args[0])
		if err != nil {
			return nil, err
		}
		if given, err = frameworks.Parse(data); err != nil {
			return nil, fmt.Errorf("%s: %w", args[0], err)
		}
	}
	for i := range given {
		given[i].Foreign = len(args) > 0
		given[i].ReadFiles(readNamed)
	}
	return given, nil
}

func (a *app) readInput(name string) ([]byte, error) {
	if name != "-" {
		return regular.ReadFile(name, maxGiven)
	}
	data, err := io.ReadAll(io.LimitReader(a.in, maxGiven+1))
	if err == nil && len(data) > maxGiven {
		err = errors.New("standard input: too large")
	}
	return data, err
}

// readNamed reads a file that a variable names.
func readNamed(name string) ([]byte, error) { return regular.ReadFile(name, maxGiven) }

// linesOf is a line for a variable, and one for each GPU that it is about.
func linesOf(f *frameworks.Finding) string {
	whole := *f
	whole.Problems = f.Others() // those of one GPU are in its line
	var lines strings.Builder
	fmt.Fprintf(&lines, "%-9s%s\n", f.Word(), sanitize.Terminal(whole.Text()))
	for _, note := range f.Notes {
		fmt.Fprintf(&lines, "%-9s%s  note: %s\n", "", f.Name, sanitize.Terminal(note))
	}
	for i := range f.GPUs {
		g := &f.GPUs[i]
		text := "uses " + strings.Join(g.Given, ", ")
		switch {
		case len(g.Problems) > 0:
			text = strings.Join(g.Problems, "; ")
		case len(g.Given) == 0:
			text = "has no usable NIC here"
		}
		fmt.Fprintf(&lines, "%-9s%s  %s  %s\n", g.Word(), f.Name, explain.GPUName(g.Index), sanitize.Terminal(text))
	}
	return lines.String()
}

// envRow is a variable as a whole, without a GPU, or for one of them.
type envRow struct {
	Variable string   `json:"variable"`
	GPU      string   `json:"gpu"` // its address, "" for the variable as a whole
	State    string   `json:"state"`
	Given    []string `json:"given"`
	Near     []string `json:"near"`
	Problems []string `json:"problems"`
	Right    string   `json:"right"`
	Notes    []string `json:"notes"`
}

func rowsOf(f *frameworks.Finding) []envRow {
	list := func(texts []string) []string { return append([]string{}, texts...) }
	rows := []envRow{{
		Variable: f.Name, State: f.Word(), Given: list(nil), Near: list(nil),
		Problems: list(f.Others()), Right: f.Want, Notes: list(f.Notes),
	}}
	for i := range f.GPUs {
		g := &f.GPUs[i]
		rows = append(rows, envRow{
			Variable: f.Name, GPU: g.Address, State: g.Word(), Given: list(g.Given), Near: list(g.Near),
			Problems: list(g.Problems), Notes: list(nil),
		})
	}
	return rows
}
