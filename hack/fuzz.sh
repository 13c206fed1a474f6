#!/bin/sh
# Runs every fuzz target of the repository for a while.
# usage: fuzz.sh DURATION
set -eu
time=$1
grep -rl --include='*_test.go' '^func Fuzz' cmd internal source | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/' | while read -r target; do
		echo "$dir $target"
		go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
	done
done
