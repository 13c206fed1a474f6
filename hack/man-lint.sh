#!/bin/sh
# Checks the manual pages with mandoc. They have no date: the same commands give
# the same pages.
set -eu
cd "$(dirname "$0")/.."

command -v mandoc >/dev/null || {
	echo "man-lint.sh: mandoc is missing; on Debian: apt-get install --no-install-recommends mandoc" >&2
	exit 1
}
said=$(mandoc -T lint -W warning man/*.1 | grep -v ': missing date, using "": TH$' || true)
if [ -n "$said" ]; then
	echo "$said"
	exit 1
fi
