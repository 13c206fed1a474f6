package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A webhook that guards NodeFeatures denies what the agent writes, or does not answer where it
// must. The agent says why, tries again less and less often, and writes when it may.
func TestWebhook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stop func(*guard)
		said string
	}{
		"denies":  {func(g *guard) { g.denies.Store(true) }, "no NodeFeatures today"},
		"is-down": {func(g *guard) { g.broken.Store(true) }, "failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, &shared, "webhook-"+name)
			tree := machine(t, "dell-xe9680-h100", "ready")
			a := n.run(t, tree, "--listen="+address(t))
			n.expect(t, labelsOf(t, tree))
			g := newGuard(t, n)

			s := a.strained(t, "the webhook "+name)
			test.stop(g)
			load(t, tree)
			failed := a.metric(t, failures)
			if err := until(t.Context(), patience, func(context.Context) error {
				if now := a.metric(t, failures); now < failed+4 {
					return fmt.Errorf("%s is %v, before %v", failures, now, failed)
				}
				return nil
			}, a.process); err != nil {
				t.Error(err)
			}
			if !a.said(t, test.said) {
				t.Errorf("the log does not say %q:\n%s", test.said, a.process.tail())
			}
			g.denies.Store(false)
			g.broken.Store(false)
			s.mend()
			labels := labelsOf(t, tree)
			s.recovers(t, 30, 20, func(ctx context.Context) error { return n.has(ctx, labels) })
			if asked := g.asked.Load(); asked < 5 || asked > 30 {
				t.Errorf("the webhook was asked %d times", asked)
			}
		})
	}
}

// guard is a validating webhook for the NodeFeature of one node.
type guard struct {
	denies, broken atomic.Bool
	asked          atomic.Int64
}

// newGuard starts a webhook, and returns when the API server asks it.
func newGuard(t *testing.T, n *node) *guard {
	t.Helper()
	g := &guard{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(g.review))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	fail, none, name := registrationv1.Fail, registrationv1.SideEffectClassNone, "gdr-features-"+n.name+".example.com"
	hook := registrationv1.ValidatingWebhook{
		Name: name, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: registrationv1.WebhookClientConfig{
			URL:      new(server.URL),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Create, registrationv1.Update},
			Rule:       registrationv1.Rule{APIGroups: []string{"nfd.k8s-sigs.io"}, APIVersions: []string{"*"}, Resources: []string{"nodefeatures"}},
		}},
		MatchConditions: []registrationv1.MatchCondition{{Name: "node", Expression: fmt.Sprintf("object.metadata.name == %q", feature(n.name).Name)}},
	}
	hooks := n.cluster.admin.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := hooks.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []registrationv1.ValidatingWebhook{hook},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hooks.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	agent := n.bearer(t)
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		if err := agent.write(ctx, feature(n.name), metav1.DryRunAll); err != nil && g.asked.Load() == 0 {
			return err
		}
		if g.asked.Load() == 0 {
			return fmt.Errorf("%s is not asked", name)
		}
		return nil
	}, n.cluster.processes()...); err != nil {
		t.Fatal(err)
	}
	g.asked.Store(0)
	return g
}

// review answers a request for admission.
func (g *guard) review(w http.ResponseWriter, r *http.Request) {
	g.asked.Add(1)
	if g.broken.Load() {
		panic(http.ErrAbortHandler) // closes the connection
	}
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: !g.denies.Load(), Result: &metav1.Status{Message: "no NodeFeatures today"},
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
