// Package config has the settings of the node agent: flags, environment variables and
// a file.
package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
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

// Define adds the flags to a set. getenv gives the defaults that Kubernetes'
// downward API provides.
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
