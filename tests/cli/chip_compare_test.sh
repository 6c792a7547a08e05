#!/bin/sh
# chip compare: usage, the promised JSON, the same bytes for the same seed, page and trace, bad packages.
. "$SRC/tests/cli/expect.sh"
json() { # FILE EXPRESSION: of the parsed document d, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$1: not so: $2"
}

expect 0 chip compare --help; prints "examples:"; prints "usage: cotenant chip compare"
expect 2 chip; quiet
expect 2 chip compare extra; quiet
expect 2 chip compare --mix lihgt; says "did you mean light"; quiet
expect 2 chip compare --mix light,,heavy; says "a name is missing"; quiet
expect 2 chip compare --mix light,light; says "named twice"; quiet
expect 2 chip compare --chip 4+5; says "did you mean 4+4"; quiet
expect 2 chip compare --policies nobody; says "no policy 'nobody'; there are fcfs"; quiet
expect 2 chip compare --policies edf,edf; says "named twice"; quiet
expect 2 chip compare --subject nobody; says "no such policy"; quiet
expect 2 chip compare --load much; says "'much' is not a number"; quiet
expect 2 chip compare --load 0; says "is not a number from"; quiet
expect 2 chip compare --load 0.5,0.50; says "named twice"; quiet
expect 2 chip compare --bandwidth 16,-1; says "'-1' is not a number"; quiet
expect 2 chip compare --traces 0; says "whole number"; quiet
expect 2 chip compare --deadlines never; says "there are moca, planaria, mlperf"; quiet
expect 2 chip compare --sharing never; says "there are equal, maxmin"; quiet
expect 2 chip compare --set edf.strange=1; says "strange"; quiet
expect 2 chip compare --policies edf --sweep; says "has a network"; quiet

# Packages that are no packages: the file and the place are named.
sed 's/^units:.*/units: 2 abacus/' "$SRC/data/chips/2+2.yaml" >"$dir/kinds.yaml"
sed 's/^bytes_cycle:.*/bytes_cycle: lots/' "$SRC/data/chips/2+2.yaml" >"$dir/word.yaml"
sed 's/^bytes_cycle/bytes_cykle/' "$SRC/data/chips/2+2.yaml" >"$dir/key.yaml"
sed 's/^units:.*/units: 4 eyeriss/' "$SRC/data/chips/2+2.yaml" >"$dir/cannot.yaml"
for f in kinds word key; do expect 3 chip compare --chip "$dir/$f.yaml"; says "$f.yaml"; quiet; done
expect 3 chip compare --chip "$dir/cannot.yaml" --mix mobilenet_v2; says "mobilenet_v2"; quiet
expect 1 chip compare --chip "$dir/absent.yaml"; says "absent.yaml"; quiet

# The form of the JSON; neither a second run nor another number of threads changes a byte.
few="--mix light,resnet50+lstm_kws --load 0.7,1.2 --bandwidth 16,6 --policies fcfs,edf,relmas,oracle --traces 3 --requests 60"
expect 0 chip compare $few --json --threads 1 -o "$dir/page.html" --trace "$dir/trace.json"
cp "$dir/out" "$dir/one.json"
expect 0 chip compare $few --json --threads 3 -o "$dir/page3.html"
cmp -s "$dir/out" "$dir/one.json" || fail "the number of threads changes the result"
cmp -s "$dir/page.html" "$dir/page3.html" || fail "the number of threads changes the page"
expect 0 chip compare $few --json --seed 500
if cmp -s "$dir/out" "$dir/one.json"; then fail "another seed gave the same result"; fi
json "$dir/one.json" "[(c['mix'], c['load'], c['bandwidth']) for c in d['cells']][:4] == [('light', 0.7, 16), ('light', 0.7, 6), ('light', 1.2, 16), ('light', 1.2, 6)]"
json "$dir/one.json" "len(d['cells']) == 8 and all(c['chip'] == '4+4' for c in d['cells'])"
keys="['policy','sla','sla_ci','sla_half','energy_mj','policy_energy_share','decision_us']"
json "$dir/one.json" "all(list(p)[:7] == $keys for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all([p['policy'] for p in c['policies']] == ['fcfs', 'edf', 'relmas', 'oracle'] for c in d['cells'])"
json "$dir/one.json" "all(0 <= p['sla_ci'][0] <= p['sla'] <= p['sla_ci'][1] <= 1 for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all(p['energy_mj'] > 0 and p['decision_us'] > 0 for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all((p['policy_energy_share'] > 0) == (p['policy'] == 'relmas') for c in d['cells'] for p in c['policies'][:3])"
json "$dir/one.json" "all(p['clairvoyant'] == (p['policy'] == 'oracle') for c in d['cells'] for p in c['policies'])"
json "$dir/one.json" "all(c['best_baseline'] in ('fcfs', 'edf') for c in d['cells'])"
json "$dir/one.json" "d['summary']['champion'] == 'relmas' and len(d['sweep']) == 20"
json "$dir/one.json" "d['summary']['cells_ahead'] + d['summary']['cells_even'] + d['summary']['cells_behind'] == 8"
json "$dir/trace.json" "{e['ph'] for e in d['traceEvents']} >= {'M', 'X'}"
grep -q '<h2>4+4, light, load 0.7, 16 B/cycle</h2>' "$dir/page.html" || fail "the page lacks its section"
if grep -qE '(src|href)="?(https?:)?//' "$dir/page.html"; then fail "the page asks for something from outside"; fi

# Less bandwidth or more load is never better for policies in order of arrival; the oracle is not below a rule.
json "$dir/one.json" "all(c['policies'][3]['sla'] >= max(p['sla'] for p in c['policies'][:2]) - 1e-9 for c in d['cells'])"
json "$dir/one.json" "d['cells'][0]['policies'][0]['sla'] >= d['cells'][1]['policies'][0]['sla']"

# People: a table a cell, then the verdict; what is measured is asked for.
expect 0 chip compare --mix lstm_kws+squeezenet1_1 --load 0.6 --policies edf,relmas --traces 2 --requests 40 --measure
prints "^4+4, .*load 0.6, 16 B/cycle"; prints "best baseline"; prints "measured"; prints "^relmas against the best baseline: in time"
expect 0 chip compare --mix lstm_kws --load 0.6 --policies edf --traces 1 --requests 40 --firm --burst 4 --target 0.9 --ts 250
prints "^edf"
