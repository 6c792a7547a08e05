#!/bin/sh
# cluster simulate: usage, the promised JSON and CSV, profiles and classes, rules of published simulators.
. "$SRC/tests/cli/expect.sh"
json() { # FILE EXPRESSION: of the parsed document d, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$1: not so: $2"
}

expect 0 cluster simulate --help; prints "examples:"; prints "usage: cotenant cluster simulate"
expect 2 cluster simulate; says "give --trace FILE"; quiet
expect 2 cluster simulate --trace philly_small --policy nobody; says "no policy 'nobody'"; quiet
expect 2 cluster simulate --trace philly_small --policy fifo,srtf; says "one policy"; quiet
expect 2 cluster simulate --trace philly_small --servers 4; says "nodes says how many"; quiet
expect 2 cluster simulate --trace philly_small --like someone; says "own, lucid, synergy or muri"; quiet
expect 2 cluster simulate --trace philly_small --nodes 1; says "max-gpus leaves such jobs out"; quiet
expect 2 cluster simulate --trace philly_small --mix res50:1; says "come from --profiles"; quiet
expect 2 cluster simulate --trace philly_small --like own --quota absent=4; says "no jobs of it"; quiet
expect 2 cluster simulate --trace philly_small --like own --quota a=x; says "give GPUs as"; quiet
expect 1 cluster simulate --trace "$dir/absent.csv"; says "absent.csv"; quiet

run="cluster simulate --trace philly_small --nodes 6 --policy srtf"
expect 0 $run --json --jobs-out "$dir/a.csv"; cp "$dir/out" "$dir/a.json"
expect 0 $run --jobs-out "$dir/b.csv"; prints "^completion"; prints "policy: srtf$"
cmp -s "$dir/a.csv" "$dir/b.csv" || fail "the same run gave other jobs"
for k in jct_mean_s jct_p50_s jct_p99_s makespan_s queue_mean_s preemptions wall_s; do json "$dir/a.json" "d['$k'] >= 0"; done
[ "$(head -n 1 "$dir/a.csv")" = "job,submit_s,start_s,finish_s,gpus,preemptions" ] || fail "the head of the jobs' file"
python3 - "$dir/a.csv" "$dir/a.json" <<'END' || fail "the jobs' file and the summary disagree"
import csv, json, sys
rows, d = list(csv.DictReader(open(sys.argv[1]))), json.load(open(sys.argv[2]))
assert len(rows) == d["jobs"] == 600
jct = [float(r["finish_s"]) - float(r["submit_s"]) for r in rows]
assert abs(sum(jct) / 600 - d["jct_mean_s"]) < 1e-6 * d["jct_mean_s"]
assert sum(int(r["preemptions"]) for r in rows) == d["preemptions"] > 0
assert all(float(r["submit_s"]) <= float(r["start_s"]) < float(r["finish_s"]) for r in rows)
END

# A job stops at most as often as --max-stops says.
expect 0 $run --like own --profiles default --max-stops 1 --jobs-out "$dir/c.csv"
[ "$(cut -d, -f6 "$dir/c.csv" | sort -u | tr '\n' ' ')" = "0 1 preemptions " ] || fail "jobs stopped more than once"

# With profiles, policies that resize jobs are faster than others; a mix of insensitive jobs leaves nothing to gain.
jct() { python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['jct_mean_s'])" "$dir/out"; }
for p in synergy_fair synergy_tune; do
    expect 0 cluster simulate --trace philly_small --nodes 6 --policy $p --json; jct >"$dir/$p.plain"
    expect 0 cluster simulate --trace philly_small --nodes 6 --policy $p --profiles default --min-run 0 --max-stops 0 --json; jct >"$dir/$p.default"
done
cmp -s "$dir/synergy_fair.plain" "$dir/synergy_tune.plain" || fail "without profiles there is nothing to tune"
python3 -c "import sys; a, b = (float(open(f).read()) for f in sys.argv[1:]); sys.exit(not b < 0.95 * a)" \
    "$dir/synergy_fair.default" "$dir/synergy_tune.default" || fail "tuning does not pay with profiles"
expect 3 cluster simulate --trace philly_small --nodes 6 --profiles default --mix nothing:1; says "no class 'nothing'"; quiet

# Whole GPUs and seconds are run by Lucid's rules, from the first job on; what says more is not.
printf 'job,submit_s,duration_s,gpus\na,7,100,4\nb,17,20,8\n' >"$dir/two.csv"
expect 0 cluster simulate --trace "$dir/two.csv" --nodes 1 --policy srtf --jobs-out "$dir/two.out" --json
json "$dir/out" "d['like'] == 'lucid'"
[ "$(sed -n 's/^b,//p' "$dir/two.out")" = "10,10,31,8,0" ] || { cat "$dir/two.out"; fail "lucid is not what it is run like"; }
expect 0 cluster simulate --trace "$dir/two.csv" --nodes 1 --policy srtf --like own --json; json "$dir/out" "d['like'] == 'own'"
expect 0 cluster simulate --trace "$dir/two.csv" --nodes 1 --policy srtf --profiles default --json; json "$dir/out" "d['like'] == 'own'"
printf 'job,submit_s,duration_s,gpus\na,7.5,100,4\nb,17,20,8\n' >"$dir/two.csv"
expect 0 cluster simulate --trace "$dir/two.csv" --nodes 1 --policy srtf --json; json "$dir/out" "d['like'] == 'own'"

# The published simulators' rules: seconds for one; rounds, iterations and tables for the other.
printf 'job,submit_s,duration_s,gpus\na,0,100,4\nb,10,20,8\nc,20,30,4\n' >"$dir/three.csv"
expect 0 cluster simulate --trace "$dir/three.csv" --like lucid --nodes 1 --policy srtf --jobs-out "$dir/three.out" --json
[ "$(sed -n 's/^b,//p' "$dir/three.out")" = "10,10,31,8,0" ] || { cat "$dir/three.out"; fail "lucid's second is not there"; }
printf 'set,model,gpus,cpus_per_gpu,mem_gb_per_gpu,norm_throughput\n' >"$dir/speed.csv"
for m in alexnet:2 res50:1; do
    for c in 3 6; do for g in 62.5 125; do
        v=1; [ $c = 6 ] && v=${m#*:}
        echo "models,${m%:*},1,$c,$g,$v"
    done; done
done >>"$dir/speed.csv"
printf 'model,gpus,iteration_s\nalexnet,1,0.5\nres50,1,0.5\nvae,1,0.5\n' >"$dir/rates.csv"
printf '0,alexnet,0.0,2400,1\n1,res50,0.001,2400,1\n2,vae,0.002,2400,1\n' >"$dir/small.trace"
synergy="cluster simulate --trace $dir/small.trace --format synergy --rates $dir/rates.csv --like synergy --nodes 1"
expect 0 $synergy --profiles "$dir/speed.csv" --policy synergy_tune --jobs-out "$dir/tune.csv"
expect 0 $synergy --policy synergy_fair --jobs-out "$dir/fair.csv"
[ "$(cut -d, -f4 "$dir/tune.csv" | tr '\n' ' ')" = "finish_s 601 1201 601 " ] || { cat "$dir/tune.csv"; fail "tuned rounds"; }
[ "$(cut -d, -f4 "$dir/fair.csv" | tr '\n' ' ')" = "finish_s 1201 1201 1201 " ] || { cat "$dir/fair.csv"; fail "fair rounds"; }
