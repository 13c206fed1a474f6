package main

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/config"
)

// Each variable that a manifest sets is one that commands in the agent's Pod read.
func TestDeployedVariables(t *testing.T) {
	var known []string
	for _, name := range reportFlags {
		known = append(known, config.Variable(name))
	}
	deploy := os.DirFS("../../deploy")
	set := map[string]bool{}
	err := fs.WalkDir(deploy, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && name == "helm/gdr-features/ci" { // what users may set
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(deploy, name)
		for _, variable := range regexp.MustCompile(`GDR_FEATURES_[A-Z_]+`).FindAllString(string(text), -1) {
			set[variable] = true
			if !slices.Contains(known, variable) {
				t.Errorf("deploy/%s: %s is not read by commands in the Pod", name, variable)
			}
		}
		return err
	})
	if err != nil || len(set) < 5 {
		t.Errorf("%d variables, error %v", len(set), err)
	}
}

// Each flag that a report depends on has a variable, but for --root.
func TestReportFlags(t *testing.T) {
	var path string
	c := &cobra.Command{}
	f := c.Flags()
	(&machineflags.Flags{}).DefineMachine(f)
	expectFlag(c, &path)
	var all []string
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "root" {
			all = append(all, flag.Name)
		}
	})
	if sorted := slices.Sorted(slices.Values(reportFlags)); !slices.Equal(sorted, all) {
		t.Errorf("%v, want %v", sorted, all)
	}
}
