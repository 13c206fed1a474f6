package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/frameworks"
	"gdr-features/internal/sanitize"
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
	for _, g := range given {
		g.Networks = here.report.Visible.Networks
		m := here.Assignment
		if selected := here.report.Selected(g.Variables); o.gpus == "" && !g.Foreign && len(selected.GPUs) > 0 {
			m, g.UnknownGPUs = m.Only(selected.GPUs), selected.Unknown
		}
		findings := frameworks.Check(m, g)
		for _, f := range findings {
			text.WriteString(lineOf(f))
			state = tristate.And(state, f.State)
		}
		found += len(findings)
	}
	if found == 0 {
		text.WriteString("none of the variables is set: frameworks choose NICs themselves\n")
	}
	if _, err := a.page.Write(text.Bytes()); err != nil {
		return err
	}
	if found == 0 || !here.report.PCIRead || len(here.Choices) == 0 {
		state = tristate.And(state, tristate.Unknown)
	}
	return cli.StatusOf(state)
}

// environment returns variables of this process.
func environment(names []string) map[string]string {
	values := map[string]string{}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			values[name] = value
		}
	}
	return values
}

// given reads what is to be judged.
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
		return machineflags.ReadFile(name, maxGiven)
	}
	data, err := io.ReadAll(io.LimitReader(a.in, maxGiven+1))
	if err == nil && len(data) > maxGiven {
		err = errors.New("standard input: too large")
	}
	return data, err
}

// readNamed reads a file that a variable names. Of anything but a regular file, as a FIFO,
// there may be no end.
func readNamed(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	return machineflags.ReadFile(name, maxGiven)
}

func lineOf(f *frameworks.Finding) string {
	word := map[tristate.State]string{tristate.True: "OK", tristate.False: "WRONG", tristate.Unknown: "UNKNOWN"}[f.State]
	if f.Part {
		word = "PART"
	}
	return sanitize.Terminal(fmt.Sprintf("%-8s%s", word, f.Text())) + "\n"
}
