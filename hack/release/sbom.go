package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"gdr-features/hack/release/licenses"
)

// boms writes a bill of materials (SBOM) for each archive of programs, in CycloneDX's
// JSON, and one for the image. What the packages hold is in those of the archives.
func (r *release) boms() error {
	for _, b := range bundles {
		whole := cdx.Component{Type: cdx.ComponentTypeApplication, Name: b.file(r.version), Version: r.version}
		if err := r.describe(whole, b.name(r.version), []bundle{b}); err != nil {
			return err
		}
	}
	digest, err := r.imageDigest()
	if err != nil {
		return err
	}
	whole := cdx.Component{
		Type: cdx.ComponentTypeContainer, Name: r.image, Version: r.version,
		PackageURL: "pkg:oci/gdr-features@" + strings.Replace(digest, ":", "%3A", 1) + "?repository_url=" + r.image + "&tag=" + r.version,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: strings.TrimPrefix(digest, "sha256:")}},
	}
	return r.describe(whole, strings.TrimSuffix(r.ociName(), ".tar"), []bundle{
		{"gdr-features", "linux", "amd64", imagePrograms},
		{"gdr-features", "linux", "arm64", imagePrograms},
	})
}

// imageDigest returns the digest of the image's index, which names both platforms.
func (r *release) imageDigest() (string, error) {
	text, err := output("tar", "-xOf", filepath.Join(r.out, r.ociName()), "./index.json")
	if err != nil {
		return "", err
	}
	var index struct {
		Manifests []struct{ Digest string }
	}
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		return "", fmt.Errorf("index.json of the image: %w", err)
	}
	if len(index.Manifests) != 1 {
		return "", fmt.Errorf("index.json of the image has %d entries, not 1", len(index.Manifests))
	}
	return index.Manifests[0].Digest, nil
}

// describe writes a bill of materials: the whole, the programs in it, and the modules in
// each program.
func (r *release) describe(whole cdx.Component, name string, parts []bundle) error {
	whole.BOMRef = "whole"
	whole.Licenses = spdx("Apache-2.0")
	modules := map[string]cdx.Component{}
	top := cdx.Dependency{Ref: whole.BOMRef, Dependencies: &[]string{}}
	var components []cdx.Component
	var dependencies []cdx.Dependency
	for _, b := range parts {
		linked, err := r.linked(b)
		if err != nil {
			return err
		}
		for _, program := range b.programs {
			component, dependency, err := r.program(b, program, linked, modules)
			if err != nil {
				return err
			}
			components, dependencies = append(components, component), append(dependencies, dependency)
			*top.Dependencies = append(*top.Dependencies, component.BOMRef)
		}
	}
	for _, m := range modules {
		components = append(components, m)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	slices.SortFunc(dependencies, func(a, b cdx.Dependency) int { return cmp.Compare(a.Ref, b.Ref) })
	dependencies = slices.Insert(dependencies, 0, top)

	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.at.Format(time.RFC3339), Component: &whole}
	bom.Components, bom.Dependencies = &components, &dependencies
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return err
	}
	return r.write(name+".cdx.json", text.Bytes())
}

// program returns a program of a platform as a component, and what it depends on: the
// modules in its build information, which it adds to modules by reference. Every one of
// them must have a license.
func (r *release) program(b bundle, name string, linked []licenses.Module, modules map[string]cdx.Component) (c cdx.Component, d cdx.Dependency, err error) {
	file := filepath.Join(r.built(b.platform()), b.executable(name))
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return c, d, err
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return c, d, err
	}
	sum := sha256.Sum256(body)
	c = cdx.Component{
		BOMRef: b.platform() + "/" + name, Type: cdx.ComponentTypeApplication, Name: b.executable(name), Version: r.version,
		Description: b.os + "/" + b.arch, Licenses: spdx("Apache-2.0"),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	d = cdx.Dependency{Ref: c.BOMRef, Dependencies: &[]string{}}
	found := []licenses.Module{{Path: "std", Version: info.GoVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		found = append(found, licenses.Module{Path: m.Path, Version: m.Version})
	}
	for _, m := range found {
		i := slices.IndexFunc(linked, func(l licenses.Module) bool { return l.Path == m.Path && l.Version == m.Version })
		if i < 0 {
			return c, d, fmt.Errorf("%s contains %s %s, whose license was not looked for", file, m.Path, m.Version)
		}
		component := library(linked[i])
		modules[component.BOMRef] = component
		*d.Dependencies = append(*d.Dependencies, component.BOMRef)
	}
	slices.Sort(*d.Dependencies)
	return c, d, nil
}

// library returns a module as a component. Go's standard library has the name under which
// scanners look for it.
func library(m licenses.Module) cdx.Component {
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Licenses: spdx(m.SPDX...)}
	if m.Path == "std" {
		c.Name, c.Version = "stdlib", strings.TrimPrefix(m.Version, "go")
		c.CPE = "cpe:2.3:a:golang:go:" + c.Version + ":*:*:*:*:*:*:*"
	}
	c.PackageURL = "pkg:golang/" + c.Name + "@" + strings.ReplaceAll(c.Version, "+", "%2B")
	c.BOMRef = c.PackageURL
	return c
}

// spdx returns licenses by their SPDX identifiers: all of them apply.
func spdx(ids ...string) *cdx.Licenses {
	var all cdx.Licenses
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}
