package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"gdr-features/internal/dradriver"
	"gdr-features/internal/nodes"
	"gdr-features/internal/nodes/apiserver"
	"gdr-features/internal/nodes/resourceslice"
)

// slices compares the ResourceSlices of the nodes with the nodes.
func (p *program) slices(ctx context.Context, names []string) error {
	filter, err := p.filter(names)
	if err == nil {
		err = p.selects(filter.Select)
	}
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
	if len(picked) > 0 || len(missing) == 0 {
		if err := p.showSlices(picked); err != nil {
			return err
		}
	}
	return nobody(missing)
}

func (p *program) showSlices(picked []resourceslice.Node) error {
	switch {
	case p.flags.Output == "json":
		return resourceslice.JSON(p.out, picked)
	case len(picked) == 0:
		_, err := fmt.Fprintln(p.err, "no node matches")
		return err
	}
	if err := resourceslice.Table(p.page, picked, p.style()); err != nil || p.flags.NoHeaders {
		return err
	}
	return resourceslice.Text(p.page, picked)
}
