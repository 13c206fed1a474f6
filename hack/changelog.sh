#!/bin/sh
# Moves the files of changes/ to the end of their lists in CHANGELOG.md, before a release.
set -eu
cd "$(dirname "$0")/.."
exec "${GO:-go}" run ./hack/changelog
