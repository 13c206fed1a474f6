package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// provenance returns what was built from which commit, how and with what, in one signed line:
// a SLSA provenance in an in-toto statement in a DSSE envelope. docs/release.md describes its
// fields.
func (r *release) provenance() ([]byte, error) {
	subjects, err := r.subjects()
	if err != nil {
		return nil, err
	}
	predicate, err := r.predicate()
	if err != nil {
		return nil, err
	}
	statement := &intoto.Statement{
		Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1", Subject: subjects, Predicate: predicate,
	}
	if err := statement.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return nil, err
	}
	var payload, line bytes.Buffer
	if err := json.Compact(&payload, text); err != nil { // protojson varies its blanks
		return nil, err
	}
	envelopes, err := dsse.NewEnvelopeSigner(r.signer)
	if err != nil {
		return nil, err
	}
	envelope, err := envelopes.SignPayload(context.Background(), "application/vnd.in-toto+json", payload.Bytes())
	if err != nil {
		return nil, err
	}
	err = json.NewEncoder(&line).Encode(envelope)
	return line.Bytes(), err
}

// subjects are the files of the release so far, and the image as a registry has it.
func (r *release) subjects() ([]*intoto.ResourceDescriptor, error) {
	files, err := os.ReadDir(r.out) // sorted by name
	if err != nil {
		return nil, err
	}
	var all []*intoto.ResourceDescriptor
	add := func(name, sum string) {
		all = append(all, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	for _, f := range files {
		sum, err := r.sum(f.Name())
		if err != nil {
			return nil, err
		}
		add(f.Name(), sum)
	}
	digest, err := r.imageDigest()
	add(r.image, strings.TrimPrefix(digest, "sha256:"))
	return all, err
}

// predicate says how the release was built.
func (r *release) predicate() (*structpb.Struct, error) {
	parameters, err := structpb.NewStruct(map[string]any{"VERSION": r.version, "IMAGE": r.image, "URL": r.url})
	if err != nil {
		return nil, err
	}
	tools := map[string]string{}
	for name, command := range map[string][]string{"go": {"go", "env", "GOVERSION"}, "buildah": {"buildah", "--version"}} {
		if tools[name], err = output(command[0], command[1:]...); err != nil {
			return nil, err
		}
	}
	page := r.url + "/blob/HEAD/docs/release.md"
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: page + "#build-type-v1", ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{Uri: "git+" + r.url, Digest: map[string]string{"gitCommit": r.revision}}},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: page + "#builder-v1", Version: tools}},
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(p)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	return predicate, protojson.Unmarshal(text, predicate)
}
