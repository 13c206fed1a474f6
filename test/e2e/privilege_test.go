package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authnv1 "k8s.io/api/authentication/v1"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// bearer returns the access of a new Pod of the agent on the node.
func (n *node) bearer(t *testing.T) access {
	t.Helper()
	pod, err := n.cluster.createPod(t.Context(), n.name)
	if err != nil {
		t.Fatal(err)
	}
	return bearer(t, n.cluster, pod)
}

// bearer returns the access of the agent, with a token bound to the Pod unless that is nil.
func bearer(t *testing.T, c *cluster, pod *corev1.Pod) access {
	t.Helper()
	token, err := c.token(t.Context(), agentName, agentName, pod)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.access(token)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Our role allows all that an agent needs.
func TestRoleAllows(t *testing.T) {
	n := newNode(t, &shared, "allowed")
	agent := n.bearer(t)
	ctx := t.Context()
	features := agent.nfd.NfdV1alpha1().NodeFeatures(agentName)
	own := feature(n.name)
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + own.Name}

	w, err := features.Watch(ctx, one)
	if err != nil {
		t.Fatal("watch:", err)
	}
	defer w.Stop()
	if err := agent.write(ctx, own); err != nil {
		t.Fatal("create by apply:", err)
	}
	select {
	case e := <-w.ResultChan():
		if got, ok := e.Object.(*nfdv1alpha1.NodeFeature); !ok || e.Type != watch.Added || got.Name != own.Name {
			t.Errorf("the watch shows %v of %v", e.Type, e.Object)
		}
	case <-time.After(5 * time.Second):
		t.Error("the watch shows nothing")
	}
	own.Spec.Labels = map[string]string{prefix + "gdr.level": "PIX"}
	own.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: n.uid}}
	if err := agent.write(ctx, own); err != nil {
		t.Error("apply:", err)
	}
	if _, err := features.Patch(ctx, own.Name, types.MergePatchType, []byte(`{"spec":{"labels":null}}`), metav1.PatchOptions{}); err != nil {
		t.Error("patch:", err)
	}
	if _, err := features.Get(ctx, own.Name, metav1.GetOptions{}); err != nil {
		t.Error("get:", err)
	}
	if all, err := features.List(ctx, one); err != nil || len(all.Items) != 1 {
		t.Errorf("list: %v, error %v", all, err)
	}
	if err := features.Delete(ctx, own.Name, metav1.DeleteOptions{}); err != nil {
		t.Error("delete:", err)
	}
	for _, namespace := range []string{agentName, metav1.NamespaceDefault} {
		if err := agent.tell(ctx, eventOf(n.name, namespace)); err != nil {
			t.Errorf("create an event in %s: %v", namespace, err)
		}
	}
}

// eventOf is an event as the agent of a node writes it.
func eventOf(node, namespace string) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "gdr-features-" + node + ".1", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
		Type:           corev1.EventTypeWarning, Reason: "GPUDirectRDMALost", Message: "a test",
		Source:              corev1.EventSource{Component: "gdr-features", Host: node},
		ReportingController: "gdr-features", ReportingInstance: node,
	}
	if namespace != metav1.NamespaceDefault {
		e.InvolvedObject.Namespace = namespace
	}
	return e
}

func (a *access) tell(ctx context.Context, e *corev1.Event) error {
	_, err := a.kube.CoreV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: agentName})
	return err
}

// The admission policy lets an agent write events about its own node only, in its own name.
func TestEventPolicy(t *testing.T) { testEventPolicy(t, &shared) }

