package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/config"
)

// settings are all that the agent has.
type settings struct {
	machineflags.Flags
	config.Agent
}

// flags defines every flag of run, with an environment for the defaults.
func flags(env map[string]string) (*settings, *pflag.FlagSet) {
	var s settings
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Flags.Define(f)
	s.Agent.Define(f, func(name string) string { return env[name] })
	return &s, f
}

// load takes settings from a command line, an environment and a file, as the
// agent does.
func load(args []string, env map[string]string, file string) (*settings, *pflag.FlagSet, error) {
	s, f := flags(env)
	if err := f.Parse(args); err != nil {
		return nil, nil, err
	}
	lookup := func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	if err := config.FromEnvironment(f, lookup); err != nil {
		return nil, nil, err
	}
	return s, f, config.FromFile(f, []byte(file))
}

func TestDefaults(t *testing.T) {
	_, f := flags(nil)
	for name, want := range map[string]string{
		"publish": "[nodefeature]", "interval": "1m0s", "settle": "10s", "once": "false", "cleanup": "false", "node-name": "", "namespace": "",
		"features-dir": "/etc/kubernetes/node-feature-discovery/features.d", "kubeconfig": "", "config": "", "listen": ":9400",
	} {
		if got := f.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	s, _, err := load(nil, map[string]string{"NODE_NAME": "n1", "POD_NAMESPACE": "ns"}, "")
	if err != nil || s.NodeName != "n1" || s.Namespace != "ns" {
		t.Errorf("downward API: node %q, namespace %q, error %v", s.NodeName, s.Namespace, err)
	}
	s, _, err = load(nil, map[string]string{"NODE_NAME": "n1", "GDR_FEATURES_NODE_NAME": "n2"}, "")
	if err != nil || s.NodeName != "n2" {
		t.Errorf("node %q, error %v", s.NodeName, err)
	}
}

// value is another value of a flag than its default.
func value(f *pflag.Flag, n int) string {
	of := map[string][]string{
		"bool": {"true", "true", "true"}, "duration": {"1s", "2s", "3s"},
		"stringSlice": {"file", "nodefeature", "file,nodefeature"}, "string": {"a", "b", "c"},
	}[f.Value.Type()]
	return of[n]
}

// Every flag can be set in all three ways; the command line comes before the
// environment, and that before the file.
func TestEveryFlag(t *testing.T) {
	_, all := flags(nil)
	seen := 0
	all.VisitAll(func(flag *pflag.Flag) {
		seen++
		line, env, file := value(flag, 0), value(flag, 1), value(flag, 2)
		args := []string{"--" + flag.Name + "=" + line}
		variable := "GDR_FEATURES_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		environment := map[string]string{variable: env}
		text := flag.Name + ": " + file
		if flag.Name == "config" {
			text = "" // a file does not name another one
		}
		for i, test := range []struct {
			args []string
			env  map[string]string
			file string
			want string
		}{
			{args, environment, text, line}, {args, nil, text, line}, {nil, environment, text, env}, {nil, nil, text, file}, {nil, nil, "", flag.DefValue},
		} {
			if flag.Name == "config" && i == 3 {
				continue
			}
			_, f, err := load(test.args, test.env, test.file)
			if err != nil {
				t.Errorf("--%s: %v", flag.Name, err)
				continue
			}
			got := strings.Trim(f.Lookup(flag.Name).Value.String(), "[]")
			if got != strings.Trim(test.want, "[]") {
				t.Errorf("--%s, case %d: %q, want %q", flag.Name, i, got, test.want)
			}
			if changed := f.Changed(flag.Name); changed != (i < 4) {
				t.Errorf("--%s, case %d: changed %v", flag.Name, i, changed)
			}
		}
	})
	if seen < 15 {
		t.Errorf("%d flags", seen)
	}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		name string
		args []string
		env  map[string]string
		file string
		want string // of the error
	}{
		{name: "variable that is no time", env: map[string]string{"GDR_FEATURES_INTERVAL": "soon"}, want: `GDR_FEATURES_INTERVAL=soon: `},
		{name: "empty variable", env: map[string]string{"GDR_FEATURES_SETTLE": ""}, want: `GDR_FEATURES_SETTLE=: `},
		{name: "variable that is neither true nor false", env: map[string]string{"GDR_FEATURES_ONCE": "maybe"}, want: "GDR_FEATURES_ONCE=maybe: "},
		{name: "unknown key", file: "# c\nintervall: 1s", want: "2:1: unknown key intervall; known keys: cleanup, expect, features-dir"},
		{name: "key with underscore", file: "node_name: x", want: "1:1: unknown key node_name; known keys: cleanup, expect, features-dir"},
		{name: "help", file: "help: true", want: "1:1: unknown key help; known keys: cleanup, expect, features-dir, int"},
		{name: "another file", file: "config: x", want: "1:1: unknown key config; known keys: cleanup, expect, features-dir, i"},
		{name: "number for a time", file: "interval: 60.0", want: "1:11: interval: .*missing unit"},
		{name: "word for a time", file: "interval: soon", want: "1:11: interval: .*invalid duration"},
		{name: "list for a time", file: "interval: [1s]", want: "1:11: interval: must be a time such as 60s"},
		{name: "number for a name", file: "node-name: 1234567890", want: "1:12: node-name: must be a text; put it in quotes"},
		{name: "boolean for a name", file: "node-name: true", want: "1:12: node-name: must be a text; put it in quotes"},
		{name: "list for a name", file: "node-name: [a]", want: "1:12: node-name: must be a text; put it in quotes"},
		{name: "number for a boolean", file: "once: 1", want: "1:7: once: must be true or false"},
		{name: "word for a boolean", file: "once: maybe", want: "1:7: once: must be true or false"},
		{name: "mapping for words", file: "publish: {a: b}", want: "1:10: publish: must be a list"},
		{name: "no words", file: "publish: []", want: "1:10: publish: the list is empty"},
		{name: "nothing", file: "interval:", want: "1:10: interval: has no value"},
		{name: "mapping for a time", file: "settle: {a: b}", want: "1:9: settle: must be a time such as 60s"},
		{name: "list", file: "- settle", want: "1:1: must be a mapping (key: value) with these keys: cleanup, expect,"},
		{name: "twice", file: "settle: 1s\nsettle: 2s", want: "2:1: the key settle is already given in line 1"},
		{name: "unknown though the command line has all", args: []string{"--interval=1s"}, file: "interval: 2s\nx: y", want: "2:1: unknown key x; known keys: cleanup, expect, features-dir, interv"},
		{name: "wrong though the command line has it", args: []string{"--interval=1s"}, file: "interval: []", want: "1:11: interval: must be a time such as 60s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := load(test.args, test.env, test.file)
			begin, rest, _ := strings.Cut(test.want, ".*")
			if err == nil || !strings.HasPrefix(err.Error(), begin) || !strings.Contains(err.Error(), rest) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func TestLists(t *testing.T) {
	for _, publish := range []string{"[file, nodefeature]", "\n- file\n- nodefeature", "file,nodefeature"} {
		s, _, err := load(nil, nil, "publish: "+publish)
		if err != nil || !slices.Equal(s.Publish, []string{"file", "nodefeature"}) {
			t.Errorf("%s: %v, error %v", publish, s.Publish, err)
		}
	}
	s, _, err := load([]string{"--publish=file", "--publish", "nodefeature"}, nil, "")
	if err != nil || !slices.Equal(s.Publish, []string{config.File, config.NodeFeature}) {
		t.Errorf("given twice: %v, error %v", s.Publish, err)
	}
}

func TestValidate(t *testing.T) {
	for line, want := range map[string]string{
		"":                                 "",
		"--interval 100ms":                 "",
		"--interval 30m --settle 0s":       "",
		"--publish file,nodefeature":       "",
		"--once":                           "",
		"--cleanup":                        "",
		"--features-dir=":                  "", // not used
		"--publish=":                       "--publish is empty; give nodefeature, file or both",
		"--publish files":                  "--publish files: must be of nodefeature, file",
		"--publish file --publish file":    "--publish names file twice",
		"--interval 99ms":                  "--interval 99ms: must be from 100ms to 30m0s",
		"--interval 31m":                   "--interval 31m0s: must be from 100ms to 30m0s",
		"--settle -1s":                     "--settle -1s: must not be negative",
		"--once --cleanup":                 "--once and --cleanup exclude each other",
		"--publish file --features-dir=":   "--features-dir is empty",
		"--publish nodefeature,file,stdio": "--publish stdio: must be of nodefeature, file",
	} {
		s, _, err := load(strings.Fields(line), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
