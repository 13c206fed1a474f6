package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// nodeClaim is the key under which the API server has the node of a token bound to a Pod.
const nodeClaim = "authentication.kubernetes.io/node-name"

// auditEnd returns the length of the audit log: requests that end later come after it.
func (c *cluster) auditEnd(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(c.dir, auditLog))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// requests returns all requests after a position in the audit log that were made with a
// token for the node, in the order of their ends. A watch is in it twice: when it begins
// and when it ends.
func (c *cluster) requests(t *testing.T, from int64, node string) []auditv1.Event {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(c.dir, auditLog))
	if err != nil {
		t.Fatal(err)
	}
	log = log[bytes.LastIndexByte(log[:from], '\n')+1:] // from the start of a line that was half written then
	log = log[:bytes.LastIndexByte(log, '\n')+1]        // up to one that is half written now
	var found []auditv1.Event
	for line := range bytes.Lines(log) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		if slices.Equal(event.User.Extra[nodeClaim], []string{node}) {
			found = append(found, event)
		}
	}
	return found
}

// writes returns the requests that are not reads.
func writes(requests []auditv1.Event) []auditv1.Event {
	return slices.DeleteFunc(slices.Clone(requests), func(e auditv1.Event) bool {
		return e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
	})
}

// describe returns a request as a line of text.
func describe(e *auditv1.Event) string {
	status := int32(0)
	if e.ResponseStatus != nil {
		status = e.ResponseStatus.Code
	}
	return fmt.Sprintf("%s %s %s %d", e.StageTimestamp.Format("15:04:05.000"), e.Verb, e.RequestURI, status)
}
