package nodefeature

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/journal"
	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// journaled returns the changes in the object, oldest first, without their times.
func (a *api) journaled() (lines []string) {
	a.Helper()
	all, err := journal.Decode(a.is().Annotations[journal.Annotation])
	if err != nil {
		a.Error(err)
	}
	for _, c := range all {
		if c.Time.IsZero() {
			a.Errorf("no time of %v", c)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s>%s", c.Name, c.Old, c.New)))
	}
	return lines
}

// with is a content with labels changed, where "" removes one.
func with(c publish.Content, labels ...string) publish.Content {
	c.Labels = maps.Clone(c.Labels)
	for i := 0; i < len(labels); i += 2 {
		if c.Labels[labels[i]] = labels[i+1]; labels[i+1] == "" {
			delete(c.Labels, labels[i])
		}
	}
	return c
}

// What changed is in the object, written by the write of the change itself, and is read back
// by the next agent. What others make of it is no reason to write, and is replaced.
func TestJournal(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	ready := small(t, "ready")
	begin := []string{"gdr.gpus >1", "gpudirect.rdma >true", "gpudirect.rdma.capable >true"}
	want := func(now ...string) {
		t.Helper()
		if diff := cmp.Diff(now, a.journaled()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	a.must(p, true, ready, "GET APPLY")
	want(begin...)
	a.must(p, false, ready, "GET")

	slow := with(ready, label.Rate, "50", label.Ready, "false", label.Reason, "NoActivePort")
	a.must(p, true, slow, "GET APPLY EVENT")
	all := append(slices.Clone(begin), "gdr.rate "+ready.Labels[label.Rate]+">50", "gdr.reason >NoActivePort", "gpudirect.rdma true>false")
	want(all...)

	garble := func(value string) {
		a.edit(func(o *v1alpha1.NodeFeature) { o.Annotations[journal.Annotation] = value }, false)
	}
	garble("{")
	a.must(p, false, slow, "GET") // no write for that alone
	a.must(p, true, with(slow, label.Rate, "200"), "GET APPLY")
	all = append(all, "gdr.rate 50>200")
	want(all...)

	next, _ := a.publisher(node)
	if _, err := next.Last(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.asked("GET")
	a.must(next, false, with(slow, label.Rate, "200"), "GET")
	a.must(next, true, with(slow, label.Rate, ""), "GET APPLY")
	all = append(all, "gdr.rate 200>")
	want(all...)
	// Somebody deletes the object.
	a.mu.Lock()
	a.object = nil
	a.mu.Unlock()
	a.must(next, true, with(slow, label.Rate, ""), "GET APPLY")
	want(all...)
	a.must(next, true, publish.Content{}, "GET APPLY")
	want(append(all, "gdr.gpus 1>", "gpudirect.rdma false>", "gpudirect.rdma.capable true>")...)

	for _, value := range []string{"[]", "", "x", strings.Repeat(" ", 1<<20)} {
		garble(value)
		third, _ := a.publisher(node)
		if last, err := third.Last(t.Context()); len(last.Labels) > 0 || err != nil {
			t.Error(last, err)
		}
		a.asked("GET")
		a.must(third, false, publish.Content{}, "GET")
		a.must(third, true, ready, "GET APPLY")
		want(begin...)
		a.must(third, true, publish.Content{}, "GET APPLY EVENT")
	}
}

// Twenty changes are kept, in at most 4 KiB.
func TestJournalBounds(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	longest := 0
	for i := range 15 {
		c := with(small(t, "ready"), label.Reason, fmt.Sprintf("%s%d", strings.Repeat("x", 60), i), label.MOFED, fmt.Sprintf("%s%d", strings.Repeat("y", 60), i))
		a.must(p, true, c, "GET APPLY")
		longest = max(longest, len(a.is().Annotations[journal.Annotation]))
		if n := len(a.journaled()); n != min(3+2*i, 20) && longest < 3800 {
			t.Fatalf("%d changes after %d writes", n, i+1)
		}
	}
	t.Logf("%d changes in %d bytes; at most %d", len(a.journaled()), len(a.is().Annotations[journal.Annotation]), longest)
	if longest > journal.MostBytes || len(p.journal) > journal.Most {
		t.Errorf("%d bytes, %d changes in memory", longest, len(p.journal))
	}
}

// Codes of findings are journaled as labels are. That an older version wrote none is no change.
func TestJournalCodes(t *testing.T) {
	of := func(codes ...string) *v1alpha1.NodeFeatureSpec {
		s, _ := spec(t, small(t, "ready"), nil)
		set := v1alpha1.NewInstanceFeatures()
		for i := 0; i < len(codes); i += 2 {
			set.Elements = append(set.Elements, *v1alpha1.NewInstanceFeature(map[string]string{"check": "c", "code": codes[i], "status": codes[i+1]}))
		}
		s.Features.Instances[findingFeature] = set
		return &s
	}
	without, _ := spec(t, small(t, "ready"), nil)
	delete(without.Features.Instances, findingFeature)
	for name, test := range map[string]struct {
		was, is *v1alpha1.NodeFeatureSpec
		want    string
	}{
		"none":             {of(), of(), ""},
		"new":              {of(), of("LinkDegraded", "WARN"), "LinkDegraded >WARN;"},
		"gone":             {of("LinkDegraded", "WARN"), of("", "OK"), "LinkDegraded WARN>;"},
		"worse":            {of("LinkDegraded", "WARN"), of("LinkDegraded", "FAIL"), "LinkDegraded WARN>FAIL;"},
		"one of two":       {of("A", "WARN", "B", "WARN"), of("B", "WARN"), "A WARN>;"},
		"an older version": {&without, of("LinkDegraded", "WARN"), ""},
		"not known now":    {of("LinkDegraded", "WARN"), &without, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Publisher{now: time.Now, published: label.Published(test.was.Labels), codes: codesOf(test.was)}
			got := ""
			for _, c := range p.since(test.is) {
				got += c.Name + " " + c.Old + ">" + c.New + ";"
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Where an older admission policy allows no journal, the labels are written without one. What the agent
// remembers is written as soon as it may.
func TestJournalRefused(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	a.must(p, true, small(t, "ready"), "GET APPLY")
	all := a.journaled()
	a.unannotated = true
	a.must(p, true, small(t, "ports-down"), "GET APPLY APPLY EVENT")
	a.must(p, false, small(t, "ports-down"), "GET")
	if _, ok := a.is().Annotations[journal.Annotation]; ok || known(a.is())[label.Ready] != "false" {
		t.Errorf("annotations %v, labels %v", a.is().Annotations, known(a.is()))
	}
	a.unannotated = false
	a.must(p, true, small(t, "ready"), "GET APPLY EVENT")
	if now := a.journaled(); len(now) < len(all)+4 || !slices.Equal(now[:3], all) {
		t.Errorf("journal %q, before %q", now, all)
	}
}
