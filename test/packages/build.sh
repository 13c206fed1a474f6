#!/bin/sh
# Builds into .bin the machine on which the Debian package is tested: Debian with systemd and
# man, Debian's kernel, the package and an example machine for it to read. Debian and kernel
# are fetched once; remove .bin to have the newest ones.
# usage: build.sh PACKAGE.deb
set -eu
deb=$(realpath "$1")
cd "$(dirname "$0")"

missing() {
	echo "build.sh: $1 is missing; on Debian: apt-get install --no-install-recommends $2" >&2
	exit 1
}
command -v mmdebstrap >/dev/null || missing mmdebstrap mmdebstrap
command -v cpio >/dev/null || missing cpio cpio
command -v qemu-system-x86_64 >/dev/null || missing qemu-system-x86_64 qemu-system-x86

mkdir -p .bin
if [ ! -e .bin/vmlinuz ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	image=$(apt-cache depends --important linux-image-amd64 | sed -n 's/^ *Depends: *\(linux-image.*\)/\1/p' | head -n 1)
	echo "fetching $image ..."
	(cd "$tmp" && apt-get download -q -o APT::Sandbox::User=root "$image")
	dpkg-deb -x "$tmp"/*.deb "$tmp/files"
	cp "$tmp"/files/boot/vmlinuz-* .bin/vmlinuz
fi
if [ ! -e .bin/root/etc/debian_version ]; then
	echo "fetching Debian ..."
	rm -rf .bin/root
	# shellcheck source=/dev/null
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mmdebstrap --quiet --variant=minbase --include=systemd-sysv,dbus,man-db "$suite" .bin/root
fi

rm -rf .bin/root/test
mkdir -p .bin/root/test .bin/root/usr/lib/modules
touch .bin/root/usr/lib/modules/config
cp "$deb" .bin/root/test/gdr-features.deb
install -m 755 guest.sh .bin/root/test/guest.sh
cp guest.service .bin/root/etc/systemd/system/guest.service
install -m 755 init.sh .bin/root/init
ln -sf ../guest.service .bin/root/etc/systemd/system/multi-user.target.wants/guest.service
(cd ../.. && go run ./test/machine/mktree testdata/machines/dell-xe9680-h100.txt test/packages/.bin/root/test/machine)
(cd .bin/root && find . -xdev -print0 | cpio --quiet --null --create --format=newc) >.bin/initrd
