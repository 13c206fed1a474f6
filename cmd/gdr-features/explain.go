package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gdr-features/docs/reasons"
	"gdr-features/internal/cli"
	"gdr-features/internal/findings"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/rooms/pod"
	"gdr-features/internal/terminal"
)

func (a *app) explainCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "explain [GPU [NIC] | NIC | CODE | CHECK]",
		Short: "Explain the path from a GPU to a NIC, a NIC, the driver stack, or a code of check",
		Long: `explain GPU NIC lists every PCI function on the path between the two, with its PCIe
link, NUMA node, IOMMU group and ACS, and says which rule gives their level, how NCCL
rates them, and whether it uses GPUDirect RDMA there. Name the GPU as topo does
(GPU0), by index or by PCI address; name the NIC by RDMA device, network device or PCI
address. explain GPU lists the NICs nearest to that GPU, and its level with every NIC;
explain NIC tells the state of that NIC, and its level with every GPU.

Without arguments it lists the NICs nearest to each GPU, and the steps from the
hardware over drivers and devices to GPU memory, with the first one that fails.

explain CODE tells about a code that check prints (PeermemNotLoaded): what it means,
how to recognise it, how to fix it, and what does not help. explain CHECK (link) lists
the codes of a check. Codes and checks are found in any case.`,
		Example: `  gdr-features explain
  gdr-features explain GPU0
  gdr-features explain GPU0 mlx5_3
  gdr-features explain mlx5_3
  gdr-features explain PeermemNotLoaded
  gdr-features explain 0000:1b:00.0 0000:18:00.0 -o json`,
		ValidArgsFunction: a.completeExplain,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.explain(cmd, args, format == "json") },
	}
	cli.Output(c, &format, "text or json", "text", "json")
	return c
}

func (a *app) explain(cmd *cobra.Command, args []string, asJSON bool) error {
	if len(args) > 2 {
		return errors.New("explain takes a GPU and a NIC, a GPU, or a code that check prints, or no argument")
	}
	if len(args) == 1 {
		if page, ok := reasons.Page(reasons.Named(args[0])); ok {
			if asJSON {
				return errors.New("explain CODE prints a page of text; -o json needs a GPU, a NIC, both, or no argument")
			}
			if terminal.Columns(a.page) > 0 {
				page = terminal.Unwrap(page)
			}
			_, err := io.WriteString(a.page, page)
			return err
		}
	}
	r, err := a.collect(cmd.Context(), report.ForTopo)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1:
		return a.explainWord(r, args[0], asJSON)
	case len(args) == 0 && asJSON:
		return render.ExplainJSON(a.out, r)
	case len(args) == 0:
		return render.Explain(a.page, r)
	}
	gpu, err := explain.FindGPU(&r.Node, args[0])
	if err != nil {
		return err
	}
	nic, err := explain.FindNIC(&r.Node, args[1])
	if err != nil {
		return err
	}
	p := explain.PathOf(&r.Node, gpu, nic)
	if asJSON {
		return render.ExplainPairJSON(a.out, r, p)
	}
	return render.ExplainPair(a.page, r, p)
}

// explainWord explains a check, a GPU or a NIC.
func (a *app) explainWord(r *report.Report, word string, asJSON bool) error {
	check := strings.ToLower(word)
	otherwise := "it says nothing about this machine"
	codes, isCheck := findings.CodesOf(check)
	if !isCheck {
		codes, isCheck = pod.CodesOf(check)
		otherwise = "it is for containers: gdr-features check --pod"
	}
	if isCheck {
		if asJSON {
			return errors.New("explain CHECK prints text; check -o json has what it finds")
		}
		return render.ExplainCheck(a.page, r, check, otherwise, codes)
	}
	gpu, noGPU := explain.FindGPU(&r.Node, word)
	nic, noNIC := explain.FindNIC(&r.Node, word)
	switch {
	case noGPU == nil && asJSON:
		return render.ExplainGPUJSON(a.out, r, gpu)
	case noGPU == nil:
		return render.ExplainGPU(a.page, r, gpu)
	case noNIC == nil && asJSON:
		return render.ExplainNICJSON(a.out, r, nic)
	case noNIC == nil:
		return render.ExplainNIC(a.page, r, nic)
	}
	return fmt.Errorf("%q is not a code or a check that check prints, such as PeermemNotLoaded or link; %w; %w", word, noGPU, noNIC)
}

// completeExplain offers the machine's GPUs and NICs and the codes of check, then its NICs.
func (a *app) completeExplain(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 1 {
		return nil, none
	}
	var offers []string
	if len(args) == 0 {
		offers = reasons.Tokens()
	}
	r, err := a.collect(cmd.Context(), report.ForTopo)
	if err != nil {
		return offers, none
	}
	offer := func(name, address, product string) {
		offers = append(offers, cobra.CompletionWithDesc(name, strings.TrimSpace(address+" "+product)))
	}
	if len(args) == 0 {
		for i, g := range r.Matrix.GPUs {
			offer(explain.GPUName(i), g.Address.String(), g.Name())
		}
	}
	for i := range r.Matrix.NICs {
		n := &r.Matrix.NICs[i]
		product := ""
		if n.Function != nil {
			product = n.Function.Name()
		}
		offer(explain.NICName(n), n.Address(), product)
	}
	return offers, none
}
