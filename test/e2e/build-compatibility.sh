#!/bin/sh
# Builds into .bin what TestCompatibility runs: older versions of NFD, each with the
# dependencies it was released with.
set -eu
cd "$(dirname "$0")"
export CGO_ENABLED=0
bin=$PWD/.bin
nfd=sigs.k8s.io/node-feature-discovery

downloaded() { # downloaded VERSION FIELD prints a field of what go says about NFD's module
	go mod download -json "$nfd@$1" | sed -n "s/^\t\"$2\": \"\(.*\)\",\$/\1/p"
}

version() { # version DIRECTORY VERSION
	stamp="$(go version) $2"
	[ "$stamp" != "$(cat "$bin/$1/stamp" 2>/dev/null)" ] || return 0
	rm -rf "${bin:?}/$1"
	mkdir -p "$bin/$1/module"
	mod=$(downloaded "$2" GoMod)
	dir=$(downloaded "$2" Dir)
	# NFD replaces modules, so "go install" refuses to build it. Its own directory api/nfd,
	# which is not part of the module, is a module of the same version.
	{
		printf 'module nfd\n\ngo 1.26\n\nrequire %s %s\n\n' "$nfd" "$2"
		sed -n '/^replace (/,/^)/p' "$mod" | sed "s#=> \./api/nfd#=> $nfd/api/nfd $2#"
	} >"$bin/$1/module/go.mod"
	for program in nfd-master nfd-worker nfd-gc; do
		echo "building $program $2 ..."
		go build -C "$bin/$1/module" -mod=mod -o "$bin/$1/$program" -ldflags "-s -w -X $nfd/source/local.featureFilesDir=features.d/" "$nfd/cmd/$program"
	done
	"$bin/kustomize" build "$dir/deployment/overlays/default" >"$bin/$1/nfd.yaml"
	echo "$stamp" >"$bin/$1/stamp"
}

version nfd-0.16 v0.16.6
