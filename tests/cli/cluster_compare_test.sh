#!/bin/sh
# cluster compare: usage, the promised JSON, the same bytes whatever the threads, pages, servers from files, ablations.
. "$SRC/tests/cli/expect.sh"
json() { # FILE EXPRESSION: of the parsed document d, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$1: not so: $2"
}

expect 0 cluster compare --help; prints "examples:"; prints "usage: cotenant cluster compare"
expect 2 cluster compare extra; quiet
expect 2 cluster compare --policies nobody; says "no policy 'nobody'; there are fifo"; quiet
expect 2 cluster compare --policies fifo,fifo; says "named twice"; quiet
expect 2 cluster compare --policies fifo --subject srtf; says "takes no part"; quiet
expect 2 cluster compare --policies fifo --ablate; says "has parts to take away"; quiet
expect 2 cluster compare --trace philly_small,philly_small; says "named twice"; quiet
expect 2 cluster compare --servers 0; says "0 servers"; quiet
expect 2 cluster compare --servers 99999999999; says "give 1 to"; quiet
expect 2 cluster compare --load much; says "'much' is not a number"; quiet
expect 2 cluster compare --load -1; says "'-1' is not a number"; quiet
expect 2 cluster compare --seeds 0; says "whole number"; quiet
expect 2 cluster compare --set fifo.strange=1; says "strange"; quiet
expect 2 cluster compare --max-duration 1; says "no job is left"; quiet
expect 2 cluster compare --trace openb_small --policies fifo,synergy_tune; says "synergy_tune: synergy needs jobs with whole GPUs"; quiet
expect 2 cluster compare --policies maifs --set maifs.coordination=star; says "there are independent, arbitration"; quiet
expect 2 cluster compare --policies maifs --set maifs.demand=much; says "there are fungible and fixed"; quiet
expect 1 cluster compare --trace philly; says "shipped trace (openb_small, philly_small)"; quiet
expect 1 cluster compare --trace "$dir/absent.csv"; says "absent.csv"; quiet
expect 1 cluster compare --servers "$dir/absent.csv"; says "absent.csv"; quiet
expect 1 cluster compare --profiles "$dir/absent.csv"; says "absent.csv"; quiet
expect 3 cluster compare --trace philly_small --mix res5:1 --policies fifo --jobs 20; says "no class 'res5'"; quiet
printf 'sn,cpu_milli,memory_mib,gpu,model\nn0,lots,1,1,\n' >"$dir/bad.csv"
expect 1 cluster compare --servers "$dir/bad.csv"; says "bad.csv:2: cpu_milli"; quiet

# The form of the JSON; neither a second run nor another number of threads changes a byte.
few="--trace synth:philly_small,openb_small --servers 4,6 --load 0.7,1.2 --policies fifo,srtf,tiresias --seeds 3 --jobs 80 --no-clock"
expect 0 cluster compare $few --json --threads 1 -o "$dir/page.html"
cp "$dir/out" "$dir/one.json"
expect 0 cluster compare $few --json --threads 3 -o "$dir/page3.html"
cmp -s "$dir/out" "$dir/one.json" || fail "the number of threads changes the result"
cmp -s "$dir/page.html" "$dir/page3.html" || fail "the number of threads changes the page"
expect 0 cluster compare $few --json --first-seed 500
if cmp -s "$dir/out" "$dir/one.json"; then fail "other seeds gave the same result"; fi
json "$dir/one.json" "[(c['trace'], c['servers'], c['load']) for c in d['cells']][:4] == [('synth:philly_small', 4, 0.7), ('synth:philly_small', 4, 1.2), ('synth:philly_small', 6, 0.7), ('synth:philly_small', 6, 1.2)]"
json "$dir/one.json" "len(d['cells']) == 8 and all(c['gpus'] == 8 * c['servers'] for c in d['cells'])"
keys="['policy','knows','jct_mean_s','jct_ci_s','makespan_s','makespan_ci_s','queue_mean_s','fairness','decision_us']"
json "$dir/one.json" "all(list(p)[:9] == $keys for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all([(p['policy'], p['knows']) for p in c['policies']] == [('fifo', 'blind'), ('srtf', 'oracle'), ('tiresias', 'blind')] for c in d['cells'])"
json "$dir/one.json" "all(p['jct_ci_s'][0] <= p['jct_mean_s'] <= p['jct_ci_s'][1] for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all(p['jct_p50_s'] <= p['jct_p99_s'] and 0 < p['gpu_use'] <= 1 and 0 < p['fairness'] <= 1 for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all([s['seed'] for s in p['seeds']] == [101, 102, 103] for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all(abs(sum(s['jct_mean_s'] for s in p['seeds']) / 3 - p['jct_mean_s']) < 1e-6 * p['jct_mean_s'] for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all(p['decision_us'] is None for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "d['champion'] == 'fifo' and all(c['best_jct']['policy'] == 'tiresias' for c in d['cells'])"
json "$dir/one.json" "all(c['policies'][0]['jct_ratio'] == 1 for c in d['cells'])"
# More load means more waiting, more servers less; policies that know durations wait less than others.
json "$dir/one.json" "d['cells'][0]['policies'][0]['queue_mean_s'] < d['cells'][1]['policies'][0]['queue_mean_s']"
json "$dir/one.json" "all(c['policies'][1]['queue_mean_s'] <= c['policies'][0]['queue_mean_s'] for c in d['cells'])"
grep -q 'GPUs in use over time' "$dir/page.html" || fail "the page lacks a chart"
grep -q '<h2>synth:philly_small on 4 servers with 32 GPUs, load 0.7</h2>' "$dir/page.html" || fail "the page lacks its section"
if grep -qE '(src|href)="?(https?:)?//' "$dir/page.html"; then fail "the page asks for something from outside"; fi

