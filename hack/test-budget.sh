#!/usr/bin/env bash
# Says when make test takes longer than BUDGET seconds (100) with a warm build cache, and how
# much of both CPUs it had: other programs make it slower. It does not fail: machines differ.
set -euo pipefail
budget=${BUDGET:-100}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
make test >"$dir/log" || { cat "$dir/log"; exit 1; } # fills the build cache
go clean -testcache
TIMEFORMAT='%R %P'
{ time make test >"$dir/log" 2>&1; } 2>"$dir/time" || { cat "$dir/log"; exit 1; }
read -r took cpu <"$dir/time"
tail -7 "$dir/log"
said="make test took $took s with a warm build cache, and ${cpu%.*} % of a CPU on $(nproc) CPUs"
if [ "${took%.*}" -gt "$budget" ]; then
	echo "$said, over its budget of $budget s"
else
	echo "$said, of $budget s"
fi
