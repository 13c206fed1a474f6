package nodefeature

import (
	"bytes"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/label"
)

// others is a feature that stands for everything in the spec of an object that others have
// added to it, which is not kept: it may be more than the memory is to hold.
const others = "others"

// reduced reduces a NodeFeature, a list of them or an event with one to what is used of it,
// which leaves out the managed fields and what others have added. Any other text is returned
// as it is.
func reduced(text []byte) []byte {
	var whole struct {
		metav1.TypeMeta
		Metadata json.RawMessage `json:"metadata,omitempty"`
		Type     string          `json:"type,omitempty"`
		Object   *used           `json:"object,omitempty"`
		Items    *[]used         `json:"items,omitempty"`
	}
	var kind struct {
		Kind   string
		Object metav1.TypeMeta
	}
	if json.Unmarshal(text, &kind) != nil {
		return text
	}
	var to any
	switch {
	case kind.Kind == "NodeFeature":
		to = new(used)
	case kind.Kind == "NodeFeatureList", kind.Kind == "" && kind.Object.Kind == "NodeFeature":
		to = &whole
	default:
		return text
	}
	if json.Unmarshal(text, to) != nil {
		return text // decoding it tells what is wrong
	}
	less, err := json.Marshal(to)
	if err != nil {
		return text
	}
	return less
}

// used is what is used of a NodeFeature.
type used struct {
	metav1.TypeMeta
	Metadata struct {
		Name            string                  `json:"name,omitempty"`
		Namespace       string                  `json:"namespace,omitempty"`
		UID             string                  `json:"uid,omitempty"`
		ResourceVersion string                  `json:"resourceVersion,omitempty"`
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

// UnmarshalJSON implements json.Unmarshaler.
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
		name, _ := key.(string)
		if !isOurs(name) {
			var skipped nothing
			if err := from.Decode(&skipped); err != nil {
				return err
			}
			o.more = true
			continue
		}
		var value json.RawMessage
		if err := from.Decode(&value); err != nil {
			return err
		}
		o.values[name] = value
	}
	return nil
}

// isOurs reports whether a key of labels, annotations or features is one that we write or
// that a watch needs.
func isOurs(key string) bool {
	if name, ok := strings.CutPrefix(key, label.DefaultPrefix); ok {
		return label.Ours(name)
	}
	switch key {
	case v1alpha1.NodeFeatureObjNodeNameLabel, managedBy, v1alpha1.WorkerPodUIDAnnotation, metav1.InitialEventsAnnotationKey:
		return true
	}
	return strings.HasPrefix(key, "gdr.")
}

// nothing is a value that is not kept.
type nothing struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*nothing) UnmarshalJSON([]byte) error { return nil }
