#!/bin/sh
# chip train and chip explain: usage, the same weights for the same seed, stopped and resumed, what is refused.
. "$SRC/tests/cli/expect.sh"
json() { # FILE EXPRESSION: of the parsed document d, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$1: not so: $2"
}

expect 0 chip train --help; prints "examples:"; prints "usage: cotenant chip train"
expect 2 chip train extra; quiet
expect 2 chip train --steps 0; quiet
expect 2 chip train --hidden 100000; quiet
expect 2 chip train --mix resnet500; says "did you mean resnet50?"; quiet
expect 2 chip train --stages play; says "imitate, learn and finetune"; quiet
expect 2 chip train --set size=100; says "out of range"; quiet
expect 2 chip train --mix light,light; says "twice"; quiet

small="chip train --chip 2+2 --mix lstm_kws --hidden 4 --steps 2 --seed 3"
expect 0 $small -o "$dir/a.weights" --threads 1; prints "generation"; prints "imitate"; prints "the rule without a network"
expect 0 $small -o "$dir/b.weights" --threads 2 --json; prints '"worst_gain"'
cmp -s "$dir/a.weights" "$dir/b.weights" || fail "the same seed gave other weights"
[ ! -e "$dir/a.weights.training" ] || fail "a finished training left a checkpoint"
expect 0 $small -o "$dir/c.weights" --minutes 0.0001; says "resume with --resume"
[ -s "$dir/c.weights.training" ] || fail "a stopped training left no checkpoint"
expect 0 $small -o "$dir/c.weights" --resume "$dir/c.weights.training"
cmp -s "$dir/a.weights" "$dir/c.weights" || fail "stopped and resumed, it gave other weights"
expect 1 chip train --chip 2+2 --mix lstm_kws --hidden 4 --steps 2 --seed 4 --resume "$dir/c.weights.training"
says "not a checkpoint of this training"

# A file that is not weights is neither the result nor the checkpoint, and nothing is trained first.
printf 'my notes' >"$dir/notes"; printf 'my notes' >"$dir/d.weights.training"
expect 3 $small -o "$dir/notes"; says "$dir/notes is not a weights file"; quiet
expect 3 $small -o "$dir/d.weights"; says "$dir/d.weights.training is not a weights file"; quiet
for f in notes d.weights.training; do [ "$(cat "$dir/$f")" = 'my notes' ] || fail "$f was replaced"; done

run="chip simulate --chip 2+2 --mix squeezenet1_1 --policy relmas --requests 100"
expect 0 $run --set "relmas.weights=$dir/a.weights"; prints "policy"
expect 0 $run --set relmas.weights=none
head -c 500 "$dir/a.weights" >"$dir/short.weights"
expect 1 $run --set "relmas.weights=$dir/short.weights"; says "chip train"; quiet
expect 1 $run --set "relmas.weights=$dir/absent.weights"; says "absent.weights"; quiet
printf 'not weights' >"$dir/junk.weights"
expect 1 $run --set "relmas.weights=$dir/junk.weights"; says "junk.weights"; quiet

expect 0 chip explain --help; prints "examples:"
expect 2 chip explain --policy edf; says "only decisions of relmas"; quiet
expect 2 chip explain --mix light --requests 50 --decision 100000000; says "no such decision"; quiet
look="chip explain --mix mixed --load 1.5 --bandwidth 8 --requests 200 --at 10000"
expect 0 $look; prints "^decision"; prints "in demand"; prints "simba 0"; prints "starts on"; prints "ranks before request"
expect 0 $look --json; cp "$dir/out" "$dir/why.json"
json "$dir/why.json" "d['at_us'] >= 10000 and len(d['units']) == 8 and len(d['tasks']) >= 2 and len(d['why']) > 0"
json "$dir/why.json" "all(-1 <= v <= 1 for w in d['window'] for k, v in w.items() if k != 'request')"
json "$dir/why.json" "all(abs(t['size'] + t['slack'] + t['fair'] + t['learned'] - t['worth']) < 1e-3 for t in d['tasks'])"
json "$dir/why.json" "any(p['chosen'] == 'starts' for p in d['pairs'])"
expect 0 $look --json; cmp -s "$dir/out" "$dir/why.json" || fail "the same decision was explained otherwise"
