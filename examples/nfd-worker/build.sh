#!/bin/sh
# Builds the worker as NFD's Makefile builds its own: with NFD's version, and with
# the node's /sys at /host-sys, where NFD's manifests mount it.
# usage: build.sh PROGRAM [HOST_PREFIX]
set -eu
out=$1 prefix=${2-/host-}
nfd=sigs.k8s.io/node-feature-discovery
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$(dirname "$0")"
version=$(go list -m -f '{{.Version}}' $nfd)
go build -trimpath -tags osusergo,netgo \
	-ldflags "-s -w -extldflags=-static -X $nfd/pkg/version.version=$version -X $nfd/pkg/utils/hostpath.pathPrefix=$prefix" -o "$out" .
