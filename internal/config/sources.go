package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// envPrefix begins the names of environment variables.
const envPrefix = "GDR_FEATURES_"

// Variable gives the environment variable of a flag: interval is
// GDR_FEATURES_INTERVAL.
func Variable(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
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

// FromFile sets the flags that neither command line nor environment has set.
// values are what the file says, by the names of flags; a list for a flag that
// takes one, or its text.
func FromFile(f *pflag.FlagSet, values map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		flag := f.Lookup(key)
		if flag == nil || !setting(flag) || key == "config" {
			return fmt.Errorf("%s: no such setting; they are named like the flags of run", key)
		}
		if flag.Changed {
			continue
		}
		text, err := scalar(flag.Value.Type(), values[key])
		if err == nil {
			err = f.Set(key, text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// setting leaves flags out that are none.
func setting(flag *pflag.Flag) bool { return flag.Name != "help" }

// scalar gives a value of a file as the text of a flag of a type. A number or a
// word that YAML takes for something else is no text: 1e3 would not be the name
// of node 1e3.
func scalar(kind string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		if kind == "bool" {
			return fmt.Sprint(v), nil
		}
	case float64, int64:
		if kind == "duration" {
			return fmt.Sprint(v), nil // which says that the unit is missing
		}
	case []any:
		if kind == "stringSlice" {
			return list(v)
		}
	}
	wanted := map[string]string{"bool": "true or false", "stringSlice": "a list of words", "duration": "a time such as 60s"}[kind]
	if wanted == "" {
		wanted = "a text; put it in quotes"
	}
	return "", fmt.Errorf("%v: must be %s", value, wanted)
}

// list gives a list as a flag takes it.
func list(items []any) (string, error) {
	var texts []string
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return "", fmt.Errorf("%v: must be a list of words", items)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}
