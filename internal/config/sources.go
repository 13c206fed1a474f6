package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"gdr-features/internal/yamlfile"
)

// Variable returns the environment variable of a flag: interval is
// GDR_FEATURES_INTERVAL.
func Variable(flag string) string {
	return "GDR_FEATURES_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FromEnvironment sets the flags that the command line has not set and that have
// a variable.
func FromEnvironment(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var first error
	f.VisitAll(func(flag *pflag.Flag) {
		value, ok := lookup(Variable(flag.Name))
		if !ok || flag.Changed || first != nil || !setting(flag) {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			first = fmt.Errorf("%s=%s: %w", Variable(flag.Name), value, err)
		}
	})
	return first
}

// FromFile sets the flags that neither command line nor environment has set. The keys
// of the file are the names of flags. The value of a list may also be one text, as
// on the command line. The error is a *yamlfile.Error.
func FromFile(f *pflag.FlagSet, text []byte) error { return yamlfile.Decode(text, &file{f}) }

// file reads a file into flags.
type file struct{ flags *pflag.FlagSet }

// UnmarshalYAML implements yaml.Unmarshaler.
func (f *file) UnmarshalYAML(n *yaml.Node) error {
	var known []string
	f.flags.VisitAll(func(flag *pflag.Flag) {
		if setting(flag) && flag.Name != "config" {
			known = append(known, flag.Name)
		}
	})
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("must be a mapping (key: value) with these keys: %s", strings.Join(known, ", "))
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, n := n.Content[i], n.Content[i+1]
		if !slices.Contains(known, key.Value) {
			return yamlfile.At(key, fmt.Errorf("unknown key %s; known keys: %s", key.Value, strings.Join(known, ", ")))
		}
		flag := f.flags.Lookup(key.Value)
		text, err := value(flag.Value.Type(), n)
		if err == nil && !flag.Changed {
			err = f.flags.Set(flag.Name, text)
		}
		if err != nil {
			return yamlfile.At(n, err)
		}
	}
	return nil
}

// setting leaves out the flags that are not settings.
func setting(flag *pflag.Flag) bool { return flag.Name != "help" }

// value returns a value of the file as the text of a flag of a type. What YAML reads as
// a number or a boolean is no name: 1e3 could mean a node 1e3 or a node 1000.
func value(kind string, n *yaml.Node) (string, error) {
	switch kind {
	case "stringSlice":
		words := []string{n.Value}
		if n.Kind != yaml.ScalarNode {
			if err := yamlfile.Into(n, &words); err != nil {
				return "", err
			}
		}
		if len(words) == 0 {
			return "", errors.New("the list is empty")
		}
		return strings.Join(words, ","), nil
	case "bool":
		var is bool
		if n.Decode(&is) != nil {
			return "", errors.New("must be true or false")
		}
		return strconv.FormatBool(is), nil
	case "duration":
		if n.Kind != yaml.ScalarNode {
			return "", errors.New("must be a time such as 60s")
		}
	default:
		if n.ShortTag() != "!!str" {
			return "", errors.New("must be a text; put it in quotes")
		}
	}
	return n.Value, nil
}
