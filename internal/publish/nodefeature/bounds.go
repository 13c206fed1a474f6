package nodefeature

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxAnswer in bytes bounds what one answer, or one event of a watch, may take of the
// memory. etcd takes objects of 1.5 MiB unless it is told otherwise.
const maxAnswer = 4 << 20

// errTooLong tells that an answer was cut off.
var errTooLong = fmt.Errorf("the answer of the API server has more than %d MiB", maxAnswer>>20)

// bounded returns a transport whose answers end with errTooLong after maxAnswer. The events
// of a watch are bounded one by one, by frames.
func bounded(next http.RoundTripper) http.RoundTripper { return boundedTripper{next} }

type boundedTripper struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil && (answer.StatusCode != http.StatusOK || r.URL.Query().Get("watch") == "") {
		answer.Body = &limited{ReadCloser: answer.Body, left: maxAnswer}
	}
	return answer, err
}

// WrappedRoundTripper lets client-go close idle connections.
func (b boundedTripper) WrappedRoundTripper() http.RoundTripper { return b.next }

// limited reads until nothing is left of the limit.
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

// frames reads the events of a watch one by one. Each is reduced to what is used of it before
// anything else holds it.
type frames struct {
	limited
	source io.Reader // of events: limited, after what has been read of it already
	events *json.Decoder
	rest   []byte // of the event that is being read
}

// largeEvent in bytes is when the buffer of an event is not kept for the next one.
const largeEvent = 64 << 10

func newFrames(r io.ReadCloser) *frames {
	f := &frames{limited: limited{ReadCloser: r}}
	f.source = &f.limited
	f.events = json.NewDecoder(f.source)
	return f
}

// Read reads an event, or a part of it with io.ErrShortBuffer, as runtime.Framer asks for.
func (f *frames) Read(to []byte) (int, error) {
	if len(f.rest) == 0 {
		f.left = maxAnswer
		var event json.RawMessage
		if err := f.events.Decode(&event); err != nil {
			return 0, err
		}
		if len(event) > largeEvent {
			f.source = io.MultiReader(f.events.Buffered(), f.source)
			f.events = json.NewDecoder(f.source)
		}
		f.rest = reduced(event)
	}
	n := copy(to, f.rest)
	if f.rest = f.rest[n:]; len(f.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// framer makes frames of what a watch sends.
type framer struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (framer) NewFrameReader(r io.ReadCloser) io.ReadCloser { return newFrames(r) }

// sparing decodes only JSON, and of a NodeFeature only what is used of it.
type sparing struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s sparing) SupportedMediaTypes() []runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(s.NegotiatedSerializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	stream := *info.StreamSerializer
	stream.Framer = framer{stream.Framer}
	info.Serializer, info.StreamSerializer = reducing{info.Serializer}, &stream
	return []runtime.SerializerInfo{info}
}

// reducing decodes what is used of an answer.
type reducing struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (r reducing) Decode(text []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return r.Serializer.Decode(reduced(text), defaults, into)
}
