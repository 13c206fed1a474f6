package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// repository matches the line of values.yaml that names the image.
var repository = regexp.MustCompile(`(?m)^  repository: .*$`)

// chart writes the Helm chart, with version and image of this release. `helm package`
// does the same but writes the time of the day into the archive.
func (r *release) chart() error {
	c, err := loader.LoadDir("deploy/helm/gdr-features")
	if err != nil {
		return err
	}
	c.Metadata.Version, c.Metadata.AppVersion = r.number(), r.version
	c.Metadata.Home, c.Metadata.Sources = r.url, []string{r.url}
	c.Metadata.Annotations["artifacthub.io/images"] = fmt.Sprintf("- name: gdr-features\n  image: %s:%s\n", r.image, r.version)
	metadata, err := yaml.Marshal(c.Metadata)
	if err != nil {
		return err
	}
	var entries []entry
	for _, f := range c.Raw {
		switch f.Name {
		case "Chart.yaml":
			f.Data = metadata
		case "values.yaml":
			if len(repository.FindAll(f.Data, -1)) != 1 {
				return errors.New("values.yaml: want one line that names the image's repository")
			}
			f.Data = repository.ReplaceAllLiteral(f.Data, []byte("  repository: "+r.image))
		case "README.md":
			f.Data = r.relink(chartPages, "deploy/helm/gdr-features/README.md", f.Data)
		}
		entries = append(entries, entry{name: c.Name() + "/" + f.Name, mode: 0o644, body: f.Data})
	}
	body, err := tarGzip(entries, r.at)
	if err != nil {
		return err
	}
	packed, err := loader.LoadArchive(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := r.checkChart(packed); err != nil {
		return err
	}
	return r.write(fmt.Sprintf("%s-%s.tgz", c.Name(), r.number()), body)
}

// checkChart returns an error if a chart is not valid or does not name our image.
func (r *release) checkChart(c *chart.Chart) error {
	image, _ := c.Values["image"].(map[string]any)
	if image["repository"] != r.image {
		return fmt.Errorf("the chart's image is %v, not %s", image["repository"], r.image)
	}
	return c.Validate()
}
