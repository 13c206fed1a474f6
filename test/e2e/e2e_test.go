// Package e2e tests that what `gdr-features labels` prints becomes labels of a Node: by a
// feature file and nfd-worker, and by a NodeFeature and nfd-master, with a real
// kube-apiserver and etcd; and it tests our manifests. `make e2e` builds all of these and
// runs the tests.
//
// Tests that mostly wait run at the same time, after all others: some measure times, which
// a busy machine would spoil.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// shared is the cluster of all tests that stop no part of it.
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

// program returns the path of a program that build.sh has built.
func program(name string) string {
	path, err := filepath.Abs(filepath.Join(".bin", name))
	if err != nil {
		return name
	}
	return path
}
