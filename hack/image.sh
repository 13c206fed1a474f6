#!/bin/sh
# Builds the image for linux/amd64 and linux/arm64 into one OCI archive, without
# registry, daemon or network; the same commit gives the same archive. REVISION is the
# commit, if it is not what git says, and SOURCE the page of the project.
# usage: [REVISION=COMMIT] [SOURCE=URL] image.sh ARCHIVE VERSION LDFLAGS
set -eu
archive=$1 version=$2 ldflags=$3
cd "$(dirname "$0")/.."

command -v buildah >/dev/null || {
	echo "image.sh: buildah is missing; on Debian: apt-get install --no-install-recommends buildah" >&2
	exit 1
}

epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CGO_ENABLED=0 TMPDIR="$tmp"

# store runs buildah on a storage of its own. vfs and chroot also work in a container
# without privileges.
store() {
	buildah --root "$tmp/root" --runroot "$tmp/runroot" --storage-driver vfs "$@"
}

set -- --label "org.opencontainers.image.created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)" \
	--label "org.opencontainers.image.revision=$revision"
if [ -n "${SOURCE:-}" ]; then
	set -- "$@" --label "org.opencontainers.image.source=$SOURCE"
fi

go run -C hack/release ./licenses/collect ./cmd/gdr-features ./cmd/gdr-features-agent >"$tmp/THIRD-PARTY-LICENSES"
for arch in amd64 arm64; do
	echo "building for linux/$arch ..."
	GOOS=linux GOARCH=$arch go build -trimpath -ldflags "$ldflags" \
		-o "$tmp/$arch/src/bin/" ./cmd/gdr-features ./cmd/gdr-features-agent
	cp "$tmp/THIRD-PARTY-LICENSES" "$tmp/$arch/src/bin/"
	cp LICENSE "$tmp/$arch/src/"
	chmod -R u=rwX,go=rX "$tmp/$arch"
	# The directory stands in for the stage "build", which then is not run.
	store build --quiet --isolation chroot --platform "linux/$arch" --build-context "build=$tmp/$arch" \
		--build-arg "VERSION=$version" "$@" --timestamp "$epoch" --manifest image . >/dev/null
done

store manifest push --quiet --all image "oci:$tmp/layout:gdr-features:$version"
mkdir -p "$(dirname "$archive")"
tar -C "$tmp/layout" --sort=name --format=ustar --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
	-cf "$archive.new" .
mv "$archive.new" "$archive"
echo "$archive: $(stat -c %s "$archive") bytes"
