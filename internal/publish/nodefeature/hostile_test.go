package nodefeature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/publish"
	"gdr-features/test/testsize"
)

// hostile is a publisher whose API server is a function.
func hostile(t *testing.T, serve http.HandlerFunc) (*Publisher, *logtest.Hook) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	log, hook := logtest.NewNullLogger()
	access := &rest.Config{Host: server.URL, QPS: -1}
	p, err := New(access, TokenOf(access), namespace, node, time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	return p, hook
}

func say(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// wantLogged waits for an entry of the log, longer than a busy machine needs, and checks its error.
func wantLogged(t *testing.T, hook *logtest.Hook, cause string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); len(hook.AllEntries()) == 0 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	if e := hook.LastEntry(); e == nil || !strings.Contains(fmt.Sprint(e.Data["error"]), cause) {
		t.Errorf("logged %v, want %s", e, cause)
	}
}

// list is the answer to a list without objects.
func list() *v1alpha1.NodeFeatureList {
	return &v1alpha1.NodeFeatureList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeFeatureList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "5"},
	}
}

// However a watch ends, the next ones begin with pauses, and the log names the cause.
func TestWatchEndsAtOnce(t *testing.T) {
	gone := expired.ErrStatus.DeepCopy()
	gone.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	for _, test := range []struct {
		name  string
		serve http.HandlerFunc
		cause string
	}{
		{"410 as status", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusGone, gone) }, "too old resource version"},
		{"410 in the stream", func(w http.ResponseWriter, _ *http.Request) {
			say(w, http.StatusOK, map[string]any{"type": "ERROR", "object": gone})
		}, "too old resource version"},
		{"one event, then the end", func(w http.ResponseWriter, _ *http.Request) {
			o := object(namespace, Name(node), node, "", v1alpha1.NodeFeatureSpec{})
			o.ResourceVersion = "6"
			say(w, http.StatusOK, map[string]any{"type": "ADDED", "object": o})
		}, ""},
		{"nothing, then the end", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, nil) }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var lists, watches atomic.Int32
			p, hook := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "" {
					lists.Add(1)
					say(w, http.StatusOK, list())
					return
				}
				watches.Add(1)
				test.serve(w, r)
			})
			p.Watch(t.Context())
			time.Sleep(6 * time.Second)
			t.Logf("%d lists, %d watches in 6 s", lists.Load(), watches.Load())
			if n := lists.Load() + watches.Load(); n > 25 {
				t.Errorf("%d requests in 6 s", n)
			}
			if test.cause == "" {
				return
			}
			wantLogged(t, hook, test.cause)
		})
	}
}

// spaces sends white space, which JSON allows everywhere, until the client is gone.
func spaces(w http.ResponseWriter, start string) {
	w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(w, start)
	for text := strings.Repeat(" ", 1<<20-1) + "\n"; err == nil; {
		_, err = io.WriteString(w, text)
	}
}

// An answer without end is cut off, and so is an event of a watch; the error says so.
func TestAnswerWithoutEnd(t *testing.T) {
	for _, what := range []string{"get", "write", "list", "watch", "error to a watch"} {
		t.Run(what, func(t *testing.T) {
			var asked atomic.Int32
			p, hook := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				watch := r.URL.Query().Get("watch") != ""
				switch {
				case what == "write" && r.Method == http.MethodGet:
					http.NotFound(w, r)
				case what == "watch" && !watch:
					say(w, http.StatusOK, list())
				case what == "watch":
					asked.Add(1)
					spaces(w, `{"type":"ADDED","object":{`)
				case watch:
					w.WriteHeader(http.StatusInternalServerError)
					spaces(w, `{"kind":"Status",`)
				default:
					asked.Add(1)
					spaces(w, "{")
				}
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			switch what {
			case "get", "write":
				if _, err := p.Publish(t.Context(), small(t, "ready")); err == nil || !strings.Contains(err.Error(), errTooLong.Error()) && what == "get" {
					t.Errorf("error %v", err)
				}
			default:
				p.Watch(t.Context())
				wantLogged(t, hook, errTooLong.Error())
			}
			runtime.ReadMemStats(&after)
			per := (after.TotalAlloc - before.TotalAlloc) >> 20 / uint64(max(1, asked.Load()))
			t.Logf("%d MiB allocated for each of %d answers, client and server together", per, asked.Load())
			if per > 64 {
				t.Error("too much")
			}
		})
	}
}

