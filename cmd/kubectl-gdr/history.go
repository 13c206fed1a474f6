package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/fleet/nodes/apiserver"
	"gdr-features/internal/label"
)

func (p *program) history(cmd *cobra.Command, names []string) error {
	a, err := p.ask(names)
	if err != nil {
		return err
	}
	all, err := p.list(cmd.Context(), a)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return missing(names)
	}
	n := &all[0]
	switch {
	case n.JournalError != nil:
		return fmt.Errorf("the journal of %s cannot be read: %w", n.Name, n.JournalError)
	case p.flags.Output == "json":
		return nodes.HistoryJSON(p.out, n)
	case len(n.Changes) == 0:
		_, err := fmt.Fprintf(p.err, "no change of %s is recorded; older agents keep no journal\n", n.Name)
		return err
	}
	return nodes.History(p.page, n, p.style())
}

// completeNode offers the nodes that have published something.
func (p *program) completeNode(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	access, err := p.access()
	if err != nil || len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := apiserver.List(cmd.Context(), access, p.query(nil)) // none after an error
	var names []string
	for i := range all {
		if name := all[i].Name; name == label.Value(name) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
