package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"gdr-features/deploy/examples"
	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/fleet/nodes/apiserver"
	"gdr-features/internal/fleet/nodes/example"
)

func (p *program) example(cmd *cobra.Command, names []string) error {
	if len(names) == 0 {
		_, err := fmt.Fprintln(p.page, strings.Join(examples.Names(), "\n"))
		return err
	}
	file, ok := examples.Job(names[0])
	if !ok {
		return fmt.Errorf("no example %q: there are %s", names[0], strings.Join(examples.Names(), ", "))
	}
	selector, err := nodes.Selector(p.flags.Selector)
	if err != nil {
		return fmt.Errorf("--selector %s: %w", p.flags.Selector, err)
	}
	access, err := p.access()
	if err != nil {
		return err
	}
	namespace := p.flags.JobNamespace
	if namespace == "" {
		config, _ := p.kubeconfig()
		if namespace, _, err = config.Namespace(); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
	}
	cluster, err := apiserver.Example(cmd.Context(), access, p.query(nil), selector.String(), namespace)
	if err != nil {
		return err
	}
	cluster.Where = affinity(selector)
	text, err := example.Fill(file, &cluster)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(p.out, text)
	return err
}

// operators are those of a node affinity that select as those of a selector do. As there, NotIn selects
// Nodes without the label, too.
var operators = map[selection.Operator]string{
	selection.In: "In", selection.Equals: "In", selection.DoubleEquals: "In",
	selection.NotIn: "NotIn", selection.NotEquals: "NotIn",
	selection.Exists: "Exists", selection.DoesNotExist: "DoesNotExist",
	selection.GreaterThan: "Gt", selection.LessThan: "Lt",
}

// affinity is a selector as the requirements of a node affinity.
func affinity(selector labels.Selector) (all []example.Requirement) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		all = append(all, example.Requirement{
			Key: r.Key(), Operator: operators[r.Operator()], Values: slices.Sorted(slices.Values(r.ValuesUnsorted())),
		})
	}
	return all
}
