#!/bin/sh
# --information and --estimator: the default changes nothing, the sets differ, errors name the option, and experience
# survives in a file.
. "$SRC/tests/cli/expect.sh"
compare="cluster compare --trace synth:philly_small --servers 2 --load 2 --jobs 60 --seeds 2 --no-clock"
expect 0 $compare --policies srtf,optimus --json
cp "$dir/out" "$dir/default"
expect 0 $compare --policies srtf,optimus --json --information perfect --estimator off
cmp -s "$dir/out" "$dir/default" || fail "perfect information is not the default"
expect 0 $compare --policies srtf,optimus,maifs --information realistic
prints "policies are told: durations unknown, profiles library .* rates measured"
expect 0 $compare --policies srtf,optimus,maifs --information blind --estimator on
prints "refined by an estimator"
prints "^srtf .*predicted"
expect 0 $compare --policies srtf --information blind
prints "^srtf .*blind"
expect 2 $compare --information wrong
says "--information wrong: choose perfect, realistic or blind"
expect 2 $compare --estimator maybe
says "--estimator maybe: choose off, own, shared, attention or both"
expect 2 $compare --estimator shared:file
says "only attention and both have weights"
expect 0 $compare --policies srtf,maifs --information realistic --estimator own
prints "refined by an estimator (own)"
expect 0 $compare --policies srtf,maifs --information realistic --estimator both
prints "refined by an estimator (both)"
simulate="cluster simulate --trace philly_small --jobs 80 --nodes 2 --max-gpus 16 --profiles default --policy srtf"
expect 0 $simulate --information blind --estimator on --experience "$dir/records.db" --json
[ -s "$dir/records.db" ] || fail "no records were written"
cp "$dir/out" "$dir/first"
expect 0 $simulate --information blind --estimator on --experience "$dir/records.db" --json
sqlite3 "$dir/other.db" "CREATE TABLE t(x)" 2>/dev/null && {
    expect 1 $simulate --information blind --estimator on --experience "$dir/other.db"
    says "another database"
}
expect 2 $simulate --experience "$dir/records.db"
expect 0 cluster explain --brief --trace philly_small --jobs 80 --nodes 2 --max-gpus 16 --profiles default \
    --policy optimus --information realistic --estimator on
prints "what policies were told"
prints "believed class"
