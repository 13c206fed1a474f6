package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/krew/pkg/constants"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

// krew writes the manifest of the kubectl plugin for an index of krew.
func (r *release) krew() error {
	plugin := index.Plugin{
		TypeMeta:   metav1.TypeMeta{APIVersion: constants.CurrentAPIVersion, Kind: constants.PluginKind},
		ObjectMeta: metav1.ObjectMeta{Name: "gdr"},
		Spec: index.PluginSpec{
			Version: r.version, Homepage: r.url,
			ShortDescription: "Show which nodes can do GPUDirect RDMA",
			Description: "Prints one line for each node with a GPU: whether GPUDirect RDMA works on it, why it does not,\n" +
				"how close its GPUs and NICs are, and how many nodes have which problem.\n",
			Caveats: "The DaemonSet of gdr-features must run in the cluster, and you need the right to list\n" +
				"NodeFeatures (nfd.k8s-sigs.io) in its namespace.\n",
		},
	}
	for _, b := range bundles {
		if b.product != "kubectl-gdr" {
			continue
		}
		sum, err := r.sum(b.file(r.version))
		if err != nil {
			return err
		}
		directory := b.name(r.version) + "/"
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, index.Platform{
			URI:      r.url + "/releases/download/" + r.version + "/" + b.file(r.version),
			Sha256:   sum,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": b.os, "arch": b.arch}},
			Bin:      b.executable("kubectl-gdr"),
			Files: []index.FileOperation{
				{From: directory + b.executable("kubectl-gdr"), To: "."},
				{From: directory + "LICENSE", To: "."},
				{From: directory + thirdParty, To: "."},
			},
		})
	}
	text, err := yaml.Marshal(plugin)
	if err != nil {
		return err
	}
	return r.write("gdr.yaml", text)
}

// sum returns the SHA-256 of an artifact in hexadecimal.
func (r *release) sum(name string) (string, error) {
	body, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:]), nil
}

// sums writes SHA256SUMS, for sha256sum --check.
func (r *release) sums() error {
	files, err := os.ReadDir(r.out) // sorted by name
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range files {
		sum, err := r.sum(f.Name())
		if err != nil {
			return err
		}
		text.WriteString(sum + "  " + f.Name() + "\n")
	}
	return r.write("SHA256SUMS", []byte(text.String()))
}
