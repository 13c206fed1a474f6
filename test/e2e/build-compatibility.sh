#!/bin/sh
# Builds into .bin what TestCompatibility, TestOldestKubernetes and TestFirstKubernetes run: older versions of NFD
# and of kube-apiserver, each with the dependencies it was released with.
set -eu
cd "$(dirname "$0")"
export CGO_ENABLED=0
bin=$PWD/.bin
nfd=sigs.k8s.io/node-feature-discovery

downloaded() { # downloaded MODULE@VERSION FIELD prints a field of what go says about a module
	go mod download -json "$1" | sed -n "s/^\t\"$2\": \"\(.*\)\",\$/\1/p"
}

made() { # made DIRECTORY VERSION: whether it lies there already; if not, the directory is empty
	stamp="$(go version) $2"
	[ "$stamp" != "$(cat "$bin/$1/stamp" 2>/dev/null)" ] || return 0
	rm -rf "${bin:?}/$1"
	mkdir -p "$bin/$1/module"
	return 1
}

# NFD and Kubernetes replace modules, so "go install" refuses to build them. Modules in their
# own directories are modules of a version of their own.
own() { # own DIRECTORY MODULE VERSION EXPRESSION: makes a module with the replacements of another's, changed by sed
	{
		printf 'module own\n\ngo 1.26\n\nrequire %s %s\n\n' "$2" "$3"
		sed -n '/^replace (/,/^)/p' "$(downloaded "$2@$3" GoMod)" | sed "$4"
	} >"$bin/$1/module/go.mod"
}

build() { # build DIRECTORY NAME PACKAGE LDFLAGS
	echo "building $2 of $1 ..."
	go build -C "$bin/$1/module" -mod=mod -o "$bin/$1/$2" -ldflags "-s -w $4" "$3"
}

nfd() { # nfd DIRECTORY VERSION
	made "$1" "$2" && return
	own "$1" $nfd "$2" "s#=> \./api/nfd#=> $nfd/api/nfd $2#"
	for program in nfd-master nfd-worker nfd-gc; do
		build "$1" "$program" "$nfd/cmd/$program" "-X $nfd/source/local.featureFilesDir=features.d/"
	done
	"$bin/kustomize" build "$(downloaded "$nfd@$2" Dir)/deployment/overlays/default" >"$bin/$1/nfd.yaml"
	echo "$stamp" >"$bin/$1/stamp"
}

kubernetes() { # kubernetes DIRECTORY MINOR.PATCH
	made "$1" "$2" && return
	own "$1" k8s.io/kubernetes "v1.$2" "s#^\t\(k8s\.io/[a-z-]*\) => .*#\t\1 => \1 v0.$2#"
	build "$1" kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "-X k8s.io/component-base/version.gitVersion=v1.$2 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${2%.*}"
	echo "$stamp" >"$bin/$1/stamp"
}

nfd nfd-0.16 v0.16.6
kubernetes kubernetes-1.29 29.15
kubernetes kubernetes-1.30 30.14
