#!/bin/sh
# Operators of exported decoders against NumPy, on every instruction set: vector kernels (float32) and reference
# kernels (float64).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
/usr/bin/python3 -W ignore "$SRC/tests/cli/decoder_operators.py" "$dir"
cases=$(ls "$dir/node" | wc -l)
for isa in baseline avx2 avx512; do
    COTENANT_ISA=$isa "$COTENANT" conformance "$dir" --suite node --list --json > "$dir/result.json" 2> "$dir/err" || {
        grep -q 'cannot run' "$dir/err" && continue
        cat "$dir/err"
        exit 1
    }
    /usr/bin/python3 -c '
import json, sys
s = json.load(open(sys.argv[1]))["suites"][0]
print(s["passed"], "passed", s["refusals"], s["failures"])
assert s["passed"] == int(sys.argv[2]) and s["failed"] == 0 and s["refused"] == 0
' "$dir/result.json" "$cases" || { cat "$dir/err"; exit 1; }
done
