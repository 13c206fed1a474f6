package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Thirty changes in a row reach the Node through the feature file, each within two seconds,
// although the worker reads by itself only once a minute, and ignores events within a
// second after one for another program's file.
//
// Of the two seconds nfd-worker and nfd-master may take one each: the worker handles one
// event a second, the master updates Nodes once a second. A change that just misses both
// takes some 100 ms more. These do not: each is made in the middle between two rounds of
// the master.
//
// No test runs at the same time. Where the machine is too busy to tell, the test is skipped
// and says so.
func TestFeatureFile(t *testing.T) {
	n := newNode(t, &shared, "feature-file")
	n.work(t, time.Minute)
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--publish=file", "--interval=100ms", "--settle=0s")
	n.expect(t, labelsOf(t, tree))
	checkFile(t, n.featureFile())

	const limit = 2 * time.Second
	busy := watchLoad(t)
	var longest time.Duration
	for i := range 30 {
		time.Sleep(400 * time.Millisecond)
		if i%3 == 0 {
			other := filepath.Join(filepath.Dir(n.featureFile()), "other.features")
			if err := os.WriteFile(other, []byte("# nothing\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		before := changed(t, n.featureFile())
		value := "true"
		if i%2 == 0 {
			load(t, tree)
		} else {
			unload(t, tree)
			value = "false"
		}
		labels := labelsOf(t, tree)
		if labels[prefix+"gpudirect.storage"] != value {
			t.Fatalf("change %d changes nothing", i)
		}
		if err := until(t.Context(), patience, func(context.Context) error {
			if changed(t, n.featureFile()).Equal(before) {
				return fmt.Errorf("the feature file did not change")
			}
			return nil
		}, a.process); err != nil {
			t.Fatal(err)
		}
		at := changed(t, n.featureFile())
		if err := until(t.Context(), patience, func(ctx context.Context) error {
			return n.has(ctx, labels)
		}, n.processes()...); err != nil {
			t.Fatalf("change %d is in the file, and not on the Node: %v", i, err)
		}
		longest = max(longest, time.Since(at))
	}
	longest = longest.Round(time.Millisecond)
	t.Logf("at most %v from the file to the Node", longest)
	within(t, "from the file to the Node in", longest, limit, busy)
}

// checkFile checks the feature file: only state labels expire.
func checkFile(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	stay, expire, ok := bytes.Cut(text, []byte("# +expiry-time="))
	if !ok || bytes.Contains(expire, []byte("# +")) {
		t.Errorf("%s does not expire once:\n%s", name, text)
	}
	for _, label := range []string{"gpudirect.rdma.capable=", gate + "=", "gdr.level="} {
		if !strings.Contains(string(stay), prefix+label) {
			t.Errorf("%s is not among what stays:\n%s", label, text)
		}
	}
	for _, label := range []string{"gpudirect.rdma=", "gdr.peermem="} {
		if !strings.Contains(string(expire), prefix+label) {
			t.Errorf("%s is not among what expires:\n%s", label, text)
		}
	}
	line, _, _ := strings.Cut(string(expire), "\n")
	if at, err := time.Parse(time.RFC3339, line); err != nil || time.Until(at) < 59*time.Minute || time.Until(at) > time.Hour {
		t.Errorf("it expires at %v, error %v", at, err)
	}
}
