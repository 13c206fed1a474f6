package nodefeature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/journal"
	"gdr-features/internal/label"
)

// maxAnswer in bytes bounds what one answer, or one event of a watch, may take of the
// memory. etcd takes objects of 1.5 MiB unless it is told otherwise.
const maxAnswer = 4 << 20

// maxToken is the size in bytes of the largest token file that is read.
const maxToken = 1 << 20

var errTooLong = fmt.Errorf("the answer of the API server has more than %d MiB", maxAnswer>>20)

// bounded ends answers, and each event of a watch, with errTooLong after maxAnswer.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	switch {
	case err != nil:
	case answer.StatusCode == http.StatusOK && r.URL.Query().Get("watch") != "":
		answer.Body = newEvents(answer.Body)
	default:
		answer.Body = &limited{ReadCloser: answer.Body, left: maxAnswer}
	}
	return answer, err
}

// WrappedRoundTripper lets client-go close idle connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

type limited struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (l *limited) Read(to []byte) (int, error) {
	if l.left < 0 {
		return 0, errTooLong
	}
	n, err := l.ReadCloser.Read(to[:min(len(to), l.left+1)]) // one more tells that there is more
	if l.left -= n; l.left < 0 {
		return n, errTooLong
	}
	return n, err
}

// events reads those of a watch one by one, each reduced before anything else holds it.
type events struct {
	limited
	source io.Reader // of events: limited, after what has been read of it already
	from   *json.Decoder
	rest   []byte // of the event that is being read
}

// largeEvent in bytes is when the buffer of an event is not kept for the next one.
const largeEvent = 64 << 10

func newEvents(r io.ReadCloser) *events {
	e := &events{limited: limited{ReadCloser: r}}
	e.source = &e.limited
	e.from = json.NewDecoder(e.source)
	return e
}

// Read reads an event, or a part of it.
func (e *events) Read(to []byte) (int, error) {
	if len(e.rest) == 0 {
		e.left = maxAnswer
		var event json.RawMessage
		if err := e.from.Decode(&event); err != nil {
			return 0, err
		}
		if len(event) > largeEvent {
			e.source = io.MultiReader(e.from.Buffered(), e.source)
			e.from = json.NewDecoder(e.source)
		}
		e.rest = reduced(event)
	}
	n := copy(to, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// sparing decodes only JSON, and of a NodeFeature only what is used of it.
type sparing struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s sparing) SupportedMediaTypes() []runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(s.NegotiatedSerializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	info.Serializer = reducing{info.Serializer}
	return []runtime.SerializerInfo{info}
}

type reducing struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (r reducing) Decode(text []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return r.Serializer.Decode(reduced(text), defaults, into)
}

// others is a feature that stands for everything in the spec of an object that others have
// added to it, which is not kept: it may be more than the memory is to hold.
const others = "others"

// reduced leaves out managed fields and what others have added of a NodeFeature, a list of them
// or an event with one. Any other text is returned as it is.
func reduced(text []byte) []byte {
	var whole used
	if json.Unmarshal(text, &whole) != nil {
		return text // decoding it tells what is wrong
	}
	kind := whole.Kind
	if kind == "" && whole.Object != nil {
		kind = whole.Object.Kind
	}
	if kind != "NodeFeature" && kind != "NodeFeatureList" {
		return text
	}
	less, err := json.Marshal(&whole)
	if err != nil {
		return text
	}
	return less
}

// used is what is used of a NodeFeature, of a list of them, which has Items, and of an event
// with one, which has Type and Object.
type used struct {
	metav1.TypeMeta
	Type     string  `json:"type,omitempty"`
	Object   *used   `json:"object,omitempty"`
	Items    *[]used `json:"items,omitempty"`
	Metadata struct {
		Name            string                  `json:"name,omitempty"`
		Namespace       string                  `json:"namespace,omitempty"`
		UID             string                  `json:"uid,omitempty"`
		ResourceVersion string                  `json:"resourceVersion,omitempty"`
		Continue        string                  `json:"continue,omitempty"`
		Labels          ours                    `json:"labels"`
		Annotations     ours                    `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Labels   ours `json:"labels"`
		Features struct {
			Flags      ours `json:"flags"`
			Attributes ours `json:"attributes"`
			Instances  ours `json:"instances"`
		} `json:"features"`
	} `json:"spec"`
}

// MarshalJSON implements json.Marshaler.
func (u *used) MarshalJSON() ([]byte, error) {
	s, flags := &u.Spec, &u.Spec.Features.Flags
	if s.Labels.more || flags.more || s.Features.Attributes.more || s.Features.Instances.more {
		flags.values = map[string]json.RawMessage{others: json.RawMessage("{}")}
	}
	type plain used // without this method
	return json.Marshal((*plain)(u))
}

// ours is an object of JSON without the keys of others.
type ours struct {
	values map[string]json.RawMessage
	more   bool // others have keys
}

// MarshalJSON implements json.Marshaler.
func (o ours) MarshalJSON() ([]byte, error) { return json.Marshal(o.values) }

// UnmarshalJSON implements json.Unmarshaler. Keys of others are not kept, not even meanwhile:
// there may be more of them than the memory is to hold.
func (o *ours) UnmarshalJSON(text []byte) error {
	from := json.NewDecoder(bytes.NewReader(text))
	if start, err := from.Token(); err != nil || start == nil {
		return err
	}
	o.values = map[string]json.RawMessage{}
	for from.More() {
		key, err := from.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := from.Decode(&value); err != nil {
			return err
		}
		if name, _ := key.(string); isOurs(name) {
			o.values[name] = value
		} else {
			o.more = true
		}
	}
	return nil
}

// isOurs reports whether a key is one that we write or that a watch needs.
func isOurs(key string) bool {
	if name, ok := strings.CutPrefix(key, label.DefaultPrefix); ok {
		return label.Ours(name)
	}
	switch key {
	case v1alpha1.NodeFeatureObjNodeNameLabel, managedBy, v1alpha1.WorkerPodUIDAnnotation, journal.Annotation, metav1.InitialEventsAnnotationKey:
		return true
	}
	return strings.HasPrefix(key, "gdr.")
}
