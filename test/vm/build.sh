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
	rm -rf "$tmp"
}

# perftest puts Debian's perftest with what it needs into .bin/perftest, and a shell for its script.
perftest() {
	tmp=$(mktemp -d .bin/perftest.XXXXXX)
	trap 'rm -rf "$tmp"' EXIT
	(cd "$tmp" && apt-get download -q -o APT::Sandbox::User=root perftest ibverbs-providers libibverbs1 librdmacm1 \
		libnl-3-200 libnl-route-3-200 libpci3 libudev1 zlib1g libkmod2 liblzma5 libzstd1 libssl3 libc6 dash coreutils libselinux1 libpcre2-8-0)
	for package in "$tmp"/*.deb; do
		dpkg-deb -x "$package" "$tmp/files"
	done
	from=$tmp/files to=$tmp/to
	mkdir -p "$to/bin" "$to/lib/x86_64-linux-gnu/libibverbs" "$to/lib64" "$to/etc/libibverbs.d"
	for name in ib_write_bw dash timeout sleep mkdir cat; do
		cp -L "$(find "$from/bin" "$from/usr/bin" -name "$name")" "$to/bin"
	done
	find -L "$from" -name '*.so.*' -type f ! -path '*/gconv/*' -exec cp -L {} "$to/lib/x86_64-linux-gnu" \;
	cp "$from/usr/lib/x86_64-linux-gnu/libibverbs/librxe-"* "$to/lib/x86_64-linux-gnu/libibverbs"
	mkdir -p "$to/usr/lib/x86_64-linux-gnu"
	cp -r "$to/lib/x86_64-linux-gnu/libibverbs" "$to/usr/lib/x86_64-linux-gnu"
	cp "$from/etc/libibverbs.d/rxe.driver" "$to/etc/libibverbs.d"
	cp -L "$to/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$to/lib64"
	rm -rf .bin/perftest
	mv "$to" .bin/perftest
	rm -rf "$tmp"
}

# modules builds the modules of a directory below .bin/modules.
modules() {
	make -s -C .bin/kernel/usr/src/linux-headers-*-amd64 CC=gcc KCFLAGS=-g0 CONFIG_DEBUG_INFO_BTF_MODULES= M="$PWD/.bin/modules/$1" modules
}

mkdir -p .bin
go build -C ../.. -trimpath -ldflags "-s -w" -o test/vm/.bin/ ./cmd/gdr-features ./cmd/gdr-features-agent ./test/vm/guest
[ -d .bin/kernel/usr/src ] || fetch
[ -d .bin/perftest ] || perftest
cp -rp modules .bin/
modules vendor
export KBUILD_EXTRA_SYMBOLS="$PWD/.bin/modules/vendor/Module.symvers"
modules inbox
