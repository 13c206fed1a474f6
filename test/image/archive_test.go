//go:build image

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// Media types of the OCI image specification.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor points at a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

type index struct {
	Manifests []descriptor `json:"manifests"`
}

type manifest struct {
	Config descriptor   `json:"config"`
	Layers []descriptor `json:"layers"`
}

// config is what an image says about itself, and how to run it.
type config struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      time.Time `json:"created"`
	Config       struct {
		User         string
		Entrypoint   []string
		Cmd          []string
		Env          []string
		WorkingDir   string
		Labels       map[string]string
		ExposedPorts map[string]any
		Volumes      map[string]any
	} `json:"config"`
}

// file is a file of a layer, or anything else that tar knows.
type file struct {
	tar.Header
	body []byte
}

// image is the image of one platform.
type image struct {
	descriptor
	config config
	files  []file
}

// archive holds the files of an OCI archive by name.
type archive map[string][]byte

// readArchive returns the name of the image in an OCI archive and the image of
// each platform.
func readArchive(name string) (string, []image, error) {
	in, err := os.Open(name)
	if err != nil {
		return "", nil, fmt.Errorf("%w (make image builds it)", err)
	}
	defer in.Close()
	files, err := readTar(in)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	a := archive{}
	for _, f := range files {
		a[path.Clean(f.Name)] = f.body
	}
	var top index
	if err := json.Unmarshal(a["index.json"], &top); err != nil {
		return "", nil, fmt.Errorf("%s: index.json: %w", name, err)
	}
	if len(top.Manifests) != 1 {
		return "", nil, fmt.Errorf("%s: %d entries in index.json, want 1", name, len(top.Manifests))
	}
	images, err := a.images(top.Manifests[0])
	return top.Manifests[0].Annotations["org.opencontainers.image.ref.name"], images, err
}

// images returns what a manifest list holds.
func (a archive) images(list descriptor) ([]image, error) {
	var platforms index
	if err := a.decode(list, indexType, &platforms); err != nil {
		return nil, err
	}
	var images []image
	for _, d := range platforms.Manifests {
		i := image{descriptor: d}
		var m manifest
		if err := a.decode(d, manifestType, &m); err != nil {
			return nil, err
		}
		if err := a.decode(m.Config, m.Config.MediaType, &i.config); err != nil {
			return nil, err
		}
		for _, l := range m.Layers {
			files, err := a.layer(l)
			if err != nil {
				return nil, fmt.Errorf("layer %s: %w", l.Digest, err)
			}
			i.files = append(i.files, files...)
		}
		images = append(images, i)
	}
	return images, nil
}

// blob returns what a descriptor points at, after checking its digest.
func (a archive) blob(d descriptor, mediaType string) ([]byte, error) {
	hash, ok := strings.CutPrefix(d.Digest, "sha256:")
	body := a["blobs/sha256/"+hash]
	switch {
	case d.MediaType != mediaType:
		return nil, fmt.Errorf("%s is %s, want %s", d.Digest, d.MediaType, mediaType)
	case !ok || fmt.Sprintf("%x", sha256.Sum256(body)) != hash || len(body) != d.Size:
		return nil, fmt.Errorf("%s is missing or damaged", d.Digest)
	}
	return body, nil
}

func (a archive) decode(d descriptor, mediaType string, into any) error {
	body, err := a.blob(d, mediaType)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", d.Digest, err)
	}
	return nil
}

func (a archive) layer(d descriptor) ([]file, error) {
	body, err := a.blob(d, layerType)
	if err != nil {
		return nil, err
	}
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return readTar(plain)
}

func readTar(in io.Reader) ([]file, error) {
	var files []file
	for t := tar.NewReader(in); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		files = append(files, file{*header, body})
	}
}
