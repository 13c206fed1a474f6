#!/bin/sh
# Lays out below .bin the user space of Debian's suites, as container images have it: a C
# library with the files of the loader, rdma-core, libfabric and UCX, each of its release.
# Nothing in it is run: packages are unpacked, and ldconfig -r writes the loader's cache.
# Packages are fetched once; remove .bin to have the newest ones.
# usage: build.sh SUITE...
set -eu
cd "$(dirname "$0")"
command -v ldconfig >/dev/null || PATH=$PATH:/sbin:/usr/sbin

for suite; do
	root=.bin/$suite
	[ ! -e "$root/etc/ld.so.cache" ] || continue
	rm -rf "$root" ".bin/$suite.apt"
	apt=$(pwd)/.bin/$suite.apt
	mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/debs" "$root"
	: >"$apt/status"
	echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >"$apt/sources.list"
	set -- -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State="$apt" \
		-o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o APT::Architecture=amd64 -o APT::Sandbox::User=root \
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
	echo "fetching the user space of $suite ..."
	apt-get "$@" update
	# From trixie on some names end in t64, for 64 bits of time.
	names=$(apt-cache "$@" search --names-only '^(libc6|libc-bin|libibverbs1|ibverbs-providers|librdmacm1|libfabric1|libucx0|libnl-3-200|libnl-route-3-200)(t64)?$' | cut -d' ' -f1)
	# shellcheck disable=SC2086 # one word for each package
	(cd "$apt/debs" && apt-get "$@" download $names)
	for deb in "$apt"/debs/*.deb; do
		dpkg-deb -x "$deb" "$root"
	done
	mkdir -p "$root/var/lib/dpkg"
	for deb in "$apt"/debs/*.deb; do
		dpkg-deb -f "$deb" Package Version Architecture
		echo "Status: install ok installed"
		echo
	done >"$root/var/lib/dpkg/status"
	for dir in lib lib64; do # of suites in which these are links, and base-files makes them
		[ -e "$root/$dir" ] || [ ! -e "$root/usr/$dir" ] || ln -s "usr/$dir" "$root/$dir"
	done
	ldconfig -r "$root"
	rm -rf "$apt"
done
