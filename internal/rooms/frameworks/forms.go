package frameworks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/rooms/assign"
)

// Shell writes variables as commands for sh, with notes as comments. Values are quoted.
func Shell(s Settings) []byte {
	return lines(s, func(v Variable) string {
		return fmt.Sprintf("export %s='%s'", v.Name, strings.ReplaceAll(v.Value, "'", `'\''`))
	})
}

// DotEnv writes variables as `docker run --env-file` reads them: a value is all that
// follows the first "=", quotes included, and "#" begins a comment only at the beginning of
// a line (docker/cli pkg/kvfile).
func DotEnv(s Settings) []byte {
	return lines(s, func(v Variable) string { return v.Name + "=" + v.Value })
}

func lines(s Settings, line func(Variable) string) []byte {
	var b bytes.Buffer
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "# %s\n", note)
	}
	for _, v := range s.Variables {
		fmt.Fprintf(&b, "%s\n", line(v))
	}
	return b.Bytes()
}

// Document is the JSON of a map for some frameworks.
type Document struct {
	GPUs      []DocumentGPU                `json:"gpus"`
	Variables map[string]map[string]string `json:"variables"`
	Files     map[string]any               `json:"files"`
	Notes     []string                     `json:"notes"`
}

// DocumentGPU is one GPU of a Document. NIC, RDMA and Level are "" and Port is 0 without a
// usable NIC; Level is also "" where it is not known.
type DocumentGPU struct {
	GPU   string `json:"gpu"`
	NIC   string `json:"nic"`
	RDMA  string `json:"rdma"`
	Port  int    `json:"port"`
	Level string `json:"level"`
	// Near are the RDMA devices of all NICs near the GPU.
	Near []string `json:"near"`
}

// NewDocument describes a map, with what some frameworks are told.
func NewDocument(m *assign.Assignment, some []Framework) Document {
	d := Document{GPUs: []DocumentGPU{}, Variables: map[string]map[string]string{}, Files: map[string]any{}, Notes: append([]string{}, m.Notes()...)}
	for _, c := range m.Choices {
		gpu := DocumentGPU{GPU: c.GPU.Address.String(), Level: c.Level.String(), Near: namesOf(c.Near)}
		if c.NIC != nil {
			gpu.NIC, gpu.RDMA, gpu.Port = c.NIC.Address.String(), c.NIC.RDMA, c.NIC.Port
		}
		d.GPUs = append(d.GPUs, gpu)
	}
	for _, f := range some {
		s := f.Write(m)
		for _, note := range s.Notes {
			if !slices.Contains(d.Notes, note) { // of another framework too
				d.Notes = append(d.Notes, note)
			}
		}
		if s.File != nil {
			d.Files[f.Name] = s.File
		}
		if len(s.Variables) > 0 {
			d.Variables[f.Name] = s.values()
		}
	}
	return d
}

// Parse reads variables or a map in one of the forms that this package writes. A Document returns an
// Environment for each framework, since one at a time is to be told.
func Parse(data []byte) ([]Environment, error) {
	text := bytes.TrimSpace(data)
	if !bytes.HasPrefix(text, []byte("{")) {
		variables, err := parseLines(string(data))
		return []Environment{{Variables: variables}}, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if _, ok := object["variables"]; ok {
		return parseDocument(text)
	}
	framework := "sglang"
	for _, value := range object {
		if bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) {
			framework = "mooncake"
		}
	}
	return []Environment{{Files: map[string][]byte{framework: text}}}, nil
}

func parseDocument(text []byte) ([]Environment, error) {
	var d struct {
		Variables map[string]map[string]string `json:"variables"`
		Files     map[string]json.RawMessage   `json:"files"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	var all []Environment
	for _, f := range All {
		g := Environment{Variables: d.Variables[f.Name]}
		if file, ok := d.Files[f.Name]; ok {
			g.Files = map[string][]byte{f.Name: file}
		}
		if len(g.Variables)+len(g.Files) > 0 {
			all = append(all, g)
		}
	}
	return all, nil
}

// parseLines reads NAME=VALUE, after "export" or not, with quotes around the value or not. Beside such
// lines others do not matter: the output of env has them where a value has several lines.
func parseLines(text string) (map[string]string, error) {
	variables := map[string]string{}
	var other string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		switch {
		case line == "" || line[0] == '#':
		case !ok || name == "" || strings.ContainsAny(name, " \t'\""):
			other = line
		default:
			variables[name] = unquote(value)
		}
	}
	if len(variables) == 0 && other != "" {
		return nil, fmt.Errorf("no line NAME=VALUE; the last line is %.40q", other)
	}
	return variables, nil
}

// unquote takes the quotes off a value that is quoted as a whole.
func unquote(value string) string {
	if len(value) < 2 || value[0] != value[len(value)-1] {
		return value
	}
	switch inner := value[1 : len(value)-1]; value[0] {
	case '\'':
		return strings.ReplaceAll(inner, `'\''`, "'")
	case '"':
		return inner
	}
	return value
}
