#!/bin/sh
# Runs every fuzz target of the repository for a while, each once.
# usage: fuzz.sh DURATION
set -eu
time=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz DIR TARGET runs one target.
fuzz() {
	status=0
	go test "./$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x >"$log" 2>&1 || status=$?
	cat "$log"
	[ "$status" -eq 0 ] || ended
}

# ended tells whether the target failed only because its time ended. Go's fuzzer may
# report that as "context deadline exceeded", and nothing else, instead of success
# (https://go.dev/issue/75804, fixed in Go 1.27). Of an input that fails it says
# more, also when the time ends while it makes that input smaller.
ended() {
	[ "$(grep '^ ' "$log")" = "    context deadline exceeded" ] && ! grep -qi 'failing input\|^panic\|^fatal' "$log"
}

grep -rl --include='*_test.go' '^func Fuzz' cmd host internal nfdsource source topology tristate verdict | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/' | while read -r target; do
		echo "$dir $target"
		fuzz "$dir" "$target"
	done
done
