#!/bin/sh
# Job traces: statistics, conversion, synthesis; errors by line.
. "$SRC/tests/cli/expect.sh"

expect 0 cluster trace stats philly_small
prints '600 jobs, format plain'
prints '^   8 '
prints '^t0 '
expect 0 cluster trace stats openb_small --gpus 48 --json
python3 - "$dir/out" "$SRC/data/traces/openb_small.csv" <<'P'
import csv, json, sys
d = json.load(open(sys.argv[1]))
rows = list(csv.DictReader(open(sys.argv[2])))
assert d["jobs"] == len(rows) == 500 and d["unknown"] == 0
assert d["cpu_only"] == sum(r["gpus"] == "0" for r in rows)
assert d["fractional"] == sum(r["gpu_milli"] not in ("", "1000") for r in rows)
gpu_s = sum(float(r["duration_s"]) * int(r["gpus"]) * int(r["gpu_milli"] or 1000) / 1000 for r in rows)
assert abs(d["gpu_s"] - gpu_s) < 1e-6 * gpu_s
assert abs(d["load"] - gpu_s / 48 / d["span_s"]) < 1e-9 and abs(d["load"] - 1) < 0.05
times = sorted(float(r["duration_s"]) for r in rows)
assert d["duration_s"]["p50"] == times[249] and d["duration_s"]["max"] == times[-1]
assert abs(d["duration_s"]["mean"] - sum(times) / 500) < 1e-6
assert sum(m["jobs"] for m in d["models"]) == 500 and len(d["models"]) == 12
assert sum(t["jobs"] for t in d["tenants"]) == 500
P

expect 0 cluster trace synth --like philly_small -o "$dir/p.csv"
says '600 jobs over'
quiet
cmp "$dir/p.csv" "$SRC/data/traces/philly_small.csv" || fail "the same settings and seed, another trace"
expect 0 cluster trace synth --like philly_small --seed 2 -o "$dir/q.csv"
! cmp -s "$dir/p.csv" "$dir/q.csv" || fail "another seed, the same trace"
expect 0 cluster trace synth --jobs 50 --set 'sizes=4:1' --set tenants=1 -o "$dir/s.csv"
expect 0 cluster trace stats "$dir/s.csv"
prints '^   4    50     100.00'
expect 0 cluster trace synth --settings
prints '^burst_jobs '
expect 2 cluster trace synth
expect 3 cluster trace synth --set sizes=x:1 -o "$dir/x.csv"
expect 3 cluster trace synth --set size=1:1 -o "$dir/x.csv"
[ ! -e "$dir/x.csv" ] || fail "a refused trace was written"

printf 'timestamp,duration,num_gpus,gpu_time,cluster\r\n2020-03-02 00:00:30,66.5,2,133.0,b\r\n2020-03-01 00:00:00,10.0,1,10.0,a\r\n\r\n' > "$dir/log.csv"
expect 0 cluster trace convert "$dir/log.csv" -o "$dir/own.csv"
says '2 jobs'
printf 'job,submit_s,duration_s,gpus,tenant\n1,0,10,1,a\n0,86430,66.5,2,b\n' | cmp - "$dir/own.csv"
expect 0 cluster trace convert "$dir/log.csv" --from 2020-03-02 --rebase -o "$dir/own.csv"
printf 'job,submit_s,duration_s,gpus,tenant\n0,0,66.5,2,b\n' | cmp - "$dir/own.csv"
expect 0 cluster trace convert "$dir/log.csv" --max-gpus 1 --format philly -o "$dir/own.csv"
expect 2 cluster trace convert "$dir/log.csv" --min-gpus 3 -o "$dir/own.csv"
says 'no job is left'
expect 2 cluster trace convert "$dir/log.csv"
expect 2 cluster trace stats "$dir/log.csv" --format phily
says 'did you mean philly'
expect 2 cluster trace stats "$dir/log.csv" --unit hours
expect 2 cluster trace stats "$dir/log.csv" --from yesterday
expect 1 cluster trace stats "$dir/log.csv" --format plain
says "log.csv:1: no column 'job'"
for log in trace_sacct/all.txt trace_kubernetes/pods.json; do
    expect 0 cluster trace stats "$SRC/tests/fuzz/corpus/$log"
    prints '^left out: .*ha[sv]e* not ended'
    expect 0 cluster trace convert "$SRC/tests/fuzz/corpus/$log" -o "$dir/own.csv"
    says '^left out: '
    expect 0 cluster simulate --trace "$dir/own.csv" --any-type --nodes 2 --policy srtf
    expect 0 cluster simulate --trace "$SRC/tests/fuzz/corpus/$log" --any-type --nodes 2 --json
    prints '"left_out":{"'
    expect 2 cluster simulate --trace "$SRC/tests/fuzz/corpus/$log" --nodes 2 --policy srtf
    says 'any-type'
done
printf 'job,submit_s,duration_s,gpus\n1,0,-5,1\n' > "$dir/bad.csv"
expect 1 cluster trace stats "$dir/bad.csv"
says "bad.csv:2: duration_s: '-5' is negative"
quiet
expect 1 cluster trace stats "$dir/nothing.csv"

printf '0,m,0.0,10,1\n1,n,0.5,20,1\n' > "$dir/steps"
printf 'model,gpus,iteration_s\nm,1,0.25\n' > "$dir/rates.csv"
expect 0 cluster trace convert "$dir/steps" -o "$dir/own.csv"
says '2 of them have no duration'
expect 0 cluster trace convert "$dir/steps" --rates "$dir/rates.csv" --known -o "$dir/own.csv"
grep -q '^0,0,2.5,1,m,10,0.25$' "$dir/own.csv" || fail "iterations did not become time"
expect 0 cluster trace stats "$dir/steps" --unit min --json
prints '"span_s": *30'
expect 2 cluster trace
says 'cluster trace stats'
