package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// differs are nodes of two types; of the first, one has another rate.
const differs = `rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - input_series:
      - {series: 'gdr_rate_bits_per_second{node="a1",pod="p1"}', values: 4e11x60}
      - {series: 'gdr_rate_bits_per_second{node="a2",pod="p2"}', values: 4e11x60}
      - {series: 'gdr_rate_bits_per_second{node="a3",pod="p3"}', values: 2e11x60}
      - {series: 'gdr_rate_bits_per_second{node="b1",pod="p4"}', values: 1e11x60}
      - {series: 'gdr_rate_bits_per_second{node="c1",pod="p5"}', values: 1e11x60}
      - {series: 'kube_node_labels{node="a1",label_node_kubernetes_io_instance_type="a"}', values: 1x60}
      - {series: 'kube_node_labels{node="a2",label_node_kubernetes_io_instance_type="a"}', values: 1x60}
      - {series: 'kube_node_labels{node="a3",label_node_kubernetes_io_instance_type="a"}', values: 1x60}
      - {series: 'kube_node_labels{node="b1",label_node_kubernetes_io_instance_type="b"}', values: 1x60}
      - {series: 'kube_node_labels{node="c1"}', values: 1x60}
    alert_rule_test:
      - {eval_time: 14m, alertname: GDRFeaturesRateDiffers}
      - eval_time: 20m
        alertname: GDRFeaturesRateDiffers
        exp_alerts:
          - exp_labels: {node: a3, label_node_kubernetes_io_instance_type: a, severity: warning}
            exp_annotations:
              summary: a3 has another rate than most nodes of its type
              action: kubectl gdr diff -l node.kubernetes.io/instance-type=a
`

// TestDiffers: the rule that the page gives for rates fires on the node that differs.
func TestDiffers(t *testing.T) {
	_, below, _ := strings.Cut(string(read(t, filepath.Join(shipped, "README.md"))), "\n## Nodes that differ\n")
	_, block, _ := strings.Cut(below, "```yaml\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("the page has no rule")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"rules.yaml": block, "test.yaml": differs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, dir, "check", "rules", "rules.yaml")
	promtool(t, dir, "test", "rules", "test.yaml")
}
