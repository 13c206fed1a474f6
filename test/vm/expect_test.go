//go:build vm

package vm

import (
	"maps"
	"strings"

	"github.com/google/go-cmp/cmp"
)

const prefix = "feature.node.kubernetes.io/"

// labels are by name, without prefix.
type labels map[string]string

func parseLabels(text string) labels {
	all := labels{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all[strings.TrimPrefix(name, prefix)] = value
	}
	return all
}

// with returns the labels with some added or replaced; "" removes one.
func (l labels) with(others labels) labels {
	all := maps.Clone(l)
	maps.Copy(all, others)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// unused are the labels of every machine before a driver is loaded, as root sees it.
var unused = labels{
	"gpudirect.rdma.capable": "true", "gdr.topology": "virtual",
	"gpudirect.rdma": "false", "gdr.reason": "GPUDriverNotLoaded", "gdr.peermem": "false", "gdr.dmabuf": "false",
	"gdr.peerdirect": "none", "gdr.rate": "0", "gdr.iommu": "off", "gdr.degraded": "true", "gpudirect.storage": "false",
}

// bare are the labels of node before a driver is loaded.
var bare = unused.with(labels{
	"gpudirect.rdma.connectx": "true", "gdr.gpu.nvidia": "true", "gdr.nic.mlx5": "true", "gdr.gpus": "4", "gdr.nics": "5",
	"gdr.level": "NODE", "gdr.level.best": "PIX", "gdr.nccl-default": "false", "gdr.align": "numaNode",
})

func (m *machine) expectLabels(uid uint32, want labels) {
	m.t.Helper()
	if diff := cmp.Diff(want, parseLabels(m.gdr(uid, 0, "labels"))); diff != "" {
		m.t.Errorf("user %d, labels (-want +got):\n%s", uid, diff)
	}
}

// verdict is what `check -o json` prints, as far as it is compared.
type verdict struct{ Capable, Ready, Reason, Level, LevelBest string }

// judged is a verdict with the details of its findings, by check.
type judged struct {
	verdict
	details map[string]string
}

// Exit statuses of check.
const ready, notReady = 0, 2

// expectFindings compares status and reason of some checks of a node that is not ready.
func (m *machine) expectFindings(uid uint32, want map[string]string, flags ...string) judged {
	m.t.Helper()
	return m.expectCheck(uid, notReady, want, flags...)
}

// expectCheck compares the exit status, and status and reason of some checks.
func (m *machine) expectCheck(uid uint32, status int, want map[string]string, flags ...string) judged {
	m.t.Helper()
	var v struct {
		verdict
		Findings []struct{ Check, Status, Reason, Detail string }
	}
	m.decode(&v, uid, status, append(flags, "check")...)
	got, details := map[string]string{}, map[string]string{}
	for _, f := range v.Findings {
		details[f.Check] = f.Detail
		if _, ok := want[f.Check]; ok {
			got[f.Check] = strings.TrimSpace(f.Status + " " + f.Reason)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("user %d, findings (-want +got):\n%s", uid, diff)
	}
	return judged{v.verdict, details}
}
