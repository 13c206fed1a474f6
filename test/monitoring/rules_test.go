// Package monitoring tests the alerts and the dashboard that we ship: with
// Prometheus' own promtool and parser, and against the metrics that the agent
// has. `hack/check.sh rules` builds promtool and runs it.
package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	repository = "../.."
	shipped    = repository + "/deploy/monitoring"
	chartFiles = repository + "/deploy/helm/gdr-features/files"
)

// ruleFile is a PrometheusRule, whose spec is a rule file of Prometheus.
type ruleFile struct {
	Spec struct {
		Groups []struct {
			Name     string `json:"name"`
			Interval string `json:"interval,omitempty"`
			Rules    []rule `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func rules(t *testing.T) (f ruleFile) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, filepath.Join(shipped, "prometheusrule.yaml")), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// alerts returns the rules that alert.
func alerts(t *testing.T) (all []rule) {
	t.Helper()
	for _, group := range rules(t).Spec.Groups {
		for _, r := range group.Rules {
			if r.Alert != "" {
				all = append(all, r)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("no alerts")
	}
	return all
}

// promtool runs promtool in a directory.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	program, err := filepath.Abs(".bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; hack/check.sh rules builds it", err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

// Prometheus accepts the rules, and they alert when they should.
func TestPromtool(t *testing.T) {
	dir := t.TempDir()
	var object map[string]any
	if err := yaml.Unmarshal(read(t, filepath.Join(shipped, "prometheusrule.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"rules.yaml": spec, "alerts.yaml": read(t, "testdata/alerts.yaml")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, dir, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
	promtool(t, dir, "test", "rules", "alerts.yaml")
}

// Each alert fires in a test and, shortly before, does not.
func TestEveryAlertIsTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name string `json:"alertname"`
				Want []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(read(t, "testdata/alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var fires, silent []string
	for _, test := range file.Tests {
		for _, a := range test.Alerts {
			if len(a.Want) > 0 {
				fires = append(fires, a.Name)
			} else {
				silent = append(silent, a.Name)
			}
		}
	}
	for _, a := range alerts(t) {
		if !slices.Contains(fires, a.Alert) || !slices.Contains(silent, a.Alert) {
			t.Errorf("%s: testdata/alerts.yaml must show it firing and silent", a.Alert)
		}
	}
}

// Each alert waits a while, and says what is wrong, what that means and what to do,
// in its annotations and on its page.
func TestAlertsTell(t *testing.T) {
	page := string(read(t, filepath.Join(shipped, "README.md")))
	for _, a := range alerts(t) {
		if a.For == "" {
			t.Errorf("%s does not wait", a.Alert)
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", a.Alert, s)
		}
		for _, name := range []string{"summary", "description", "action"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		for name, text := range a.Annotations {
			if strings.Contains(text, "query") {
				t.Errorf("%s: its %s asks Prometheus for each alert", a.Alert, name)
			}
		}
		if where := "See " + a.Alert + " in deploy/monitoring/README.md."; !strings.HasSuffix(a.Annotations["action"], where) {
			t.Errorf("%s: its action does not end in %q", a.Alert, where)
		}
		if !strings.Contains(page, "\n### "+a.Alert+"\n") || !strings.Contains(page, "| `"+a.Alert+"` | "+a.Labels["severity"]+" |") {
			t.Errorf("%s: not in the table and under a heading of README.md", a.Alert)
		}
	}
}

// A chart cannot use files outside of it, so it has copies.
func TestChartHasTheSame(t *testing.T) {
	for _, name := range []string{"prometheusrule.yaml", "dashboard.json"} {
		from, to := filepath.Join(shipped, name), filepath.Join(chartFiles, name)
		if string(read(t, from)) != string(read(t, to)) {
			t.Errorf("differ: cp %s %s", from, to)
		}
	}
}
