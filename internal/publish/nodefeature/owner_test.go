package nodefeature

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// token makes a JSON web token of claims.
func token(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
}

// claims of the token of a Pod, as Kubernetes 1.35 makes them.
const claims = `{"aud":["https://kubernetes.default.svc"],"exp":1795000000,"iss":"https://kubernetes.default.svc",
"kubernetes.io":{"namespace":"gdr-features","node":{"name":"node-1","uid":"` + uid + `"},
"pod":{"name":"gdr-features-x","uid":"2"},"serviceaccount":{"name":"gdr-features","uid":"3"}},
"sub":"system:serviceaccount:gdr-features:gdr-features"}`

func TestBoundNode(t *testing.T) {
	for _, test := range []struct {
		name, token string
		want        Bound
	}{
		{"a pod's token", token(claims), Bound{Name: node, UID: uid}},
		{"not bound to a node", token(`{"kubernetes.io":{"namespace":"n"}}`), Bound{}},
		{"a node without UID", token(`{"kubernetes.io":{"node":{"name":"n"}}}`), Bound{Name: "n"}},
		{"claims of another kind", token(`{"kubernetes.io":[]}`), Bound{}},
		{"no claims", token(`null`), Bound{}},
		{"no signature", strings.Join(strings.Split(token(claims), ".")[:2], "."), Bound{}},
		{"not base64", "a.!.c", Bound{}},
		{"a static token", "secret", Bound{}},
		{"none", "", Bound{}},
		{"dots", "..", Bound{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := boundNode(test.token); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// The present token of a file counts, not the one in the configuration; a file that cannot
// be read is an error.
func TestBoundNodeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	access := &rest.Config{BearerToken: token(`{"kubernetes.io":{"node":{"name":"old"}}}`), BearerTokenFile: file}
	if got, err := BoundNode(TokenOf(access)); err == nil || got != (Bound{}) {
		t.Errorf("without file: %v, error %v", got, err)
	}
	if err := os.WriteFile(file, []byte(token(claims)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := BoundNode(TokenOf(access)); err != nil || got != (Bound{Name: node, UID: uid}) {
		t.Errorf("got %v, error %v", got, err)
	}
	large, fifo := filepath.Join(t.TempDir(), "large"), filepath.Join(t.TempDir(), "fifo")
	if err := errors.Join(os.WriteFile(large, make([]byte, maxToken+1), 0o600), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{large: "larger than 1048576 bytes", fifo: "not a regular file", "/dev/zero": "not a regular file"} {
		if text, err := TokenOf(&rest.Config{BearerTokenFile: file})(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d bytes, error %v", file, len(text), err)
		}
	}
}

func FuzzBoundNode(f *testing.F) {
	f.Add(token(claims))
	f.Add(token(`{"kubernetes.io":{"node":{"name":"n","uid":1}}}`))
	f.Add("..")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		got := boundNode(text)
		if got != (Bound{}) && strings.Count(text, ".") < 2 {
			t.Errorf("%q is no token and gives %v", text, got)
		}
		if got := boundNode(token(text)); got.Name != "" && !strings.Contains(text, `"`) {
			t.Errorf("claims %q give %v", text, got)
		}
	})
}

// The owner is the node of the token; without one, the Node is read once; without the right
// to do so there is no owner.
func TestOwner(t *testing.T) {
	for _, test := range []struct {
		name, bound string
		status      int
		owner       bool
		requests    string
		warnings    int
	}{
		{"bound", node, 0, true, "GET APPLY GET APPLY EVENT", 0},
		{"not bound", "", 200, true, "GET NODE APPLY GET APPLY EVENT", 0},
		{"bound to another node", "node-2", 200, true, "GET NODE APPLY GET APPLY EVENT", 0},
		{"not bound and forbidden", "", 403, false, "GET NODE APPLY GET APPLY EVENT", 1},
		{"not bound and unknown", "", 401, false, "GET NODE APPLY GET APPLY EVENT", 1},
		{"no such node", "", 404, false, "GET NODE APPLY GET APPLY EVENT", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI(t)
			p, hook := a.publisher(test.bound)
			if test.status != 200 {
				a.says("NODE", test.status)
			}
			for _, state := range []string{"ready", "ports-down"} {
				if wrote, err := p.Publish(t.Context(), small(t, state)); !wrote || err != nil {
					t.Fatalf("wrote %v, error %v", wrote, err)
				}
			}
			a.asked(test.requests)
			owners := a.is().OwnerReferences
			if (len(owners) == 1 && owners[0].UID == uid) != test.owner {
				t.Errorf("owners %v", owners)
			}
			warned := 0
			for _, e := range hook.AllEntries() {
				if e.Level == logrus.WarnLevel && strings.Contains(e.Message, "outlive its node") {
					warned++
				}
			}
			if warned != test.warnings {
				t.Errorf("%d warnings", warned)
			}
		})
	}
}

// An error that may go away is waited out before anything is written: the object is to have
// its owner from the first write.
func TestOwnerLater(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher("")
	a.says("NODE", 500)
	if wrote, err := p.Publish(t.Context(), small(t, "ready")); wrote || err == nil {
		t.Errorf("wrote %v, error %v", wrote, err)
	}
	a.asked("GET NODE")
	a.says("NODE", -1)
	a.must(p, true, small(t, "ready"), "GET NODE APPLY")

	q, _, access := a.publisherOf(node)
	access.BearerTokenFile = filepath.Join(t.TempDir(), "missing")
	if wrote, err := q.Publish(t.Context(), small(t, "ports-down")); wrote || err == nil || !strings.Contains(err.Error(), "service account token") {
		t.Errorf("wrote %v, error %v", wrote, err)
	}
}

// A Node that was deleted and registered again owns the object as soon as its UID is known:
// from a renewed token, or by reading the Node when the object is gone.
func TestOwnerRegisteredAgain(t *testing.T) {
	a := newAPI(t)
	p, _, access := a.publisherOf(node)
	access.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	c := small(t, "ready")
	for _, uid := range []string{"first", "second"} {
		claims := fmt.Sprintf(`{"kubernetes.io":{"node":{"name":%q,"uid":%q}}}`, node, uid)
		if err := os.WriteFile(access.BearerTokenFile, []byte(token(claims)), 0o600); err != nil {
			t.Fatal(err)
		}
		a.must(p, true, c, "GET APPLY")
		if owners := a.is().OwnerReferences; len(owners) != 1 || string(owners[0].UID) != uid {
			t.Errorf("owners %v", owners)
		}
		a.must(p, false, c, "GET")
	}

	a = newAPI(t)
	q, hook := a.publisher("")
	a.must(q, true, c, "GET NODE APPLY")
	a.must(q, true, small(t, "ports-down"), "GET APPLY EVENT")
	a.object = nil
	a.must(q, true, c, "GET NODE APPLY EVENT")
	a.says("NODE", 403)
	for range 2 {
		a.object = nil
		a.must(q, true, c, "GET NODE APPLY")
	}
	if owners := a.is().OwnerReferences; len(owners) != 0 || len(hook.AllEntries()) > 1 {
		t.Errorf("owners %v, %d lines logged", owners, len(hook.AllEntries()))
	}
}

// Where the API server lets the agent change no owner, the labels are written all the same, and the
// object keeps the owners that it has. That is tried once, and logged once.
func TestOwnersKept(t *testing.T) {
	for name, owners := range map[string][]metav1.OwnerReference{
		"none":       nil,
		"another":    {{APIVersion: "v1", Kind: "Node", Name: node, UID: "before"}},
		"of another": {{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "9"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			p, hook := a.publisher(node)
			a.must(p, true, small(t, "ready"), "GET APPLY")
			a.edit(func(o *v1alpha1.NodeFeature) { o.OwnerReferences = owners }, false)
			a.enforces = true
			for i, requests := range []string{"GET APPLY APPLY EVENT", "GET APPLY EVENT", "GET APPLY EVENT"} {
				c := small(t, []string{"ports-down", "ready", "ports-down"}[i])
				a.must(p, true, c, requests)
				a.must(p, false, c, "GET")
				if diff := cmp.Diff(map[string]string(c.Labels), known(a.is())); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(owners, a.is().OwnerReferences); diff != "" {
					t.Errorf("owners (-want +got):\n%s", diff)
				}
			}
			if n := len(hook.AllEntries()); n != 1 || !strings.Contains(hook.LastEntry().Message, "verb delete") {
				t.Errorf("%d lines logged", n)
			}
		})
	}
	a := newAPI(t) // refused for another reason
	p, _ := a.publisher(node)
	a.must(p, true, small(t, "ready"), "GET APPLY")
	a.says("APPLY", http.StatusForbidden)
	if wrote, err := p.Publish(t.Context(), small(t, "ports-down")); wrote || !apierrors.IsForbidden(err) {
		t.Errorf("wrote %v, error %v", wrote, err)
	}
	a.asked("GET APPLY")
}