func testEventPolicy(t *testing.T, c *cluster) {
	n, other := newNode(t, c, "event-policy"), newNode(t, c, "event-policy-other")
	agent := n.bearer(t)
	for i, test := range []struct {
		name string
		edit func(*corev1.Event)
		says string
	}{
		{"another node", func(e *corev1.Event) { e.InvolvedObject.Name = other.name }, "about its own node"},
		{"a Pod", func(e *corev1.Event) { e.InvolvedObject.Kind = "Pod" }, "about its own node"},
		{"another name", func(e *corev1.Event) { e.Name = "x" }, "about its own node"},
		{"another component", func(e *corev1.Event) { e.Source.Component = "kubelet" }, "in no other name"},
		{"another reporter", func(e *corev1.Event) { e.ReportingController = "kubelet" }, "in no other name"},
		{"another host", func(e *corev1.Event) { e.Source.Host = other.name }, "in no other name"},
		{"another reason", func(e *corev1.Event) { e.Reason = "NodeNotReady" }, "about readiness"},
		{"a finalizer", func(e *corev1.Event) { e.Finalizers = []string{"example.com/x"} }, "no metadata"},
		{"a name to complete", func(e *corev1.Event) { e.GenerateName = "x" }, "no metadata"},
		{"no reason", func(e *corev1.Event) { e.Reason = "" }, "about readiness"},
		{"another type", func(e *corev1.Event) { e.Type = "Error" }, "about readiness"},
		{"a message of 257 characters", func(e *corev1.Event) { e.Message = strings.Repeat("x", 257) }, "at most 256 characters"},
		{"a message of 1.4 MB", func(e *corev1.Event) { e.Message = strings.Repeat("x", 1400<<10) }, "at most 256 characters"},
		{"something related", func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Name: strings.Repeat("x", 1<<20)} }, "no other fields"},
		{"a series", func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 1} }, "no other fields"},
		{"an action", func(e *corev1.Event) { e.Action = strings.Repeat("x", 1<<20) }, "no other fields"},
		{"a field path", func(e *corev1.Event) { e.InvolvedObject.FieldPath = strings.Repeat("x", 1<<20) }, "no other fields"},
		{"a resource version", func(e *corev1.Event) { e.InvolvedObject.ResourceVersion = "1" }, "no other fields"},
		{"another version of the Node", func(e *corev1.Event) { e.InvolvedObject.APIVersion = strings.Repeat("x", 1<<20) }, "no other fields"},
		{"its own fields in the name of others", func(e *corev1.Event) { e.ManagedFields = claimedFields("x", 1, 1) }, "may own no fields"},
		{"many fields of its own", func(e *corev1.Event) { e.ManagedFields = claimedFields(agentName, 1, 20000) }, "may own no fields"},
		{"a long field of its own", func(e *corev1.Event) { e.ManagedFields = claimedFields(agentName, 1<<20, 1) }, "may own no fields"},
		{"a field of its own below another", func(e *corev1.Event) {
			e.ManagedFields = claimedFields(agentName, 1, 1)
			e.ManagedFields[0].FieldsV1.Raw = []byte(`{"f:message": {"f:` + strings.Repeat("x", 1<<20) + `": {}}}`)
		}, "may own no fields"},
		{"a long uid", func(e *corev1.Event) { e.InvolvedObject.UID = types.UID(strings.Repeat("x", 254)) }, "no other fields"},
	} {
		e := eventOf(n.name, metav1.NamespaceDefault)
		e.Name += fmt.Sprintf(".%d", i)
		test.edit(e)
		if err := agent.tell(t.Context(), e); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: the error is %v, not %q", test.name, err, test.says)
		}
	}
	linked := eventOf(n.name, metav1.NamespaceDefault)
	linked.SelfLink = strings.Repeat("x", 1<<20) //nolint:staticcheck // a client may send it, and the API server drops it
	if err := agent.tell(t.Context(), linked); err != nil {
		t.Error(err)
	}
	stored, err := c.admin.kube.CoreV1().Events(linked.Namespace).Get(t.Context(), linked.Name, metav1.GetOptions{})
	if err != nil || stored.Size() > 2048 {
		t.Errorf("an event has %d bytes, error %v", stored.Size(), err)
	}
}

// claimedFields are those that a manager claims to own, each of so many letters.
func claimedFields(manager string, letters, count int) []metav1.ManagedFieldsEntry {
	own := map[string]any{}
	for i := range count {
		own[fmt.Sprintf("f:%s%d", strings.Repeat("x", letters), i)] = map[string]any{}
	}
	text, _ := json.Marshal(own) // of texts alone
	return []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &metav1.Time{Time: time.Now()},
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: text},
	}}
}

