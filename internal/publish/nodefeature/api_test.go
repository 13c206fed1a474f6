package nodefeature

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/host"
	"gdr-features/internal/journal"
	"gdr-features/internal/label"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

const (
	namespace = "gdr-features"
	node      = "node-1"
	uid       = "6c5f3b9e-0000-4000-8000-000000000001"
)

// noSuchKind makes a request get the answer for a kind that the server does not know.
const noSuchKind = 1

// api is as much of an API server as the publisher needs: it keeps one object. The tests in
// test/e2e use a real one.
type api struct {
	*testing.T
	url string

	mu       sync.Mutex
	object   *v1alpha1.NodeFeature
	version  int
	requests []string
	events   []corev1.Event
	// answers has statuses by request, "DELETE": 403; 0 closes the connection.
	answers map[string]int
	// enforces: the agent may not delete the object, and so may not change its owners.
	enforces bool
	// unannotated: an older admission policy allows no journal.
	unannotated bool
	// theirs is what another field manager applies at each write.
	theirs func(*v1alpha1.NodeFeature)
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{T: t, answers: map[string]int{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what := r.Method
	switch r.Header.Get("Content-Type") {
	case string(types.ApplyPatchType):
		what = "APPLY"
	case string(types.JSONPatchType):
		what = "REPLACE"
	}
	path := "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/" + namespace + "/nodefeatures/gdr-features-" + node
	switch r.URL.Path {
	case "/api/v1/nodes/" + node:
		what, path = "NODE", r.URL.Path
	case "/api/v1/namespaces/default/events":
		what, path = "EVENT", r.URL.Path
	case "/api/v1/namespaces/" + namespace + "/events":
		what, path = "EVENT-HERE", r.URL.Path
	}
	a.requests = append(a.requests, what)
	status, set := a.answers[what]
	switch {
	case r.URL.Path != path:
		a.Errorf("%s %s", what, r.URL)
		a.status(w, http.StatusTeapot)
	case set && status == 0:
		panic(http.ErrAbortHandler)
	case set && status == noSuchKind:
		http.NotFound(w, r)
	case set:
		w.Header().Set("Retry-After", "1")
		a.status(w, status)
	case what == "NODE":
		a.answer(w, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: node, UID: uid}})
	case what == "EVENT", what == "EVENT-HERE":
		a.event(w, r)
	case what == "APPLY":
		q := r.URL.Query()
		if q.Get("fieldManager") != "gdr-features" || q.Get("force") != "true" {
			a.Errorf("apply with %s", r.URL.RawQuery)
		}
		a.apply(w, r)
	case a.object == nil:
		a.status(w, http.StatusNotFound)
	case what == "REPLACE":
		a.replace(w, r)
	case what == http.MethodGet:
		a.answer(w, a.object)
	case what == http.MethodDelete:
		a.object = nil
		a.status(w, http.StatusOK)
	default:
		a.Errorf("request %s", what)
	}
}

func (a *api) apply(w http.ResponseWriter, r *http.Request) {
	object := &v1alpha1.NodeFeature{}
	if err := json.NewDecoder(r.Body).Decode(object); err != nil {
		a.Error(err)
	}
	refuse := ""
	switch _, journaled := object.Annotations[journal.Annotation]; {
	case a.unannotated && journaled:
		refuse = "denied request: the agent may write no annotations but the one of nfd-master"
	case a.enforces && a.object != nil && !slices.Equal(a.object.OwnerReferences, object.OwnerReferences):
		refuse = "cannot set an ownerRef on a resource you can't delete: , <nil>"
	}
	if refuse != "" {
		s := apierrors.NewForbidden(v1alpha1.Resource(resource), object.Name, errors.New(refuse))
		s.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		a.answerJSON(w, &s.ErrStatus)
		return
	}
	object.UID = "1"
	if a.theirs != nil {
		a.theirs(object)
	}
	a.keep(object)
	a.answer(w, object)
}

func (a *api) event(w http.ResponseWriter, r *http.Request) {
	var e corev1.Event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		a.Error(err)
	}
	a.events = append(a.events, e)
	a.answer(w, &e)
}

