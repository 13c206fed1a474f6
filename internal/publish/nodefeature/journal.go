package nodefeature

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/journal"
	"gdr-features/internal/label"
)

const (
	stateFeature = "gdr.state"
	// bootID is the attribute of stateFeature with the boot in which the object was written, by
	// the name that it has in the status of a Node.
	bootID = "bootID"
	// findingFeature has an instance for each finding, with its code and status.
	findingFeature = "gdr.finding"
)

// codesOf returns the status of each code of findings in a spec; nil where findings are no part
// of it, as in what older versions wrote.
func codesOf(spec *v1alpha1.NodeFeatureSpec) map[string]string {
	set, ok := spec.Features.Instances[findingFeature]
	if !ok {
		return nil
	}
	codes := map[string]string{}
	for _, e := range set.Elements {
		if code := e.Attributes["code"]; code != "" {
			codes[code] = e.Attributes["status"]
		}
	}
	return codes
}

// since returns the changes of labels and codes from those published before to those of spec. A
// node that begins or ceases to have labels changes nearly all of them, which would push
// everything else out of the journal: what there was of them is said by three.
func (p *Publisher) since(spec *v1alpha1.NodeFeatureSpec) []journal.Change {
	is := label.Published(spec.Labels)
	changes := journal.Between(p.published, is, p.now())
	if len(p.published) == 0 || len(is) == 0 {
		return slices.DeleteFunc(changes, func(c journal.Change) bool {
			return !slices.Contains([]string{label.GPUs, label.Capable, label.Ready}, c.Name)
		})
	}
	if codes := codesOf(spec); codes != nil && p.codes != nil {
		changes = append(journal.Between(p.codes, codes, p.now()), changes...)
	}
	return changes
}

// mayNotAnnotate reports whether a write was refused because of its annotations: the admission policy
// of older versions allows no journal, and is in force first when a cluster goes back to them.
func mayNotAnnotate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the agent may write no annotations")
}

// annotate makes the journal of want that of the object and what has changed since. A journal
// that is gone or garbled is replaced by what is known of it.
func (p *Publisher) annotate(want, now *v1alpha1.NodeFeature) (all []journal.Change) {
	if now != nil {
		all, _ = journal.Decode(now.Annotations[journal.Annotation])
	}
	if len(all) == 0 {
		all = p.journal
	}
	all = slices.Concat(all, p.since(&want.Spec))
	if len(all) > 0 {
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, journal.Annotation, journal.Encode(all))
	}
	return all[max(0, len(all)-journal.Most):]
}
