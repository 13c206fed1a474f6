package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the answers for one list may take. An API server keeps objects of 1.5 MiB, unless its
// etcd is told otherwise, and the largest clusters have some ten thousand nodes.
const (
	listLimit  = 5 * time.Minute
	maxPages   = 10_000
	maxObjects = 200_000
	maxList    = 2 << 30 // bytes
	maxObject  = 4 << 20
	maxError   = 1 << 20 // of an answer that is an error
	maxToken   = 16 << 10
	maxName    = 253 // characters of the name of a Node (k8s.io/apimachinery, validation.IsDNS1123Subdomain)
)

// isName reports whether a text may name a Node. Names are kept of all.
func isName(text string) bool { return text != "" && len(text) <= maxName }

var (
	errList   = fmt.Errorf("the list has more than %d MiB; ask for fewer nodes, by name", maxList>>20)
	errObject = fmt.Errorf("an object has more than %d MiB", maxObject>>20)
)

// meter counts what is read of the answers for a list, and of each object.
type meter struct {
	from         io.Reader
	left, object int64
}

// Read implements io.Reader.
func (m *meter) Read(to []byte) (int, error) {
	switch {
	case m.left <= 0:
		return 0, errList
	case m.object <= 0:
		return 0, errObject
	}
	n, err := m.from.Read(to[:min(int64(len(to)), m.left, m.object)])
	m.left, m.object = m.left-int64(n), m.object-int64(n)
	return n, err
}

// decode reads a list and calls each with its objects, of which it holds one at a time. It
// returns the token for the next page.
func decode[T any](from *meter, each func(*T) error) (next string, err error) {
	d := decoder{json.NewDecoder(from), from}
	if _, err := d.token(json.Delim('{')); err != nil {
		return "", err
	}
	for d.More() {
		key, err := d.token()
		if err != nil {
			return "", err
		}
		switch key {
		case "metadata":
			var meta metav1.ListMeta
			err = d.value(&meta)
			next = meta.Continue
		case "items":
			err = decodeItems(d, each)
		default:
			err = d.value(new(json.RawMessage))
		}
		if err != nil {
			return "", err
		}
	}
	_, err = d.token(json.Delim('}'))
	return next, err
}

func decodeItems[T any](d decoder, each func(*T) error) error {
	if begin, err := d.token(json.Delim('['), nil); begin == nil || err != nil {
		return err
	}
	for d.More() {
		var item T
		if err := d.value(&item); err != nil {
			return err
		}
		if err := each(&item); err != nil {
			return err
		}
	}
	_, err := d.token(json.Delim(']'))
	return err
}

// decoder reads values of at most maxObject.
type decoder struct {
	*json.Decoder
	from *meter
}

func (d decoder) value(to any) error {
	d.from.object = maxObject
	return d.Decode(to)
}

// token reads a token, which must be one of those that are given, if there are any.
func (d decoder) token(of ...json.Token) (json.Token, error) {
	d.from.object = maxObject
	is, err := d.Token()
	if err == nil && len(of) > 0 && !slices.Contains(of, is) {
		err = fmt.Errorf("%v where %v should be", is, of[0])
	}
	return is, err
}

// errorBounded ends answers that are errors, which client-go reads as a whole.
type errorBounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b errorBounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxError), answer.Body}
	}
	return answer, err
}

// WrappedRoundTripper lets client-go close idle connections.
func (b errorBounded) WrappedRoundTripper() http.RoundTripper { return b.next }
