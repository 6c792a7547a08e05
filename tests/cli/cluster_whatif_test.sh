#!/bin/sh
# cluster whatif: every row is the run that cluster simulate makes; GPU hours and costs add up; errors of changes.
. "$SRC/tests/cli/expect.sh"

expect 0 cluster whatif --help; prints "examples:"; prints "usage: cotenant cluster whatif"
expect 2 cluster whatif --try servers=3; says "give --trace FILE"; quiet
expect 2 cluster whatif --trace philly_small; says "give --try CHANGE"; quiet

run="--trace philly_small --nodes 8 --policy srtf"
expect 0 cluster simulate $run --json; cp "$dir/out" "$dir/base.json"
expect 0 cluster simulate --trace philly_small --nodes 10 --policy srtf --json; cp "$dir/out" "$dir/more.json"
expect 0 cluster simulate --trace philly_small --nodes 6 --policy las --json; cp "$dir/out" "$dir/las.json"
expect 0 cluster whatif $run --try servers=10 --try servers=-2,policy=las --try servers=1 --price 2.5 --json
python3 - "$dir/out" "$dir/base.json" "$dir/more.json" "$dir/las.json" <<'P' || fail "whatif and simulate disagree"
import json, sys
d, *runs = (json.load(open(f)) for f in sys.argv[1:])
v = d["variants"]
assert [x["variant"] for x in v] == ["base", "servers=10", "servers=-2,policy=las", "servers=1"]
for x, r in zip(v, runs):
    for k in ("jct_mean_s", "jct_p99_s", "makespan_s", "preemptions", "gpus", "servers", "policy"):
        assert x[k] == r[k], (k, x[k], r[k])
    owned = r["gpus"] * r["makespan_s"] / 3600
    assert abs(x["owned_gpu_hours"] - owned) < 1e-9 * owned
    assert abs(x["gpu_hours"] - owned * r["gpu_use"]) < 1e-6 * owned
    assert abs(x["gpu_use"] - r["gpu_use"]) < 1e-6
    assert abs(x["cost"] - 2.5 * x["gpu_hours"]) < 1e-6 and abs(x["owned_cost"] - 2.5 * owned) < 1e-6
    assert abs(x["jct_change"] - (x["jct_mean_s"] / v[0]["jct_mean_s"] - 1)) < 1e-12
assert v[3]["too_large"] == 2 and "do not fit" in v[3]["error"] and "jct_mean_s" not in v[3]
P
expect 0 cluster whatif $run --try servers=1 --try policy=tiresias
prints '^servers=1: not run: 2 of 600 jobs do not fit'; prints '^policy=tiresias  *tiresias'

# The base's durations hold on its GPU type; a faster type is faster, a slower one slower.
fifo="--trace philly_small --nodes 8 --policy fifo --profiles default"
expect 0 cluster whatif $fifo --try servers=8 --json; cp "$dir/out" "$dir/plain.json"
expect 0 cluster whatif $fifo --gpu P100 --try gpu=A100 --try gpu=K80 --price P100=1,A100=4,K80=0.5 --json
python3 - "$dir/out" "$dir/plain.json" <<'P' || fail "GPU types"
import json, sys
d, plain = (json.load(open(f))["variants"] for f in sys.argv[1:])
assert plain[0]["jct_mean_s"] == plain[1]["jct_mean_s"]
assert abs(d[0]["jct_mean_s"] / plain[0]["jct_mean_s"] - 1) < 1e-6
assert d[1]["jct_mean_s"] < d[0]["jct_mean_s"] < d[2]["jct_mean_s"]
for x, price in zip(d, (1, 4, 0.5)): assert abs(x["cost"] - price * x["gpu_hours"]) < 1e-6
P

# Mixed types: each GPU hour at the price of its type.
printf 'sn,cpu_milli,memory_mib,gpu,model\na,24000,512000,8,T4\nb,24000,512000,8,V100\n' >"$dir/nodes.csv"
printf 'job,submit_s,duration_s,gpus,gpu_type\nx,0,3600,2,T4\ny,0,3600,4,V100\n' >"$dir/jobs.csv"
expect 0 cluster whatif --trace "$dir/jobs.csv" --servers "$dir/nodes.csv" --try servers=4 --price T4=1,V100=10 --json
python3 -c "import json,sys; v=json.load(open(sys.argv[1]))['variants']; sys.exit(not (v[0]['cost'] == v[1]['cost'] == 42.0 and v[0]['owned_cost'] == 88.0 and v[1]['owned_cost'] == 176.0))" "$dir/out" || { cat "$dir/out"; fail "prices by type"; }
expect 0 cluster whatif --trace "$dir/jobs.csv" --servers "$dir/nodes.csv" --profiles default --try gpu=T4:A100 --json
prints '"too_large":1'; prints 'any-type'
expect 0 cluster whatif --trace "$dir/jobs.csv" --servers "$dir/nodes.csv" --profiles default --any-type --try gpu=T4:A100
expect 0 cluster whatif --trace philly_small --nodes 6 --policy maifs --try weight:t0=8 --try maifs.window=8

for change in servers=x servers=0 servers=-8 servers gpu= gpu=A100 weight:t0=0 maifs.window=8 servers=2,servers=3; do
    expect 2 cluster whatif $run --try $change; says "try"; quiet
done
expect 2 cluster whatif $run --try polcy=maifs; says "did you mean policy"
expect 2 cluster whatif $run --try policy=tiresas; says "did you mean tiresias"
expect 2 cluster whatif $run --try wieght:t0=2; says "did you mean weight"
expect 2 cluster whatif $run --try weight:t99=2; says "no tenant 't99'"
expect 2 cluster whatif $run --profiles default --try gpu=A1000; says "did you mean a100"
expect 2 cluster whatif $run --profiles default --gpu H9 --try servers=9; says "no such type"
expect 2 cluster whatif $run --try servers=9 --price cheap; says "price per GPU hour"
expect 2 cluster whatif $run --try servers=9 --price V100=1; says "one price for all"
expect 2 cluster whatif --trace philly_small --nodes 1 --try servers=9; says "do not fit"; quiet
