#!/bin/sh
# cluster train: usage, the same weights for the same seed, stopped and resumed, what is refused.
. "$SRC/tests/cli/expect.sh"

expect 0 cluster train --help; prints "examples:"; prints "usage: cotenant cluster train"
expect 2 cluster train extra; quiet
expect 2 cluster train --steps 0; quiet
expect 2 cluster train --policy srtf; says "maifs, stance, drl_single and beliefs can be trained"; quiet
expect 2 cluster train --policy nobody; says "no policy"; quiet
expect 2 cluster train --stages play; says "imitate, learn and finetune"; quiet
expect 2 cluster train --set maifs.window=100000; says "out of range"; quiet
expect 2 cluster train --servers 4,4; says "twice"; quiet

small="cluster train --trace synth:philly_small --servers 2 --jobs 12 --checks 1 --seed 3"
for policy in maifs drl_single stance; do
    run="$small --policy $policy --steps 3"
    expect 0 $run -o "$dir/a.weights" --threads 1; prints "generation"; prints "synergy_tune"; prints "rule"
    expect 0 $run -o "$dir/b.weights" --threads 2 --json; prints '"score"'
    cmp -s "$dir/a.weights" "$dir/b.weights" || fail "$policy: the same seed gave other weights"
    [ ! -e "$dir/a.weights.training" ] || fail "a finished training left a checkpoint"
    expect 0 $run -o "$dir/c.weights" --minutes 0.0001; says "resume with --resume"
    [ -s "$dir/c.weights.training" ] || fail "a stopped training left no checkpoint"
    expect 0 $run -o "$dir/c.weights" --resume "$dir/c.weights.training"
    cmp -s "$dir/a.weights" "$dir/c.weights" || fail "$policy: stopped and resumed, it gave other weights"
    expect 1 $run --seed 4 --resume "$dir/c.weights.training" -o "$dir/d.weights"
    says "not a checkpoint of this training"
    rm "$dir/c.weights.training"

    use="cluster simulate --trace philly_small --policy $policy"
    weights="$policy.weights"
    [ "$policy" = stance ] && use="cluster simulate --trace philly_small --policy maifs" && weights=maifs.stance
    expect 0 $use --set "$weights=$dir/a.weights"; prints "completion"
    expect 0 $use --set "$weights=none"
    head -c 500 "$dir/a.weights" >"$dir/short.weights"
    expect 1 $use --set "$weights=$dir/short.weights"; says "cluster train"; quiet
    expect 1 $use --set "$weights=$dir/absent.weights"; says "absent.weights"; quiet
done
expect 1 cluster simulate --trace philly_small --policy maifs --set "maifs.weights=$dir/a.weights"
says "policy"; quiet

run="cluster train --policy beliefs --steps 3 --seed 3"
expect 0 $run -o "$dir/a.beliefs" --threads 1; prints "work left"
expect 0 $run -o "$dir/b.beliefs" --threads 2 --json; prints '"speed"'
cmp -s "$dir/a.beliefs" "$dir/b.beliefs" || fail "beliefs: the same seed gave other weights"
tune="$run --fine-tune --trace philly_small --from $dir/a.beliefs"
expect 0 $tune -o "$dir/c.beliefs"
cmp -s "$dir/a.beliefs" "$dir/c.beliefs" && fail "beliefs: fine-tuning changed nothing"
expect 1 $run --fine-tune --trace synth:nothing -o "$dir/d.beliefs"
expect 1 $run --fine-tune --trace philly_small --from "$dir/a.weights" -o "$dir/d.beliefs"; says "weights of another network"
use="cluster simulate --trace philly_small --jobs 80 --nodes 2 --max-gpus 16 --profiles default --policy srtf --information blind"
expect 0 $use --estimator "attention:$dir/a.beliefs"
expect 0 $use --estimator "both:$dir/c.beliefs"
expect 1 $use --estimator "both:$dir/a.weights"; says "weights of another network"; quiet
