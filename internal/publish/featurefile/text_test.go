package featurefile

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/publish"
	"gdr-features/source/family"
)

// labels of a node that is ready.
func ready() label.Set {
	return label.Set{
		label.Capable: "true", label.Level: "PIX", label.GPUs: "8",
		label.Ready: "true", label.MOFED: "24.10-1.1.4", label.Storage: "false",
	}
}

// hardware returns the labels that do not expire.
func hardware(all label.Set) label.Set {
	labels := maps.Clone(all)
	maps.DeleteFunc(labels, func(name, _ string) bool { return !nodelabel.Hardware(name) })
	return labels
}

const text = `# Labels of this node for Node Feature Discovery, written by gdr-features run.
# Those below an expiry time are about drivers and links.
feature.node.kubernetes.io/gdr.gpus=8
feature.node.kubernetes.io/gdr.level=PIX
feature.node.kubernetes.io/gpudirect.rdma.capable=true
# +expiry-time=2026-11-21T13:00:00Z
feature.node.kubernetes.io/gdr.mofed=24.10-1.1.4
feature.node.kubernetes.io/gpudirect.rdma=true
feature.node.kubernetes.io/gpudirect.storage=false
`

var (
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	expiry = noon.Add(stateTTL)
)

func TestFormat(t *testing.T) {
	zone := time.FixedZone("elsewhere", 3600)
	if diff := cmp.Diff(text, format(publish.Content{Labels: ready()}, expiry.In(zone).Add(time.Nanosecond))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lasting := format(publish.Content{Labels: hardware(ready())}, expiry)
	if want, _, _ := strings.Cut(text, "# +"); lasting != want {
		t.Errorf("hardware alone:\n%s", lasting)
	}
}

func TestParse(t *testing.T) {
	const prefix = label.DefaultPrefix
	tests := []struct {
		name, text string
		want       label.Set
		expiry     time.Time
	}{
		{"as written", text, ready(), expiry},
		{"nothing", "", label.Set{}, time.Time{}},
		{"spaces and no end", "  " + prefix + "gdr.gpus=8\t\r\n\n" + prefix + "gdr.nics=2", label.Set{label.GPUs: "8", label.NICs: "2"}, time.Time{}},
		{"the last counts", prefix + "gdr.gpus=8\n" + prefix + "gdr.gpus=7\n", label.Set{label.GPUs: "7"}, time.Time{}},
		{"other labels", prefix + "other=1\n" + prefix + "cpu=2\nnvidia.com/gdr.gpus=3\ngdr.gpus=4\n", label.Set{}, time.Time{}},
		{"commented out", "#" + prefix + "gdr.gpus=8\n", label.Set{}, time.Time{}},
		{"no value", prefix + "gdr.gpus\n" + prefix + "gdr.nics=\n", label.Set{}, time.Time{}},
		{"values that are none", prefix + "gdr.gpus=8 of 8\n" + prefix + "gdr.nics=-2\n" + prefix + "gdr.level=" + strings.Repeat("x", 64), label.Set{}, time.Time{}},
		{"an expiry that is none", "# +expiry-time=tomorrow\n" + prefix + "gpudirect.rdma=true\n", label.Set{label.Ready: "true"}, time.Time{}},
		{"other directives", "# +no-label\n# +expiry-date=2026-11-21T13:00:00Z\n", label.Set{}, time.Time{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := parse(test.text)
			if diff := cmp.Diff(test.want, got.labels); diff != "" || !got.expiry.Equal(test.expiry) {
				t.Errorf("expiry %v (-want +got):\n%s", got.expiry, diff)
			}
		})
	}
}

// What has expired does not count; hardware never expires.
func TestAlive(t *testing.T) {
	for _, test := range []struct {
		now  time.Time
		want label.Set
	}{
		{noon, ready()},
		{expiry.Add(-1), ready()},
		{expiry, hardware(ready())},
		{expiry.Add(1000 * time.Hour), hardware(ready())},
	} {
		if diff := cmp.Diff(test.want, parse(text).unexpired(test.now)); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", test.now, diff)
		}
	}
	for name := range nodelabel.All(family.Known()) {
		untimed := parse(label.DefaultPrefix + name + "=x\n").unexpired(noon)
		if (len(untimed) > 0) != nodelabel.Hardware(name) {
			t.Errorf("%s without expiry: %v", name, untimed)
		}
	}
}

// Any text gives only known labels with values that Kubernetes accepts, and these
// are the same when written and read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		text, "", "\n", "=", "# +expiry-time=", "# +expiry-time=9999-12-31T23:59:59Z\n", text[:len(text)/2],
		label.DefaultPrefix + "gdr.level=PIX\x00\n", label.DefaultPrefix + "gdr.mofed==\n", label.DefaultPrefix + "=x\n",
		"# +expiry-time=0000-01-01T00:00:00+23:59\n" + label.DefaultPrefix + "gpudirect.rdma=true",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := parse(text)
		for name, value := range got.labels {
			if !label.Ours(name) || !valid(value) {
				t.Errorf("%q=%q", name, value)
			}
			if !strings.Contains(text, label.DefaultPrefix+name+"="+value) {
				t.Errorf("%s=%s is not in the text", name, value)
			}
		}
		again := parse(format(publish.Content{Labels: got.labels, BootID: got.bootID}, expiry))
		if diff := cmp.Diff(got.labels, again.labels); diff != "" {
			t.Errorf("written and read again (-first +second):\n%s", diff)
		}
		if stateful := len(hardware(got.labels)) < len(got.labels); again.expires != stateful || stateful && !again.expiry.Equal(expiry) {
			t.Errorf("written with state %v, read again with expiry %v", stateful, again.expiry)
		}
	})
}

// valid checks a label value independently of label.Value.
func valid(value string) bool {
	const inner = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return value != "" && len(value) <= 63 && strings.Trim(value, inner+"-_.") == "" &&
		strings.ContainsAny(value[:1], inner) && strings.ContainsAny(value[len(value)-1:], inner)
}
