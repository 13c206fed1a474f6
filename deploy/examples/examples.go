// Package examples holds the example files, so that programs can print them.
package examples

import (
	"embed"
	"slices"
)

//go:embed *.yaml
var files embed.FS

// Jobs are the examples that a cluster can fill in, by the name of their file without .yaml.
func Jobs() []string {
	return []string{"env-job", "mpijob", "mpijob-nvshmem", "nccl", "preflight", "sglang", "sglang-nodes", "vllm", "vllm-nodes"}
}

// short are other names of examples.
var short = map[string]string{"mpi": "mpijob", "nvshmem": "mpijob-nvshmem"}

// Names are what Job takes: the names of Jobs, and shorter ones.
func Names() []string {
	names := Jobs()
	for name, long := range short {
		i := slices.Index(names, long)
		names[i] = name
	}
	slices.Sort(names)
	return names
}

// Job is the file of a name of Names; ok is false for another name.
func Job(name string) (text string, ok bool) {
	if long := short[name]; long != "" {
		name = long
	}
	if !slices.Contains(Jobs(), name) {
		return "", false
	}
	data, err := files.ReadFile(name + ".yaml")
	return string(data), err == nil
}
