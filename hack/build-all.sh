#!/bin/sh
# Builds the programs for every platform they run on, into DIRECTORY/OS-ARCH/ (bin). kubectl-gdr
# runs wherever kubectl runs: the packages it consists of, and their tests, are vetted
# for each platform. The script for shell completion is put beside it. The other programs
# run on Linux only.
# usage: build-all.sh LDFLAGS [DIRECTORY]
set -eu
ldflags=$1 directory=${2:-bin}
export CGO_ENABLED=0

for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	GOOS=${platform%/*} GOARCH=${platform#*/}
	export GOOS GOARCH
	complete=hack/kubectl_complete-gdr
	set -- ./cmd/kubectl-gdr
	case $GOOS in
	linux) set -- "$@" ./cmd/gdr-features ./cmd/gdr-features-agent ;;
	windows) complete=$complete.cmd ;;
	esac
	to=$directory/$GOOS-$GOARCH
	echo "building for $platform ..."
	go build -trimpath -ldflags "$ldflags" -o "$to/" "$@"
	cp "$complete" "$to/"
	# shellcheck disable=SC2046 # one argument for each package
	go vet $(go list -deps -f '{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}' ./cmd/kubectl-gdr)
	echo "$to: $(ls "$to" | tr '\n' ' ')"
done
