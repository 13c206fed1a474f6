// Package e2e tests that what `gdr-features labels` prints gets onto a Node: by
// a feature file to an nfd-worker, by a NodeFeature to an nfd-master, in a real
// kube-apiserver on a real etcd; and what we ship to deploy it there. `make e2e`
// builds them all and runs it.
//
// Tests that wait more than they work run at the same time, after all others:
// some measure seconds, which a machine full of work does not have.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// shared is the cluster of all tests that stop nothing of it.
var shared cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests in a cluster. After a failure it keeps the logs.
func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "gdr-features-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.dir = dir
	fmt.Fprintln(os.Stderr, "starting etcd, kube-apiserver and NFD ...")
	if err := shared.start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	} else {
		code = m.Run()
	}
	fmt.Fprintln(os.Stderr, "stopping them ...")
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the logs are in", dir)
	} else if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// program gives the path of what build.sh has built.
func program(name string) string {
	path, err := filepath.Abs(filepath.Join(".bin", name))
	if err != nil {
		return name
	}
	return path
}
