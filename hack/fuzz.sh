#!/bin/sh
# Runs every fuzz target of the repository for a while.
# usage: fuzz.sh DURATION
set -eu
time=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz DIR TARGET runs one target. When the time ends while Go's fuzzer minimizes an
# input, it reports "context deadline exceeded" of its own instead of success, and
# writes no failing input (https://go.dev/issue/75804, fixed in Go 1.27); only then is it run again.
fuzz() {
	for _ in 1 2 3; do
		if go test "./$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x >"$log" 2>&1; then
			cat "$log"
			return 0
		fi
		cat "$log"
		if grep -q 'Failing input written' "$log" || ! grep -q '^    context deadline exceeded$' "$log"; then
			return 1
		fi
		echo "$1 $2: once more, the fuzzer itself ran out of time"
	done
	return 1
}

grep -rl --include='*_test.go' '^func Fuzz' cmd internal source | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/' | while read -r target; do
		echo "$dir $target"
		fuzz "$dir" "$target"
	done
done
