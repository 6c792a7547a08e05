#!/bin/sh
# cotenant machine: table and JSON.
set -eu
"$COTENANT" machine --quick | grep -q 'multiply-add .*GFLOP/s'
"$COTENANT" machine --quick --threads 1 --json | python3 -c '
import json, sys
m = json.load(sys.stdin)
assert m["cores_measured"] == 1 and m["fma_gflops"]["one"] > 0 and m["triad_gbs"]["all"] > 0
assert set(m["read_gbs"]) >= {"L1", "L2", "DRAM"} and m["clock_ns"] > 0 and m["cores"] >= 1'
code=0
"$COTENANT" machine --threads 0 2>/dev/null || code=$?
[ "$code" = 2 ]
