#!/usr/bin/env bash
# Runs the tests and lists the packages that took longest.
#   test.sh        everything with the race detector, in some tests with a part of the machines
#                  or inputs; then those tests with all machines, without it
#   test.sh long   everything with the race detector
set -euo pipefail
go=${GO:-go}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# partial prints "PACKAGE TEST" for each test that does less under the race detector: for
# each function that calls test/testsize.
partial() {
	$go list -f '{{range .TestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}' ./... 2>/dev/null |
		while read -r package file; do
			awk -v package="$package" '
				/^func / {test = $2; sub(/\(.*/, "", test)}
				/testsize\.(Share|Inputs|Partial)/ {print package, test}' "$file"
		done | sort -u
}

# memory reports whether tests can write to /dev/shm: it has 2 GB of room, and programs run there.
memory() {
	[ "$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 2000000 ] || return 1
	local probe
	probe=$(mktemp /dev/shm/gdr-features-XXXXXX) || return 1
	printf '#!/bin/sh\n' >"$probe" && chmod +x "$probe" && "$probe" 2>/dev/null
	local status=$?
	rm -f "$probe"
	return "$status"
}

# As make build compiles, so that nothing is compiled twice; and more packages at once than
# there are cores, since some wait for timers or for another program.
export GOFLAGS="${GOFLAGS:--trimpath -p=$((2 * $(nproc)))}"
# The race detector makes each program sleep for a second before it exits, tests and those that
# they start.
export GORACE="${GORACE:-atexit_sleep_ms=10}"
# Less collection of garbage makes tests cheaper, and linking them most of all. But the race detector
# frees its memory with the garbage: in a long run, one package's tests would need more than 20 GB.
collect=400
[ "${1:-}" != long ] || collect=100
export GOGC="${GOGC:-$collect}"

started=$SECONDS
if [ "${1:-}" = long ]; then
	CGO_ENABLED=1 $go test -race -timeout 30m ./... | tee -a "$log"
else
	# Most of a test's time in the kernel is for small files, which are cheaper in memory.
	if [ -z "${TMPDIR:-}" ] && memory; then
		export TMPDIR=/dev/shm GOTMPDIR="${GOTMPDIR:-/tmp}" # programs are too large for it
	fi
	CGO_ENABLED=1 $go test -race -short -vet=off ./... | tee -a "$log" # make lint vets
	parts=$(partial)
	# Only a test can be run again.
	if [ -z "$parts" ] || grep -v ' Test' <<<"$parts"; then
		echo "test.sh: test/testsize is called outside of a test, or nowhere" >&2
		exit 1
	fi
	tests=$(cut -d' ' -f2 <<<"$parts" | sort -u | paste -sd'|')
	# shellcheck disable=SC2046 # one word for each package
	$go test -short -vet=off -run "^($tests)\$" $(cut -d' ' -f1 <<<"$parts" | sort -u) | tee -a "$log"
fi

for machine in testdata/machines/*.txt; do
	[ -e "testdata/nccl/${machine##*/}" ] || echo "skipped: $machine has no recorded answers of NCCL (test/nccl/README.md)"
done
echo "took $((SECONDS - started)) s; the slowest packages:"
awk '$1 == "ok" && $3 ~ /s$/ {sub(/s$/, "", $3); printf "%8.1f s  %s\n", $3, $2}' "$log" | sort -rn | head -6
