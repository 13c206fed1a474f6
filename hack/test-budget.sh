#!/usr/bin/env bash
# Says when make test takes longer than BUDGET seconds (100) with a warm build cache,
# unless other programs use the machine. It does not fail then: machines differ.
set -euo pipefail
budget=${BUDGET:-100}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/watch" ./test/busy/watch
make test >"$dir/log" || { cat "$dir/log"; exit 1; } # fills the build cache
go clean -testcache
mkfifo "$dir/end"
"$dir/watch" $$ <"$dir/end" >"$dir/busy" &
exec 3>"$dir/end"
started=$SECONDS
make test >"$dir/log" || { cat "$dir/log"; exit 1; }
took=$((SECONDS - started))
exec 3>&-
wait $!
tail -7 "$dir/log"
if [ -s "$dir/busy" ]; then
	echo "make test took $took s; not judged: $(cat "$dir/busy")"
elif [ "$took" -gt "$budget" ]; then
	echo "make test took $took s with a warm build cache, over its budget of $budget s"
else
	echo "make test took $took s with a warm build cache, of $budget s"
fi
