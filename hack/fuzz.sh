#!/bin/sh
# Runs every fuzz target of the repository for a while, one after the other.
# usage: fuzz.sh DURATION
set -eu
time=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz DIR TARGET runs one target.
fuzz() {
	status=0
	go test "./$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x >"$log" 2>&1 || status=$?
	if [ "$status" -eq 0 ]; then
		cat "$log"
	elif ended; then
		grep '^fuzz: ' "$log" || true
		echo "ended with its time: https://go.dev/issue/75804"
	else
		cat "$log"
		return 1
	fi
}

# ended succeeds if the target failed only because its time was over. Go's fuzzer may
# report that as "context deadline exceeded" instead of success
# (https://go.dev/issue/75804, fixed in Go 1.27). For a failing input it prints more, also
# when the time ends while it minimizes that input.
ended() {
	[ "$(grep '^ ' "$log")" = "    context deadline exceeded" ] && ! grep -qi 'failing input\|^panic\|^fatal' "$log"
}

grep -rl --include='*_test.go' '^func Fuzz' cmd host internal nfdsource source topology tristate verdict | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/' | while read -r target; do
		echo "$dir $target"
		fuzz "$dir" "$target"
	done
done
