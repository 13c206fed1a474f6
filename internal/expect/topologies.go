package expect

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"gdr-features/internal/yamlfile"
	"gdr-features/verdict"
)

// Topologies says which NCCL topology file machines of each type have.
type Topologies struct {
	types File
	// Files are the names of the files, by the name of the type.
	Files map[string]string
}

// ParseTopologies reads a list of types, each with name, match and file. The error is a
// *yamlfile.Error.
func ParseTopologies(text []byte) (*Topologies, error) {
	t := &Topologies{Files: map[string]string{}}
	return t, t.types.parse(text, "name, match and file", t.read)
}

func (t *Topologies) read(to *Type, n *yaml.Node) error {
	var file string
	err := yamlfile.Mapping(n, yamlfile.Keys{
		{"name", one(&to.Name, typeName)}, {"match", to.Match.read}, {"file", one(&file, beside)},
	}, "name", "match", "file")
	if err == nil && len(to.Match.Topology) > 0 {
		err = yamlfile.At(n, errors.New("topology cannot be matched: it depends on the file"))
	}
	t.Files[to.Name] = file
	return err
}

// beside accepts the name of a file in the same directory.
func beside(text string) (string, error) {
	if text != filepath.Base(text) || strings.HasPrefix(text, ".") {
		return "", fmt.Errorf("%q: must be the name of a file beside this one", text)
	}
	return text, nil
}

// Of returns the type of a machine, "" if it is none of them. It needs the PCI bus and DMI. The
// error says that what could be read does not tell.
func (t *Topologies) Of(node *verdict.Node) (name string, err error) {
	switch found, known := t.types.find(&facts{node}); {
	case !known:
		return "", errors.New("the topology file is not known: the type of the machine cannot be read")
	case found != nil:
		return found.Name, nil
	}
	return "", nil
}
