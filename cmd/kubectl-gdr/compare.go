package main

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"gdr-features/internal/cli"
	"gdr-features/internal/nodes"
	"gdr-features/internal/nodes/alike"
	"gdr-features/internal/nodes/apiserver"
)

func (p *program) diff(cmd *cobra.Command, names []string) error {
	ctx := cmd.Context()
	filter, ofNodes, err := p.filter(names, true)
	if err != nil {
		return err
	}
	all, err := p.read(ctx, apiserver.Query{Names: names, Hardware: true}, func(access *rest.Config, q apiserver.Query) (err error) {
		if ofNodes != "" {
			filter.Only, err = apiserver.NamesOf(ctx, access, ofNodes, q.PageSize)
		}
		return err
	})
	if err != nil {
		return err
	}
	picked := filter.Pick(all)
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
