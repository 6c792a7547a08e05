#!/bin/sh
# chip simulate: usage, the promised JSON, the same bytes for the same seed, records and a trace of units.
. "$SRC/tests/cli/expect.sh"
json() { # FILE EXPRESSION: of the parsed document d, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$1: not so: $2"
}

expect 0 chip simulate --help; prints "examples:"; prints "usage: cotenant chip simulate"
expect 2 chip simulate extra; quiet
expect 2 chip simulate --policy nobody; says "no policy 'nobody'; there are fcfs"; quiet
expect 2 chip simulate --policy fcfs,edf; says "one policy"; quiet
expect 2 chip simulate --mix resnet500; says "did you mean resnet50?"; quiet
expect 2 chip simulate --mix vgg16,vgg16; says "named twice"; quiet
expect 2 chip simulate --load much; says "is not a number"; quiet
expect 2 chip simulate --load 0; says "above 0"; quiet
expect 2 chip simulate --deadlines never; says "moca, planaria, mlperf"; quiet
expect 2 chip simulate --sharing none; says "equal, maxmin"; quiet
expect 2 chip simulate --set moca=1; says "POLICY.KEY=VALUE"; quiet
expect 2 chip simulate --target 2; says "from 0 to 1"; quiet
expect 1 chip simulate --mix "$dir/absent.onnx"; says "absent.onnx"; quiet

run="chip simulate --mix light --policy edf --load 0.9 --requests 200"
expect 0 $run --seed 5 --records "$dir/a.jsonl" --trace "$dir/trace.json" --json; cp "$dir/out" "$dir/a.json"
expect 0 $run --seed 5 --records "$dir/b.jsonl" --json
cmp -s "$dir/a.jsonl" "$dir/b.jsonl" || fail "the same seed gave other records"
cmp -s "$dir/out" "$dir/a.json" || fail "the same seed gave another summary"
expect 0 $run --seed 6 --records "$dir/c.jsonl"
if cmp -s "$dir/a.jsonl" "$dir/c.jsonl"; then fail "another seed gave the same records"; fi
prints "^squeezenet1_1"; prints "^all"; prints "bandwidth"; prints "energy"
json "$dir/a.json" "d['all']['requests'] == d['all']['met'] + d['all']['late'] + d['all']['dropped'] == 190"
json "$dir/a.json" "sum(t['met'] for t in d['tenants']) == d['all']['met'] and len(d['tenants']) == 5"
json "$dir/a.json" "abs(d['energy']['in_time_mj'] * d['all']['met'] - d['energy']['total_mj']) < 0.2 * d['energy']['total_mj']"
json "$dir/a.json" "0 < d['bandwidth_use'] <= 1 and 0 < d['unit_use'] <= 1 and d['bandwidth'] == 16"
json "$dir/a.json" "abs(d['energy']['total_mj'] - sum(d['energy'][k] for k in ('layers_mj','idle_mj','policy_mj'))) < 1e-6"
[ "$(grep -c '"kind":"arrive"' "$dir/a.jsonl")" = 200 ] || fail "not every request arrived"
[ "$(grep -cE '"kind":"(finish|reject)"' "$dir/a.jsonl")" = 200 ] || fail "not every request was answered"
[ "$(grep -c '"kind":"start"' "$dir/a.jsonl")" = "$(grep -c '"kind":"end"' "$dir/a.jsonl")" ] || fail "layers do not end"
json "$dir/trace.json" "{e['args']['name'] for e in d['traceEvents'] if e['name'] == 'thread_name'} >= {'simba 0', 'eyeriss 3'}"

# Deadlines, memory, bursts and firmness are heeded.
expect 0 $run --firm --load 2 --json; json "$dir/out" "d['all']['late'] == 0 and d['all']['dropped'] > 0"
expect 0 $run --bandwidth 4 --json; cp "$dir/out" "$dir/narrow.json"
json "$dir/narrow.json" "d['bandwidth'] == 4"
met() { python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['all']['met'])" "$1"; }
[ "$(met "$dir/narrow.json")" -lt "$(met "$dir/a.json")" ] || fail "a quarter of the bandwidth does no harm"
expect 0 $run --sharing maxmin --burst 4 --deadlines planaria --ts 100 --target 0.9 --json
json "$dir/out" "d['burst'] == 4 and d['period_us'] == 100"
expect 0 chip simulate --chip 2+2 --mix resnet50+mobilenet_v2 --deadlines mlperf --requests 50 --json
json "$dir/out" "[t['base_ms'] for t in d['tenants']] == [15, 15] and d['chip'] == '2+2'"

# Requests out and in again: the same run; errors name the line.
expect 0 $run --seed 5 --requests-to "$dir/r.csv" --json; cp "$dir/out" "$dir/drawn.json"
[ "$(wc -l < "$dir/r.csv")" = 201 ] || fail "not every request was written"
expect 0 chip simulate --policy edf --seed 5 --requests-from "$dir/r.csv" --requests-to "$dir/r2.csv" --json
cmp -s "$dir/r.csv" "$dir/r2.csv" || fail "requests that were read are written differently"
json "$dir/out" "d['all'] == __import__('json').load(open('$dir/drawn.json'))['all']"
printf 'time_ms,network,deadline_ms,tenant\n0,resnet50,14,kitchen\n0.25,vgg16,,hall\n1.5,resnet50,20,hall\n' > "$dir/r.csv"
expect 0 chip simulate --requests-from "$dir/r.csv"; prints "^kitchen"; prints "^hall"; prints "energy per answer in time"
expect 0 chip compare --requests-from "$dir/r.csv" --policies edf,bytes_gate --json; json "$dir/out" "len(d['cells']) == 1"
printf 'time_ms,network\n1,resnet50\nx,vgg16\n' > "$dir/r.csv"
expect 1 chip simulate --requests-from "$dir/r.csv"; says "r.csv:3: time_ms: 'x' is not a number"; quiet
printf 'time_ms,network\n1,resnet50\n0,vgg16\n' > "$dir/r.csv"
expect 1 chip simulate --requests-from "$dir/r.csv"; says "r.csv:3.*sort the rows by time"; quiet
printf 'time,network\n' > "$dir/r.csv"
expect 1 chip compare --requests-from "$dir/r.csv"; says "r.csv:1: no column 'time'"; quiet
printf 'time_ms,network\n1,resnet500\n' > "$dir/r.csv"
expect 2 chip simulate --requests-from "$dir/r.csv"; says "did you mean resnet50?"; quiet