// Our role allows nothing more than an agent needs: the API server's own list of its rights
// has nothing else, and forbidden requests are refused.
func TestRoleRefuses(t *testing.T) {
	n, other := newNode(t, &shared, "refused"), newNode(t, &shared, "refused-other")
	agent := n.bearer(t)
	ctx := t.Context()
	if err := agent.write(ctx, feature(n.name)); err != nil {
		t.Fatal(err)
	}
	ours, nfds := agent.nfd.NfdV1alpha1().NodeFeatures(agentName), agent.nfd.NfdV1alpha1().NodeFeatures(nfdNamespace)
	core := agent.kube.CoreV1()
	label := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	foreign := feature(n.name)
	foreign.Namespace = nfdNamespace
	for what, err := range map[string]error{
		"delete all NodeFeatures":              ours.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		"update its NodeFeature":               second(ours.Update(ctx, feature(n.name), metav1.UpdateOptions{})),
		"write NodeFeatures of NFD":            agent.write(ctx, foreign),
		"get NodeFeatures of NFD":              second(nfds.Get(ctx, n.name, metav1.GetOptions{})),
		"list NodeFeatures of NFD":             second(nfds.List(ctx, metav1.ListOptions{})),
		"list NodeFeatures of all":             second(agent.nfd.NfdV1alpha1().NodeFeatures("").List(ctx, metav1.ListOptions{})),
		"list NodeFeatureRules":                second(agent.nfd.NfdV1alpha1().NodeFeatureRules().List(ctx, metav1.ListOptions{})),
		"get its Node":                         second(core.Nodes().Get(ctx, n.name, metav1.GetOptions{})),
		"list Nodes":                           second(core.Nodes().List(ctx, metav1.ListOptions{})),
		"patch its Node":                       second(core.Nodes().Patch(ctx, n.name, types.MergePatchType, label, metav1.PatchOptions{})),
		"patch another Node":                   second(core.Nodes().Patch(ctx, other.name, types.MergePatchType, label, metav1.PatchOptions{})),
		"list secrets":                         second(core.Secrets(agentName).List(ctx, metav1.ListOptions{})),
		"list config maps":                     second(core.ConfigMaps(agentName).List(ctx, metav1.ListOptions{})),
		"list pods":                            second(core.Pods(agentName).List(ctx, metav1.ListOptions{})),
		"list events":                          second(core.Events(agentName).List(ctx, metav1.ListOptions{})),
		"make itself a token of another agent": second(core.ServiceAccounts(agentName).CreateToken(ctx, agentName, &authnv1.TokenRequest{}, metav1.CreateOptions{})),
	} {
		if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("%s: the error is %v, and not RBAC's", what, err)
		}
	}

	want := []string{
		`["" "events"]: create`,
		`["nfd.k8s-sigs.io" "nodefeatures"]: create delete get list patch watch`,
	}
	if diff := cmp.Diff(want, rules(t, agent, agentName)); diff != "" {
		t.Errorf("rights in its namespace (-want +got):\n%s", diff)
	}
	if got := rules(t, agent, nfdNamespace); len(got) > 0 {
		t.Errorf("rights elsewhere: %v", got)
	}
}

// second returns the error of two results.
func second[T any](_ T, err error) error { return err }

// rules returns the rights in a namespace as the API server lists them, without those
// that everybody has: to query one's own identity and rights.
func rules(t *testing.T, a access, namespace string) []string {
	t.Helper()
	review, err := a.kube.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authv1.SelfSubjectRulesReview{Spec: authv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.Incomplete {
		t.Fatalf("incomplete: %s", review.Status.EvaluationError)
	}
	var all []string
	for _, r := range review.Status.ResourceRules {
		if slices.Equal(r.APIGroups, []string{"authorization.k8s.io"}) || slices.Equal(r.APIGroups, []string{"authentication.k8s.io"}) {
			continue
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				all = append(all, fmt.Sprintf("%q: %s", []string{group, resource}, strings.Join(slices.Sorted(slices.Values(r.Verbs)), " ")))
			}
		}
	}
	slices.Sort(all)
	return all
}

