#!/bin/sh
# Builds into .bin what the test in the virtual machine needs: the programs of
# this repository, the machine's first process, and Debian's kernel with its
# modules, of which nothing is installed. It is fetched once; remove .bin/kernel
# to have the newest one.
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

mkdir -p .bin
go build -C ../.. -trimpath -ldflags "-s -w" -o test/vm/.bin/ ./cmd/gdr-features ./cmd/gdr-features-agent ./test/vm/guest

if [ -d .bin/kernel ]; then
	exit 0
fi
package=$(apt-cache depends --important linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: *//p' | head -n 1)
tmp=$(mktemp -d .bin/kernel.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
echo "fetching ${package:-a kernel} ..."
if [ -z "$package" ] || ! (cd "$tmp" && apt-get download -q -o APT::Sandbox::User=root "$package"); then
	echo "build.sh: no kernel to fetch; apt-get update, with Debian's amd64 archive among the sources" >&2
	exit 1
fi
dpkg-deb -x "$tmp"/linux-image-*.deb "$tmp/files"
chmod 755 "$tmp/files"
mv "$tmp/files" .bin/kernel
