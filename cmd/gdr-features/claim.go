package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"gdr-features/internal/cli"
	"gdr-features/internal/rooms/dra"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/topology"
	"gdr-features/tristate"
)

func (a *app) claimCommand() *cobra.Command {
	var o dra.Options
	var format string
	c := &cobra.Command{
		Use:   "claim",
		Short: "Print a ResourceClaimTemplate that pairs GPUs with near NICs",
		Long: `claim prints a ResourceClaimTemplate (resource.k8s.io/v1) for Kubernetes' Dynamic
Resource Allocation. It asks for pairs of a GPU and a NIC with an RDMA device, in which
both have the same value of a standard attribute: pcieRoot if that gives every GPU of
this machine a NIC, else numaNode. Select nodes by the label gdr.align, so that the claim
can be met where the Pod goes. It has the same word as a rule; a note on standard error
says so where it does not. The annotation gdr.level is the worst level that the claim can
give on a node like this one.

NICs that env would not use are selected out by address, and named on standard error.

If neither attribute gives every GPU a NIC, the claim names the devices by their
addresses, as env pairs them: it fits only nodes with the same addresses. With --derived
the scheduler computes an attribute from the addresses, which is the same for a GPU and
its NIC, so that one template can be met several times on a node. Derived attributes are
alpha in Kubernetes 1.37 (KEP-6080, feature gate DRADerivedAttributes).

The devices are those of the DRA drivers of NVIDIA or AMD and of DRANET (dra.net), in
DeviceClasses of the same names. --nic-driver chooses another driver of NICs.

Exit status: 0; 2 if the claim is by address or derived, or if there is no pair to claim; 1 on an
error.`,
		Example: `  gdr-features claim | kubectl apply -f -
  gdr-features claim --pairs 8 -o json
  gdr-features claim --nic-class rdma                # a DeviceClass of your own
  gdr-features claim --nic-driver sriovnetwork.k8snetworkplumbingwg.io
  gdr-features claim --derived                       # alpha in Kubernetes 1.37
  gdr-features --root node7 claim                    # from a snapshot of another machine`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Pairs < 1 || o.Pairs > dra.MaxPairs {
				return fmt.Errorf("--pairs %d: a claim has 1 to %d pairs", o.Pairs, dra.MaxPairs)
			}
			for _, name := range [...]struct{ flag, value string }{
				{"gpu-class", o.GPUClass}, {"nic-class", o.NICClass}, {"gpu-driver", o.GPUDriver},
			} {
				if name.value != "" && !validDNSName(name.value) {
					return fmt.Errorf("--%s %q: must be a DNS name in lower case, such as gpu.nvidia.com", name.flag, name.value)
				}
			}
			return a.claim(cmd.Context(), o, format)
		},
	}
	c.Flags().IntVar(&o.Pairs, "pairs", 1, "number of pairs of a GPU and a NIC")
	c.Flags().StringVar(&o.GPUClass, "gpu-class", "", "DeviceClass of the GPUs; by default named as the driver, gpu.nvidia.com or gpu.amd.com")
	c.Flags().StringVar(&o.NICClass, "nic-class", "", "DeviceClass of the NICs; by default named as the driver")
	c.Flags().StringVar(&o.GPUDriver, "gpu-driver", "", "select only GPUs of this DRA driver; by default all of the class")
	c.Flags().BoolVar(&o.Derived, "derived", false, "where neither attribute serves: derive one (alpha in Kubernetes 1.37)")
	c.Flags().StringVar(&o.NICDriver, "nic-driver", dra.NICDrivers()[0], "DRA driver of the NICs")
	cli.Output(c, &format, "yaml or json", "yaml", "json")
	cli.Words(c, "nic-driver", dra.NICDrivers()...)
	return c
}

// claim prints the template on standard output and its notes on standard error.
func (a *app) claim(ctx context.Context, o dra.Options, format string) error {
	r, here, err := a.here(ctx)
	if err != nil {
		return err
	}
	machine := here.Machine()
	claim, err := dra.NewClaim(machine, o)
	if err != nil {
		return err
	}
	a.warn(r)
	if machine.Incomplete {
		claim.Notes = append([]string{incomplete}, claim.Notes...)
	}
	for _, note := range claim.Notes {
		fmt.Fprintf(a.err, "# %s\n", sanitize.Terminal(note))
	}
	if claim.Template == nil {
		return cli.StatusOf(tristate.False)
	}
	standard := claim.Attribute == topology.PCIeRoot || claim.Attribute == topology.NUMANode
	return cmp.Or(a.printTemplate(claim.Template, format), cli.StatusOf(tristate.Of(standard)))
}

func (a *app) printTemplate(t *dra.Template, format string) error {
	if format == "json" {
		return show.JSON(a.out, t)
	}
	text, err := yaml.Dump(t, yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}
