#!/bin/sh
# Looks for known vulnerabilities in what the programs call. Without access to vuln.go.dev
# it says so and succeeds.
# usage: vulncheck.sh GOVULNCHECK@VERSION
set -eu
cd "$(dirname "$0")/.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT

status=0
go run "$1" ./cmd/... >"$said" 2>&1 || status=$?
cat "$said"
if [ "$status" -ne 0 ] && grep -q 'fetching vulnerabilities: .*vuln\.go\.dev' "$said"; then
	echo "vulnerabilities: not judged: vuln.go.dev cannot be reached"
	exit 0
fi
exit "$status"
