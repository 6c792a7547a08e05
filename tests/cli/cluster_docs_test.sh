#!/bin/sh
# The walk-through of docs/cluster.md works: its trace and servers are read and compared; it knows every policy.
. "$SRC/tests/cli/expect.sh"
doc=$SRC/docs/cluster.md
awk -v dir="$dir" '/^```/ { out = ""; next }
    /^job,submit_s/ { out = dir "/jobs.csv" }
    /^sn,cpu_milli/ { out = dir "/nodes.csv" }
    out { print > out }' "$doc"
[ -s "$dir/jobs.csv" ] && [ -s "$dir/nodes.csv" ] || fail "the document has lost its files"
cd "$dir"
ran=0
grep '^build/cotenant cluster' "$doc" | sed 's/ *#.*//' >commands
while IFS= read -r line; do
    case $line in *synth:*) line="$line --jobs 40 --seeds 1" ;; esac
    expect 0 ${line#build/cotenant }
    ran=$((ran + 1))
done <commands
[ "$ran" -ge 5 ] || fail "only $ran commands found"
prints "^jobs.csv on 2 servers with 10 GPUs, times of the trace"
"$COTENANT" cluster policies --json | python3 -c "
import json, sys
text = open(sys.argv[1]).read()
lacks = [p['policy'] for p in json.load(sys.stdin) if '| \`%s\` |' % p['policy'] not in text]
sys.exit('docs/cluster.md does not know ' + ', '.join(lacks) if lacks else 0)" "$doc" || fail "policies are missing"
