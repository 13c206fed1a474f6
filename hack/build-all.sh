#!/bin/sh
# Builds the programs for every platform they run on, into bin/OS-ARCH/. kubectl-gdr
# runs where kubectl runs: the packages of ours that it is made of are vetted for each
# platform, with their tests. The other programs read a Linux machine.
# usage: build-all.sh LDFLAGS
set -eu
ldflags=$1
export CGO_ENABLED=0

for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	GOOS=${platform%/*} GOARCH=${platform#*/}
	export GOOS GOARCH
	case $GOOS in
	linux) set -- ./cmd/gdr-features ./cmd/gdr-features-agent ./cmd/kubectl-gdr ;;
	*) set -- ./cmd/kubectl-gdr ;;
	esac
	to=bin/$GOOS-$GOARCH
	go build -trimpath -ldflags "$ldflags" -o "$to/" "$@"
	# shellcheck disable=SC2046 # one argument for each package
	go vet $(go list -deps -f '{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}' ./cmd/kubectl-gdr)
	echo "$to: $(ls "$to" | tr '\n' ' ')"
done