// The admission policy lets an agent write the NodeFeature of its own node only.
func TestPolicy(t *testing.T) {
	a, b := newNode(t, &shared, "policy-a"), newNode(t, &shared, "policy-b")
	unscheduled, err := shared.createPod(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	agent := a.bearer(t)
	if err := agent.write(t.Context(), feature(a.name)); err != nil {
		t.Fatal(err)
	}
	other := b.bearer(t)
	if err := other.write(t.Context(), feature(b.name)); err != nil {
		t.Fatal(err)
	}

	relabelled, unlabelled, owned, renamed := feature(a.name), feature(a.name), feature(a.name), feature(b.name)
	relabelled.Labels[nfdv1alpha1.NodeFeatureObjNodeNameLabel] = b.name
	unlabelled.Labels = nil
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: b.name, UID: b.uid}}
	renamed.Labels[nfdv1alpha1.NodeFeatureObjNodeNameLabel] = a.name
	third := feature(a.name)
	third.Name = "something-else"
	pretending, inventing := feature(a.name), feature(a.name)
	pretending.Spec.Labels = map[string]string{prefix + "pci-10de.present": "true"}
	inventing.Spec.Features = *nfdv1alpha1.NewFeatures()
	inventing.Spec.Features.Instances["pci.device"] = nfdv1alpha1.NewInstanceFeatures(*nfdv1alpha1.NewInstanceFeature(map[string]string{"vendor": "10de"}))
	yes := true
	edited := func(edit func(*nfdv1alpha1.NodeFeature)) *nfdv1alpha1.NodeFeature {
		f := feature(a.name)
		edit(f)
		return f
	}
	flagged := func(block, control *bool) *nfdv1alpha1.NodeFeature {
		return edited(func(f *nfdv1alpha1.NodeFeature) {
			f.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: a.name, UID: a.uid, BlockOwnerDeletion: block, Controller: control}}
		})
	}
	const noLabels, noFeatures = "may write no other labels than gdr.* and gpudirect.*", "may write no other features than gdr.*"
	for _, test := range []struct {
		name    string
		agent   access
		feature *nfdv1alpha1.NodeFeature
		message string
	}{
		{"another node's", agent, feature(b.name), "may write the NodeFeature gdr-features-policy-a, not gdr-features-policy-b"},
		{"another node's, as if it were its own", agent, renamed, "may write the NodeFeature gdr-features-policy-a, not gdr-features-policy-b"},
		{"a second one", agent, third, "may write the NodeFeature gdr-features-policy-a, not something-else"},
		{"its own, relabelled", agent, relabelled, `must have the label nfd.node.kubernetes.io/node-name: policy-a, not "policy-b"`},
		{"its own, without label", agent, unlabelled, `must have the label nfd.node.kubernetes.io/node-name: policy-a, not ""`},
		{"its own, owned by another node", agent, owned, "may make no other owner of the NodeFeature than this Node"},
		{"its own, with another's label", agent, pretending, "may write no other labels than gdr.* and gpudirect.*"},
		{"its own, with another's features", agent, inventing, "may write no other features than gdr.*"},
		{"with a finalizer", agent, edited(func(f *nfdv1alpha1.NodeFeature) { f.Finalizers = []string{"example.com/x"} }), "may change no finalizers"},
		{"with an annotation", agent, edited(func(f *nfdv1alpha1.NodeFeature) { f.Annotations = map[string]string{"a": "b"} }), "may write no annotations"},
		{"with another label of the object", agent, edited(func(f *nfdv1alpha1.NodeFeature) { f.Labels["a"] = "b" }), "may label the NodeFeature with nothing"},
		{"with an owner that blocks", agent, flagged(&yes, nil), "cannot set blockOwnerDeletion"},
		{"with an owner that controls", agent, flagged(nil, &yes), "may make no other owner"},
		{"with a newline in a label", agent, edited(func(f *nfdv1alpha1.NodeFeature) {
			f.Spec.Labels = map[string]string{prefix + "gdr.x\nexample.com/y": "1"}
		}), noLabels},
		{"with a newline in a value", agent, edited(func(f *nfdv1alpha1.NodeFeature) { f.Spec.Labels = map[string]string{prefix + "gdr.x": "1\n2"} }), noLabels},
		{"with a newline in a feature", agent, edited(func(f *nfdv1alpha1.NodeFeature) {
			f.Spec.Features = *nfdv1alpha1.NewFeatures()
			f.Spec.Features.Attributes["gdr.x\ny"] = nfdv1alpha1.NewAttributeFeatures(map[string]string{"a": "b"})
		}), noFeatures},
		{"the first node's", other, feature(a.name), "may write the NodeFeature gdr-features-policy-b, not gdr-features-policy-a"},
		{"with an unbound token", bearer(t, &shared, nil), feature(a.name), "the token names no node"},
		{"with a token of a pod without node", bearer(t, &shared, unscheduled), feature(a.name), "the token names no node"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := stored(t, test.feature)
			// The smallest change: a patch that changes nothing is not checked.
			if test.feature.Spec.Labels == nil {
				test.feature.Spec.Labels = map[string]string{}
			}
			test.feature.Spec.Labels[prefix+"gdr.level"] = "SYS"
			err := test.agent.write(t.Context(), test.feature)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("the error is %v, not %q", err, test.message)
			}
			if diff := cmp.Diff(before, stored(t, test.feature)); diff != "" {
				t.Errorf("it changed (-before +after):\n%s", diff)
			}
		})
	}
}

// stored returns a NodeFeature of that name as it is, nil for none.
func stored(t *testing.T, f *nfdv1alpha1.NodeFeature) *nfdv1alpha1.NodeFeature {
	t.Helper()
	got, err := shared.admin.nfd.NfdV1alpha1().NodeFeatures(f.Namespace).Get(t.Context(), f.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}
