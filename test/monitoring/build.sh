#!/bin/sh
# Builds promtool into .bin, with the dependencies it was released with and without
# the service discoveries, most of its size.
set -eu
cd "$(dirname "$0")"
dir=$(go list -m -f '{{.Dir}}' github.com/prometheus/prometheus)
[ -n "$dir" ] || {
	go mod download github.com/prometheus/prometheus
	dir=$(go list -m -f '{{.Dir}}' github.com/prometheus/prometheus)
}
# The module's go.work names directories that are no part of the module.
echo "building promtool ..."
GOWORK=off CGO_ENABLED=0 go build -C "$dir" -o "$PWD/.bin/promtool" -tags remove_all_sd -ldflags '-s -w' ./cmd/promtool
