package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"gdr-features/internal/cli"
	"gdr-features/internal/dradriver"
	"gdr-features/internal/nodes"
	"gdr-features/internal/nodes/alike"
	"gdr-features/internal/nodes/apiserver"
	"gdr-features/internal/nodes/resourceslice"
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

func (p *program) slices(cmd *cobra.Command, names []string) error {
	ctx := cmd.Context()
	filter, _, err := p.filter(names, false)
	if err != nil {
		return err
	}
	var published []resourceslice.Slice
	agents, err := p.read(ctx, apiserver.Query{Names: names, Levels: true}, func(access *rest.Config, q apiserver.Query) (err error) {
		published, err = apiserver.Slices(ctx, access, q)
		return err
	})
	if err != nil {
		return err
	}
	if len(published) == 0 && len(names) == 0 {
		var drivers []string
		for d := range dradriver.All() {
			drivers = append(drivers, d.Name)
		}
		return fmt.Errorf("no ResourceSlice of %s is there; is one of these DRA drivers installed?", strings.Join(drivers, ", "))
	}
	all := resourceslice.Compare(agents, published)
	missing := slices.DeleteFunc(nodes.Missing(names, agents), func(name string) bool {
		return slices.ContainsFunc(all, func(n resourceslice.Node) bool { return n.Agent.Name == name })
	})
	picked := slices.DeleteFunc(all, func(n resourceslice.Node) bool { return !filter.Matches(&n.Agent) })
	json := func() error { return resourceslice.JSON(p.out, picked) }
	text := func() error {
		if err := resourceslice.Table(p.page, picked, p.style()); err != nil || p.flags.NoHeaders {
			return err
		}
		return resourceslice.Text(p.page, picked)
	}
	return p.show(len(picked), missing, json, text, "")
}
