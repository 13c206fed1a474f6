#!/usr/bin/env bash
# Runs the tests and lists the packages that took longest.
#   test.sh        some machines with the race detector, then all machines without it
#   test.sh long   everything with the race detector
set -euo pipefail
go=${GO:-go}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

started=$SECONDS
if [ "${1:-}" = long ]; then
	CGO_ENABLED=1 $go test -race -timeout 30m ./... | tee -a "$log"
else
	CGO_ENABLED=1 $go test -race -short ./... | tee -a "$log"
	# The packages with tests that do less under the race detector.
	parts=$($go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... 2>/dev/null |
		awk '/gdr-features\/internal\/testsize/ {print $1}')
	[ -n "$parts" ] || { echo "test.sh: no package imports internal/testsize" >&2; exit 1; }
	$go test -short $parts | tee -a "$log"
fi

echo "took $((SECONDS - started)) s; the slowest packages:"
awk '$1 == "ok" && $3 ~ /s$/ {sub(/s$/, "", $3); printf "%8.1f s  %s\n", $3, $2}' "$log" | sort -rn | head -6
