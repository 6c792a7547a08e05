#!/bin/sh
# The walk-through of docs/adding-an-accelerator.md works: its YAML is read, its unit costed, its package compared.
. "$SRC/tests/cli/expect.sh"
doc=$SRC/docs/adding-an-accelerator.md
awk -v dir="$dir" '/^```/ { out = ""; fresh = /yaml/; next }
    fresh && /^# [a-z]+\.yaml/ { out = dir "/" substr($2, 1, length($2) - 1); fresh = 0 }
    out { print > out }' "$doc"
[ -s "$dir/npu.yaml" ] && [ -s "$dir/duo.yaml" ] || fail "the document has lost its files"
cd "$dir"
expect 0 chip cost resnet50 --unit npu.yaml; prints "total"
expect 0 chip compare --chip duo.yaml --mix mixed --load 0.6 --policies edf,relmas --traces 2 --requests 40
prints "^duo, mixed, load 0.6, 24 B/cycle"
sed '/^port/d' npu.yaml >less.yaml
expect 3 chip cost resnet50 --unit less.yaml; says "less.yaml"; says "port"; quiet
