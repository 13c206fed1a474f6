#!/bin/sh
# Builds into .bin what the end-to-end test runs: etcd, kube-apiserver and NFD
# where those that go.mod asks for do not lie there yet, and always the programs
# of this repository.
set -eu
cd "$(dirname "$0")"
export CGO_ENABLED=0

build() { # build NAME DIRECTORY PACKAGE [LDFLAGS]
	echo "building $1 ..."
	go build -C "$2" -o "$PWD/.bin/$1" -ldflags "-s -w ${4-}" "$3"
}

mkdir -p .bin
build gdr-features ../.. ./cmd/gdr-features
build mktree ../.. ./internal/machine/mktree

stamp=$(go version && sha256sum build.sh go.mod go.sum)
if [ "$stamp" = "$(cat .bin/stamp 2>/dev/null)" ]; then
	exit 0
fi
rm -f .bin/stamp
nfd=sigs.k8s.io/node-feature-discovery
build etcd . go.etcd.io/etcd/server/v3
build kube-apiserver . k8s.io/kubernetes/cmd/kube-apiserver
build nfd-master . $nfd/cmd/nfd-master
# The linker alone can set where a worker looks for feature files. A relative
# name gives each worker its own.
build nfd-worker . $nfd/cmd/nfd-worker "-X $nfd/source/local.featureFilesDir=features.d/"
install -m 0644 "$(go list -m -f '{{.Dir}}' $nfd)/deployment/base/nfd-crds/nfd-api-crds.yaml" .bin/crds.yaml
echo "$stamp" >.bin/stamp