# Jobs without GPUs run under all that know them; pages draw few lines at first.
printf 'job,submit_s,duration_s,gpus,cores\na,0,100,0,2\nb,1,100,0,4\nc,2,50,0,4\n' >"$dir/cores.csv"
expect 0 cluster compare --trace "$dir/cores.csv" --servers 2 --seeds 1 --jobs 0 --load 0 -o "$dir/cores.html"
prints "^without synergy_fair.*some request none"; prints "^maifs "
[ "$(grep -o '"hidden":true' "$dir/cores.html" | wc -l)" -gt 10 ] || fail "all lines are drawn"
expect 0 cluster compare --policies fifo --seeds 2 --first-seed 5 --jobs 20; prints "the first 60 %"
expect 0 cluster compare --policies fifo --seeds 2 --first-seed 99 --jobs 20; prints "from all of a trace"

# People: a table a cell, decisions timed; predictions; one class alone, no profiles; all policies meet all the built-in jobs.
expect 0 cluster compare --trace philly_small --servers 4 --policies fifo,srtf --seeds 2 --jobs 50 --error 0.5 --subject srtf
prints "^philly_small on 4 servers with 32 GPUs, load 1"; prints "decision"; prints "^srtf .*predicted"; prints "^srtf against the best"
expect 0 cluster compare --policies synergy_fair,synergy_tune --jobs 60 --seeds 2 --json --profiles none
json "$dir/out" "all(p['decision_us'] > 0 for p in d['cells'][0]['policies'])"
json "$dir/out" "d['cells'][0]['policies'][0]['jct_mean_s'] == d['cells'][0]['policies'][1]['jct_mean_s']"
expect 0 cluster compare --policies synergy_fair,synergy_tune --trace synth:philly_small --load 1.5 --jobs 100 --seeds 2 --json
json "$dir/out" "d['cells'][0]['policies'][0]['jct_mean_s'] > d['cells'][0]['policies'][1]['jct_mean_s']"
expect 0 cluster compare --trace synth:philly_small,synth:openb_small --servers 3 --jobs 60 --seeds 2 --json
"$COTENANT" cluster policies --json >"$dir/policies.json"
json "$dir/out" "all({p['policy'] for p in c['policies']} | {m['policy'] for m in c['missing']} == {p['policy'] for p in json.load(open('$dir/policies.json'))} for c in d['cells'])"
json "$dir/out" "'synergy_tune' in [p['policy'] for p in d['cells'][0]['policies']] and all(len({s['jobs'] for s in [p['seeds'][k] for p in c['policies']]}) == 1 for c in d['cells'] for k in (0, 1))"

expect 0 cluster compare --trace philly_small,openb_small --policies synergy_fair,fifo --jobs 30 --seeds 1
prints "^without synergy_fair: synergy needs jobs with whole GPUs"

# Ablations are rows of their own, compared with the whole and no rivals of it.
expect 0 cluster compare --policies srtf,maifs --ablate --jobs 60 --seeds 2 --no-clock --json
json "$dir/out" "d['champion'] == 'maifs' and [p['policy'] for p in d['cells'][0]['policies']][:3] == ['srtf', 'maifs', 'maifs attention=false']"
json "$dir/out" "all(p['part_of'] == 'maifs' for p in d['cells'][0]['policies'][2:]) and d['cells'][0]['best_jct']['policy'] == 'srtf'"

expect 2 cluster compare --policies maifs --ladder tower; says "there is coordination"; quiet
expect 0 cluster compare --policies maifs --ladder coordination --jobs 60 --seeds 1 --no-clock --json
json "$dir/out" "[p['policy'] for p in d['cells'][0]['policies']][1:3] == ['maifs coordination=independent', 'maifs coordination=arbitration']"
json "$dir/out" "all(p['seeds'][0]['jobs'] == 60 for p in d['cells'][0]['policies']) and len(d['cells'][0]['policies']) == 19"

# A cluster from a file; whole traces; times as they are.
{ echo sn,cpu_milli,memory_mib,gpu,model; for i in 1 2 3 4; do echo "n$i,96000,786432,8,V100M32"; done; } >"$dir/nodes.csv"
expect 0 cluster compare --trace openb_small --servers "$dir/nodes.csv" --jobs 0 --load 0 --policies fifo,srtf --seeds 1 --json
json "$dir/out" "d['cells'][0]['servers'] == 4 and d['cells'][0]['load'] == 0 and d['cells'][0]['policies'][0]['jct_ci_s'] is None"
json "$dir/out" "d['cells'][0]['policies'][0]['seeds'][0]['jobs'] + d['cells'][0]['left_out']['too_large'] == 500"
printf 'job,submit_s,duration_s,gpus\n' >"$dir/own.csv"
i=0; while [ $i -lt 60 ]; do echo "j$i,$((i * 30)),$((60 + i * i)),$((1 + i % 3))"; i=$((i + 1)); done >>"$dir/own.csv"
expect 0 cluster compare --trace "$dir/own.csv" --servers 1 --policies fifo,sjf --seeds 2 --mix "res50:3 bert:1"
prints "^sjf"
