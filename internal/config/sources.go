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
		text, err := scalar(values[key])
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

// scalar gives a value as the text of a flag.
func scalar(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool, float64, int64:
		return fmt.Sprint(v), nil
	case []any:
		var texts []string
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return "", fmt.Errorf("%v: must be a list of words", v)
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, ","), nil
	}
	return "", fmt.Errorf("%v: must be a text, a number, true, false or a list", value)
}
