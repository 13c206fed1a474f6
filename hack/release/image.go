package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// ociName is the name of the image's archive.
func (r *release) ociName() string { return "gdr-features-" + r.version + "-image.tar" }

// ociArchive builds the image.
func (r *release) ociArchive() error {
	for name, value := range map[string]string{"REVISION": r.revision, "SOURCE": r.url} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	archive := filepath.Join(r.out, r.ociName())
	if err := show("hack/image.sh", archive, r.version, r.ldflags()); err != nil {
		return err
	}
	fmt.Println(archive)
	return nil
}

// installYAML writes the default variant as one file for kubectl apply, with the image of
// this version.
func (r *release) installYAML() error {
	rendered, err := r.render("deploy/kustomize/base")
	if err != nil {
		return err
	}
	return r.write("install.yaml", rendered)
}

// render returns the objects of a kustomization with the image of this version.
func (r *release) render(kustomization string) ([]byte, error) {
	target, err := filepath.Abs(kustomization)
	if err != nil {
		return nil, err
	}
	overlay, err := os.MkdirTemp(r.stage, "overlay-")
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(overlay, target) // kustomize takes no absolute names
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{relative},
		Images:    []types.Image{{Name: "gdr-features", NewName: r.image, NewTag: r.version}},
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, err
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}

// imageList writes the images that a site without access to the Internet must copy, one
// in a line.
func (r *release) imageList() error {
	text, err := os.ReadFile(filepath.Join(r.out, "install.yaml"))
	if err != nil {
		return err
	}
	var images []string
	for line := range strings.Lines(string(text)) {
		if image, ok := strings.CutPrefix(strings.TrimLeft(line, " -"), "image: "); ok {
			images = append(images, image)
		}
	}
	slices.Sort(images)
	return r.write("images.txt", []byte(strings.Join(slices.Compact(images), "")))
}