func (a *api) replace(w http.ResponseWriter, r *http.Request) {
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		a.Error(err)
	}
	before, err := json.Marshal(a.object)
	if err != nil {
		a.Error(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		a.Error(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		a.Error(err)
	}
	object := &v1alpha1.NodeFeature{}
	if err := json.Unmarshal(after, object); err != nil {
		a.Error(err)
	}
	a.keep(object)
	a.answer(w, object)
}

func (a *api) keep(object *v1alpha1.NodeFeature) {
	a.version++
	object.ResourceVersion = strconv.Itoa(a.version)
	a.object = object
}

func (a *api) answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	a.answerJSON(w, object)
}

func (a *api) answerJSON(w http.ResponseWriter, object any) {
	if err := json.NewEncoder(w).Encode(object); err != nil {
		a.Error(err)
	}
}

func (a *api) status(w http.ResponseWriter, code int) {
	reason := map[int]metav1.StatusReason{
		403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict,
		429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError, 401: metav1.StatusReasonUnauthorized,
	}[code]
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("the server says %d", code),
	}
	if code == http.StatusOK {
		s.Status = metav1.StatusSuccess
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	a.answerJSON(w, s)
}

// asked checks the requests since the last call.
func (a *api) asked(want string) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if got := strings.Join(a.requests, " "); got != want {
		a.Errorf("asked %q, want %q", got, want)
	}
	a.requests = nil
}

// says sets the status that answers a request; -1 for the real answer.
func (a *api) says(request string, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers[request] = status; status < 0 {
		delete(a.answers, request)
	}
}

// edit is a change by another field manager, once, or at each apply too.
func (a *api) edit(edit func(*v1alpha1.NodeFeature), always bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if edit(a.object); always {
		a.theirs = edit
	}
}

func (a *api) is() *v1alpha1.NodeFeature {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.object.DeepCopy()
}

// publisher returns a publisher whose token is bound to a node; "" for a token that is not.
func (a *api) publisher(bound string) (*Publisher, *logtest.Hook) {
	p, hook, _ := a.publisherOf(bound)
	return p, hook
}

func (a *api) publisherOf(bound string) (*Publisher, *logtest.Hook, *rest.Config) {
	a.Helper()
	access := &rest.Config{Host: a.url, BearerToken: "no token"}
	if bound != "" {
		access.BearerToken = token(fmt.Sprintf(`{"kubernetes.io":{"node":{"name":%q,"uid":%q}}}`, bound, uid))
	}
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.InfoLevel)
	p, err := New(access, TokenOf(access), namespace, node, time.Now, log)
	if err != nil {
		a.Fatal(err)
	}
	return p, hook, access
}

// reports has the reports of the small machine by state.
var reports sync.Map

// small is a machine with one GPU and two RDMA devices in a state.
func small(t *testing.T, state string) publish.Content {
	t.Helper()
	read := func() report.Report {
		m, err := machine.Load("../../../testdata/machines/vllm-1gpu-dualport-node.txt")
		if err != nil {
			t.Fatal(err)
		}
		s, ok := machine.StateNamed(state)
		if !ok {
			t.Fatalf("no state %s", state)
		}
		fs, err := host.Open(host.Options{Root: m.Tree(t, s)})
		if err != nil {
			t.Fatal(err)
		}
		defer fs.Close()
		return report.Collect(t.Context(), fs, report.Options{What: report.ForPublishing.What})
	}
	once, _ := reports.LoadOrStore(state, sync.OnceValue(read))
	r := once.(func() report.Report)()
	return publish.Content{Labels: maps.Clone(r.Labels), Report: &r}
}

// elements returns the values that the instances of a feature have for a key, sorted.
func elements(spec *v1alpha1.NodeFeatureSpec, feature, key string) (values []string) {
	for _, e := range spec.Features.Instances[feature].Elements {
		values = append(values, e.Attributes[key])
	}
	slices.Sort(values)
	return values
}

// known returns the labels of an object, without prefix.
func known(o *v1alpha1.NodeFeature) map[string]string { return label.Published(o.Spec.Labels) }
