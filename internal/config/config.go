// Package config has the settings of the node agent: flags, environment and a file.
package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"gdr-features/internal/yamlfile"
)

// Names of the publishers.
const (
	NodeFeature = "nodefeature"
	File        = "file"
)

// Publishers lists them.
var Publishers = []string{NodeFeature, File}

// Agent is the settings of the node agent.
type Agent struct {
	// Once publishes and exits, Cleanup removes what was published and exits.
	Once, Cleanup bool
	// Publish names publishers.
	Publish []string
	// NodeName, Namespace and Kubeconfig are for nodefeature.
	NodeName, Namespace, Kubeconfig string
	// FeaturesDir is for file.
	FeaturesDir string
	Interval    time.Duration
	Settle      time.Duration
	// Listen is the address of metrics and health; "" for none.
	Listen string
	// MetricsPairs adds a metric for each pair of GPU and NIC.
	MetricsPairs bool
	// Expect is the path of a file of expectations; "" for none.
	Expect string
	// Path of the file with more settings.
	Path string
}

// The shortest and the longest interval. The state labels in a feature file expire
// after an hour and must be renewed before.
const (
	shortest = 100 * time.Millisecond
	longest  = 30 * time.Minute
)

// Define adds the flags. getenv gives the defaults of Kubernetes' downward API.
func (a *Agent) Define(f *pflag.FlagSet, getenv func(string) string) {
	f.BoolVar(&a.Once, "once", false, "publish once and exit")
	f.BoolVar(&a.Cleanup, "cleanup", false, "remove what was published and exit")
	f.StringSliceVar(&a.Publish, "publish", []string{NodeFeature}, "what to publish: nodefeature, file or both")
	f.StringVar(&a.NodeName, "node-name", getenv("NODE_NAME"), "name of this node; by default $NODE_NAME, or the node of the service account token")
	f.StringVar(&a.Namespace, "namespace", getenv("POD_NAMESPACE"), "namespace of the NodeFeature; by default $POD_NAMESPACE")
	f.StringVar(&a.Kubeconfig, "kubeconfig", "", "kubeconfig file; by default the one of the pod")
	f.StringVar(&a.FeaturesDir, "features-dir", "/etc/kubernetes/node-feature-discovery/features.d", "directory of the feature file; the file is staged in its parent directory, then renamed into place")
	f.DurationVar(&a.Interval, "interval", time.Minute, "time between two readings when no event comes, 100ms to 30m")
	f.DurationVar(&a.Settle, "settle", 10*time.Second, "how long a condition must persist before a state label changes")
	f.StringVar(&a.Listen, "listen", ":9400", "address to serve /metrics, /healthz and /readyz on; empty to serve nothing")
	f.BoolVar(&a.MetricsPairs, "metrics-pairs", false, "also serve gdr_pair_level: one series for each GPU-NIC pair")
	f.StringVar(&a.Expect, "expect", "", "YAML file with what is expected of each type of machine; reloaded when it changes")
	f.StringVar(&a.Path, "config", "", "YAML file with the same settings; the keys are the names of the flags")
}

// Validate finds the first invalid setting.
func (a *Agent) Validate() error {
	switch {
	case len(a.Publish) == 0:
		return errors.New("--publish is empty; give nodefeature, file or both")
	case a.Interval < shortest || a.Interval > longest:
		return fmt.Errorf("--interval %v: must be from %v to %v", a.Interval, shortest, longest)
	case a.Settle < 0:
		return fmt.Errorf("--settle %v: must not be negative", a.Settle)
	case a.Once && a.Cleanup:
		return errors.New("--once and --cleanup exclude each other")
	case a.FeaturesDir == "" && slices.Contains(a.Publish, File):
		return errors.New("--features-dir is empty")
	}
	for i, name := range a.Publish {
		if !slices.Contains(Publishers, name) {
			return fmt.Errorf("--publish %s: must be of %s", name, strings.Join(Publishers, ", "))
		}
		if slices.Contains(a.Publish[:i], name) {
			return fmt.Errorf("--publish names %s twice", name)
		}
	}
	return nil
}

// Variable returns the variable of a flag: GDR_FEATURES_INTERVAL for interval.
func Variable(flag string) string {
	return "GDR_FEATURES_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FromEnvironment sets the flags that have a variable, unless the command line has.
func FromEnvironment(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var first error
	f.VisitAll(func(flag *pflag.Flag) {
		value, ok := lookup(Variable(flag.Name))
		if !ok || flag.Changed || first != nil || flag.Name == "help" {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			first = fmt.Errorf("%s=%s: %w", Variable(flag.Name), value, err)
		}
	})
	return first
}

// FromFile sets the flags that neither command line nor environment has set. The keys
// of the file are the names of flags. The value of a list may also be one text, as
// on the command line. The error is a *yamlfile.Error.
func FromFile(f *pflag.FlagSet, text []byte) error {
	var keys yamlfile.Keys
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" || flag.Name == "config" {
			return
		}
		keys = append(keys, yamlfile.Keys{{flag.Name, func(n *yaml.Node) error {
			text, err := value(flag.Value.Type(), n)
			if err == nil && !flag.Changed {
				err = f.Set(flag.Name, text)
			}
			return err
		}}}...)
	})
	return yamlfile.Decode(text, func(n *yaml.Node) error { return yamlfile.Mapping(n, keys) })
}

// value returns a value of the file as the text of a flag of a type. What YAML reads as
// a number or a boolean is no name: 1e3 could mean a node 1e3 or a node 1000.
func value(kind string, n *yaml.Node) (string, error) {
	switch kind {
	case "stringSlice":
		if n.Kind == yaml.MappingNode {
			return "", errors.New("must be a list")
		}
		var words []string
		err := yamlfile.Each(n, func(item *yaml.Node) error {
			word, err := yamlfile.Text(item)
			words = append(words, word)
			return err
		})
		return strings.Join(words, ","), err
	case "bool":
		var is bool
		if n.Decode(&is) != nil {
			return "", errors.New("must be true or false")
		}
		return strconv.FormatBool(is), nil
	case "duration":
		if n.Kind != yaml.ScalarNode {
			return "", errors.New("must be a time such as 60s")
		}
	default:
		if n.ShortTag() != "!!str" {
			return "", errors.New("must be a text; put it in quotes")
		}
	}
	return n.Value, nil
}
