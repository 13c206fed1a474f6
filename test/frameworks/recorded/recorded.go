// Package recorded reads the answers of frameworks in testdata/frameworks.
package recorded

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Answer is what a framework made of the map of one machine.
type Answer struct {
	// Map is the hash of that map.
	Map   string
	Lines string
}

// Hash is that of the map in a document that `env -o json` prints: which NICs each GPU should
// use, whatever the form in which a framework is told.
func Hash(document []byte) (string, error) {
	var d struct {
		GPUs json.RawMessage `json:"gpus"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return "", err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, d.GPUs); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(compact.Bytes()))[:12], nil
}

// Heading is the first line of the answer about a machine.
func Heading(machine, hash string) string { return "machine " + machine + " map=" + hash + "\n" }

// Read reads the answers of a file by machine.
func Read(file string) (map[string]Answer, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, err
	}
	of, name := map[string]Answer{}, ""
	for line := range strings.Lines(string(text)) {
		if next, ok := strings.CutPrefix(line, "machine "); ok {
			var hash string
			if name, hash, ok = strings.Cut(strings.TrimSpace(next), " map="); !ok {
				return nil, fmt.Errorf("%s: no hash in the line %q", file, line)
			}
			of[name] = Answer{Map: hash}
			continue
		}
		a := of[name]
		a.Lines += line
		of[name] = a
	}
	return of, nil
}