// Status 200 with anything but what was written is no success.
func TestAnswerOfAnother(t *testing.T) {
	other := object(namespace, "another", node, "", v1alpha1.NodeFeatureSpec{})
	bare := object(namespace, Name(node), node, "", v1alpha1.NodeFeatureSpec{})
	bare.UID, bare.ResourceVersion = "1", "1"
	for name, answer := range map[string]any{
		"nothing": struct{}{}, "a list": list(), "null": nil, "text": "ok", "another object": other, "without labels": bare,
		"a status": &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					http.NotFound(w, r)
					return
				}
				say(w, http.StatusOK, answer)
			})
			wrote, err := p.Publish(t.Context(), small(t, "ready"))
			if wrote || err == nil {
				t.Errorf("wrote %v, error %v", wrote, err)
			}
			if slow := (*publish.SlowRetry)(nil); name == "without labels" && (!errors.As(err, &slow) || !errors.Is(slow, errNotWritten)) {
				t.Errorf("error %v", err)
			}
			if read := answer != nil; read { // the same as an answer to a read
				p, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, answer) })
				if _, err := p.Last(t.Context()); err == nil && name != "without labels" {
					t.Error("read without an error")
				}
			}
		})
	}
}

// A write that is answered with what was written has not been stored: it has neither uid nor
// resourceVersion. One of them is not enough.
func TestEcho(t *testing.T) {
	for _, stored := range []string{"", `"uid":"1",`, `"resourceVersion":"1",`} {
		writes := 0
		p, _ := hostile(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.NotFound(w, r)
				return
			}
			writes++
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(bytes.Replace(text, []byte(`"metadata":{`), []byte(`"metadata":{`+stored), 1))
		})
		for range 3 {
			if wrote, err := p.Publish(t.Context(), small(t, "ready")); wrote || err == nil || !strings.Contains(err.Error(), "without uid or resourceVersion") {
				t.Errorf("%s wrote %v, error %v", stored, wrote, err)
			}
		}
		if writes != 3 || len(p.journal) > 0 || len(p.published) > 0 {
			t.Errorf("%d writes, published %v", writes, p.published)
		}
	}
}

// What others add to the object is not kept, however much it is.
func TestForeignMemory(t *testing.T) {
	o := object(namespace, Name(node), node, "", func() v1alpha1.NodeFeatureSpec { s, _ := spec(t, small(t, "ready"), nil); return s }())
	var devices []v1alpha1.InstanceFeature
	for i := range 6800 {
		devices = append(devices, *v1alpha1.NewInstanceFeature(map[string]string{
			"address": fmt.Sprintf("0000:%06d", i), "class": "0207", "vendor": "15b3", "device": "1021", "subsystem_device": "0041",
			"subsystem_vendor": "15b3", "serial": strings.Repeat("x", 80),
		}))
	}
	o.Spec.Features.Instances["pci.device"] = v1alpha1.NewInstanceFeatures(devices...)
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:features":` + strings.Repeat(`{"f:x":`, 2000) + "{}" + strings.Repeat("}", 2000) + `}}`)}}}
	text, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": o})
	if err != nil {
		t.Fatal(err)
	}
	events := 20
	if testsize.Partial() {
		events = 4
	}
	from := newEvents(io.NopCloser(strings.NewReader(strings.Repeat(string(text)+"\n", events))))
	buffer := make([]byte, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	kept := 0
	for range events {
		if kept, err = from.Read(buffer); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	t.Logf("an event of %d KiB: %d KiB kept of it, %d KiB allocated meanwhile", len(text)>>10, kept>>10, (after.TotalAlloc-before.TotalAlloc)>>10/uint64(events))
	if len(text) < 1400<<10 || kept > 16<<10 || (after.TotalAlloc-before.TotalAlloc)/uint64(events) > 16<<20 {
		t.Error("too much")
	}
	var got struct{ Object v1alpha1.NodeFeature }
	if err := json.Unmarshal(buffer[:kept], &got); err != nil || got.Object.Name != o.Name || sameSpec(&got.Object.Spec, &o.Spec) {
		t.Errorf("kept %s, error %v", buffer[:kept], err)
	}
	if _, err := from.Read(buffer); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// TestForeignKeys: many short keys of others leave nothing in the memory.
func TestForeignKeys(t *testing.T) {
	var labels strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&labels, `"%x":"1",`, i)
	}
	text := []byte("{" + labels.String() + `"gdr.level":"PIX"}`)
	use := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var kept ours
	before := use()
	if err := kept.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	after := use()
	if len(kept.values) != 1 || !kept.more || after > before+64<<10 {
		t.Errorf("%d keys kept, %d KiB in use for them", len(kept.values), (after-before)>>10)
	}
	runtime.KeepAlive(text)
}

// Nothing is lost between large events that arrive together.
func TestLargeEventsTogether(t *testing.T) {
	sizes := []int{600, 70, 70, 70, 0, 0} // KiB
	var sent strings.Builder
	for _, size := range sizes {
		sent.WriteString(`{"type":"ERROR","object":{"kind":"Status","message":"` + strings.Repeat("x", size<<10) + `"}}` + "\n")
	}
	from := newEvents(io.NopCloser(strings.NewReader(sent.String())))
	buffer := make([]byte, 1<<20)
	for i, size := range sizes {
		if n, err := from.Read(buffer); err != nil || n < size<<10 {
			t.Fatalf("event %d: %d bytes, error %v", i, n, err)
		}
	}
	if _, err := from.Read(buffer); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
