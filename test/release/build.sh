#!/bin/sh
# Builds into .bin what the test of a release needs: helm, krew, a registry, cosign and a key
# where they do not lie there yet, and always the release, signed, twice: as .bin/one by `make
# release`, and as .bin/two in another directory, with another umask and time zone and, with
# COLD=1, an empty build cache. Both are made from a commit of the files of the work tree.
# usage: [COLD=1] build.sh [one], with "one" to build it once, without git and a signature, and
# not at all if .bin/one was made of the same files
set -eu
cd "$(dirname "$0")"
bin=$PWD/.bin

missing() {
	echo "build.sh: $1 is missing; on Debian: apt-get install --no-install-recommends $2" >&2
	exit 1
}
command -v buildah >/dev/null || missing buildah buildah
command -v skopeo >/dev/null || missing skopeo skopeo
command -v rpm >/dev/null || missing rpm rpm

install_tool() { # install_tool PACKAGE@VERSION, with the dependencies it was released with
	echo "building $1 ..."
	CGO_ENABLED=0 GOBIN="$bin" go install -ldflags "-s -w" "$1"
}
mkdir -p "$bin"
stamp=$(go version && sha256sum build.sh ../../hack/release/go.sum)
if [ "$stamp" != "$(cat "$bin/stamp" 2>/dev/null)" ]; then
	install_tool helm.sh/helm/v3/cmd/helm@v3.22.0
	echo "building krew ..."
	CGO_ENABLED=0 go build -C ../../hack/release -o "$bin/krew" sigs.k8s.io/krew/cmd/krew
	install_tool github.com/distribution/distribution/v3/cmd/registry@v3.1.2
	rm -f "$bin/cosign"
	echo "$stamp" >"$bin/stamp"
fi
export VERSION=v1.0.0
unset SOURCE_DATE_EPOCH REVISION SIGN_KEY
if [ "${1:-}" = one ]; then
	export SOURCE_DATE_EPOCH=1767225600 REVISION=0123456789abcdef0123456789abcdef01234567
else
	export COSIGN_PASSWORD=passphrase # that of cosign.key
	[ -e "$bin/cosign" ] || install_tool github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3
	[ -e "$bin/cosign.key" ] || (cd "$bin" && ./cosign generate-key-pair)
	export SIGN_KEY="$bin/cosign.key"
fi

tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
copy() { # copy DIRECTORY: the files that git knows or would know
	mkdir -p "$1"
	git -C ../.. ls-files -z --cached --others --exclude-standard --deduplicate |
		tar -C ../.. --null --files-from=- --ignore-failed-read -cf - | tar -xf - -C "$1"
}
commit() { # commit DIRECTORY: makes them a commit
	git -C "$1" init -q -b main
	git -C "$1" add -A
	GIT_AUTHOR_DATE='1767225600 +0000' GIT_COMMITTER_DATE='1767225600 +0000' \
		git -C "$1" -c user.name=release -c user.email=release@example.com commit -q -m release
}
copy "$tmp/one"
made=$(go version && tar -C "$tmp/one" --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | sha256sum)
if [ "${1:-}" = one ] && [ "$made" = "$(cat "$bin/made" 2>/dev/null)" ]; then
	exit 0
fi
rm -rf "$bin/one" "$bin/two" "$bin/made"
if [ "${1:-}" != one ]; then
	(umask 077 && copy "$tmp/in/another/directory" && commit "$tmp/in/another/directory")
	commit "$tmp/one"
	git -C "$tmp/one" rev-parse HEAD >"$bin/commit"
fi
echo "building the release ..."
make -s -C "$tmp/one" release
mv "$tmp/one/dist" "$bin/one"
echo "$made" >"$bin/made"
[ "${1:-}" != one ] || exit 0
echo "building the release again ..."
(
	umask 077
	export TZ=Asia/Tokyo LANG=C.UTF-8
	[ -z "${COLD:-}" ] || export GOCACHE="$tmp/cache"
	cd "$tmp/in/another/directory"
	"$tmp/one/bin/release" -version "$VERSION" -sign-key "$SIGN_KEY" >/dev/null
)
mv "$tmp/in/another/directory/dist" "$bin/two"
