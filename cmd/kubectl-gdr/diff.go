package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"gdr-features/internal/cli"
	"gdr-features/internal/nodes"
	"gdr-features/internal/nodes/alike"
	"gdr-features/internal/nodes/apiserver"
)

// diff compares nodes of one kind with each other.
func (p *program) diff(ctx context.Context, names []string) error {
	filter, err := p.filter(names)
	if err != nil {
		return err
	}
	var ofNodes string
	if err := p.selects(func(text string) (err error) {
		ofNodes, err = filter.SelectNodes(text)
		return err
	}); err != nil {
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
	picked, missing := filter.Pick(all), nodes.Missing(names, all)
	result := alike.Compare(picked)
	if len(picked) > 0 || len(missing) == 0 {
		if err := p.showDiff(&result, len(picked)); err != nil {
			return err
		}
	}
	if err := nobody(missing); err != nil {
		return err
	}
	if len(result.Older) > 0 && len(result.Kinds) == 0 {
		return errors.New("no agent of these nodes publishes what diff compares; are they of an older version?")
	}
	return cli.StatusOf(result.Alike())
}

func (p *program) showDiff(r *alike.Result, picked int) error {
	switch {
	case p.flags.Output == "json":
		return alike.JSON(p.out, r)
	case picked == 0:
		_, err := fmt.Fprintln(p.err, "no node matches")
		return err
	}
	return alike.Text(p.page, r, p.style())
}
