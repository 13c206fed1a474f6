#!/bin/sh
# Builds into .bin what the test in the virtual machine needs: the programs of
# this repository, the machine's first process, Debian's kernel with its modules and
# headers, of which nothing is installed, and the modules that stand in for drivers.
# The kernel is fetched once; remove .bin/kernel to have the newest one.
set -eu
cd "$(dirname "$0")"
export CGO_ENABLED=0

missing() {
	echo "build.sh: $1 is missing; on Debian: apt-get install --no-install-recommends $2" >&2
	exit 1
}
command -v qemu-system-x86_64 >/dev/null || missing qemu-system-x86_64 qemu-system-x86
command -v dpkg-deb >/dev/null || missing dpkg-deb dpkg
command -v apt-get >/dev/null || missing apt-get apt
command -v gcc >/dev/null || missing gcc gcc
command -v make >/dev/null || missing make make

depends() {
	apt-cache depends --important "$1" 2>/dev/null | sed -n "s/^ *Depends: *\($2.*\)/\1/p"
}

fetch() {
	image=$(depends linux-image-amd64 linux-image | head -n 1)
	headers=linux-headers-${image#linux-image-}
	# shellcheck disable=SC2046 # names of packages
	set -- "$image" "$headers" $(depends "$headers" linux-headers) $(depends "$headers" linux-kbuild)
	tmp=$(mktemp -d .bin/kernel.XXXXXX)
	trap 'rm -rf "$tmp"' EXIT
	echo "fetching $* ..."
	if [ -z "$image" ] || ! (cd "$tmp" && apt-get download -q -o APT::Sandbox::User=root "$@"); then
		echo "build.sh: no kernel to fetch; apt-get update, with Debian's amd64 archive among the sources" >&2
		exit 1
	fi
	for package in "$tmp"/*.deb; do
		dpkg-deb -x "$package" "$tmp/files"
	done
	chmod 755 "$tmp/files"
	# The headers are not where they would be installed.
	# shellcheck disable=SC2016 # for make
	sed -i 's|^include /usr/src/|include $(dir $(lastword $(MAKEFILE_LIST)))../|' "$tmp/files/usr/src/$headers/Makefile"
	rm -rf .bin/kernel
	mv "$tmp/files" .bin/kernel
}

# modules builds the modules of a directory below .bin/modules.
modules() {
	make -s -C .bin/kernel/usr/src/linux-headers-*-amd64 CC=gcc KCFLAGS=-g0 CONFIG_DEBUG_INFO_BTF_MODULES= M="$PWD/.bin/modules/$1" modules
}

mkdir -p .bin
go build -C ../.. -trimpath -ldflags "-s -w" -o test/vm/.bin/ ./cmd/gdr-features ./cmd/gdr-features-agent ./test/vm/guest
[ -d .bin/kernel/usr/src ] || fetch
cp -rp modules .bin/
modules vendor
export KBUILD_EXTRA_SYMBOLS="$PWD/.bin/modules/vendor/Module.symvers"
modules inbox
