// Command parse prints the labels that NFD reads from feature files, as JSON. It
// is linked with the directory they lie in; see TestFeatureFile.
package main

import (
	"encoding/json"
	"log"
	"os"

	"sigs.k8s.io/node-feature-discovery/source"
	"sigs.k8s.io/node-feature-discovery/source/local"
)

func main() {
	if err := source.GetFeatureSource(local.Name).Discover(); err != nil {
		log.Fatal(err)
	}
	labels, err := source.GetLabelSource(local.Name).GetLabels()
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(labels); err != nil {
		log.Fatal(err)
	}
}
