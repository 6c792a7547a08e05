#!/bin/sh
# Commands of the node tier: usage, the promised JSON, the same bytes for the same seed, records there and back.
. "$SRC/tests/cli/expect.sh"
json() { # FILE EXPRESSION: of the parsed document d, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$1: not so: $2"
}

for c in "node compare" "node simulate" "node live" "node replay" "node policies"; do
    expect 0 $c --help; prints "examples:"; prints "usage: cotenant $c"
done
expect 2 node; quiet
expect 2 node compare extra; quiet
expect 2 node compare --mix huge; says "no mix 'huge'"; quiet
expect 2 node compare --policies nobody; says "no policy 'nobody'; there are fcfs"; quiet
expect 2 node compare --policies fcfs,fcfs; says "named twice"; quiet
expect 2 node compare --seeds 0; says "whole number"; quiet
expect 2 node simulate --machine abacus; says "unknown machine 'abacus'"; quiet
expect 2 node simulate --set slack.strange=1; says "strange"; quiet
expect 2 node simulate --set safety=1; says "POLICY.KEY=VALUE"; quiet
expect 2 node simulate --rate much; says "is not a number"; quiet
expect 2 node replay; quiet
expect 1 node replay "$dir/absent.jsonl"; says "absent.jsonl"; quiet
expect 0 node policies; prints "^planaria"; prints "^slack"

# A comparison: the form of the JSON, the page, the trace; threads change nothing.
few="--mix light --policies planaria,slack --seeds 2 --requests 60"
expect 0 node compare $few --json -o "$dir/page.html" --trace "$dir/trace.json" --threads 1
cp "$dir/out" "$dir/one.json"
expect 0 node compare $few --json --threads 3
cmp -s "$dir/out" "$dir/one.json" || fail "the number of threads changes the result"
json "$dir/one.json" "list(d) == ['machine', 'mixes'] and [m['mix'] for m in d['mixes']] == ['light']"
keys="['policy','qps','qps_ci','mean_ms','p99_ms','hit_rate','conflict_rate','core_use','equal_load']"
json "$dir/one.json" "all(list(p) == $keys for p in d['mixes'][0]['policies'])"
json "$dir/one.json" "[p['policy'] for p in d['mixes'][0]['policies']] == ['planaria', 'slack']"
json "$dir/one.json" "all(p['qps'] > 0 and 0 <= p['hit_rate'] <= 1 for p in d['mixes'][0]['policies'])"
json "$dir/one.json" "[e['share'] for e in d['mixes'][0]['policies'][1]['equal_load']] == [0.8, 1.0]"
json "$dir/trace.json" "{e['ph'] for e in d['traceEvents']} >= {'M', 'X'}"
grep -q '<h2>light</h2>' "$dir/page.html" || fail "the page lacks its section"
if grep -qE '(src|href)="?(https?:)?//' "$dir/page.html"; then fail "the page asks for something from outside"; fi
expect 0 node compare $few; prints "requests/s"; prints "^light$"; prints "^slack  "; prints "^planaria  baseline"
expect 0 node compare --mix all --policies fcfs --seeds 1 --requests 20 --json
json "$dir/out" "[m['mix'] for m in d['mixes']] == ['light', 'medium', 'heavy', 'mix']"

# One run: the same seed gives the same bytes; every request is accounted for.
run="node simulate --mix medium --policy veltair --rate 150 --requests 200"
expect 0 $run --seed 5 --records "$dir/a.jsonl" --json; cp "$dir/out" "$dir/a.json"
expect 0 $run --seed 5 --records "$dir/b.jsonl" --json
cmp -s "$dir/a.jsonl" "$dir/b.jsonl" || fail "the same seed gave other records"
cmp -s "$dir/out" "$dir/a.json" || fail "the same seed gave another summary"
expect 0 $run --seed 6 --records "$dir/c.jsonl"
if cmp -s "$dir/a.jsonl" "$dir/c.jsonl"; then fail "another seed gave the same records"; fi
json "$dir/a.json" "d['all']['requests'] == d['all']['met'] + d['all']['late'] + d['all']['rejected'] == 190"
[ "$(grep -c '"kind":"arrive"' "$dir/a.jsonl")" = 200 ] || fail "not every request arrived"
[ "$(grep -cE '"kind":"(finish|reject)"' "$dir/a.jsonl")" = 200 ] || fail "not every request was answered"

# Records of a simulated run, played again, give exactly the same latencies, settings included.
expect 0 node replay "$dir/a.jsonl" --json
json "$dir/out" "d['all']['error_p90'] == 0 and d['all']['requests'] > 0 and d['policy'] == 'veltair'"
expect 0 node simulate --rate 500 --requests 100 --set slack.safety=0.5 --records "$dir/d.jsonl"
expect 0 node replay "$dir/d.jsonl" --json; json "$dir/out" "d['all']['error_p90'] == 0"
expect 0 node replay "$dir/a.jsonl" --records "$dir/e.jsonl"; prints "recorded blocks took"
cmp -s "$dir/a.jsonl" "$dir/e.jsonl" || fail "a run played again left other records"
head -n 50 "$dir/a.jsonl" | sed 's/"tenant":0/"tenant":9/' >"$dir/bad.jsonl"
expect 1 node replay "$dir/bad.jsonl"; says "bad.jsonl"; quiet
sed '1s/"seed":5/"seed":"five"/' "$dir/a.jsonl" >"$dir/bad.jsonl"
expect 1 node replay "$dir/bad.jsonl"; says "seed"; quiet
