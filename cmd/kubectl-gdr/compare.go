package main

import (
	"errors"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/fleet/nodes/alike"
	"gdr-features/internal/fleet/nodes/apiserver"
)

func (p *program) diff(cmd *cobra.Command, names []string) error {
	ctx := cmd.Context()
	a, err := p.ask(names)
	if err != nil {
		return err
	}
	a.query.Hardware = true
	all, err := p.list(ctx, a)
	if err != nil {
		return err
	}
	if a.ofNodes != "" {
		if a.filter.Only, err = apiserver.Nodes(ctx, a.access, a.query, a.ofNodes); err != nil {
			return err
		}
	}
	picked := a.filter.Pick(all)
	result := alike.Compare(picked)
	json := func() error { return alike.JSON(p.out, &result) }
	text := func() error { return alike.Text(p.page, &result, p.style()) }
	if err := p.show(len(picked), nodes.Missing(names, all), json, text, ""); err != nil {
		return err
	}
	if len(result.Older) > 0 && len(result.Kinds) == 0 {
		return errors.New("no agent of these nodes publishes what diff compares; are they of an older version?")
	}
	return cli.StatusOf(result.Alike())
}
