# tools/bench-ort without npm or network says what to do; with ONNX Runtime at hand a small comparison agrees,
# reports in the promised form, and fails when no difference is allowed.
build=$(dirname "$COTENANT")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/path" "$dir/build" || exit 1
for tool in sh dirname mkdir uname cp cmp tail mv rm; do
    ln -s "$(command -v $tool)" "$dir/path/$tool" || exit 1
done
bad=0
wrong() { echo "$*"; bad=1; }
refused() { # WORDS: a run with nothing installed fails with them
    if PATH=$dir/path "$SRC/tools/bench-ort" "$dir/build" > "$dir/said" 2>&1; then wrong "not refused: $1"; fi
    grep -qF -- "$1" "$dir/said" || { wrong "no word of: $1"; cat "$dir/said"; }
}

case $(uname -m) in x86_64 | aarch64)
    refused 'apt-get install npm'
    printf '#!%s/sh\necho "ENOTFOUND registry"; exit 1\n' "$dir/path" > "$dir/path/npm"
    chmod +x "$dir/path/npm"
    refused 'is there a network?'
    refused 'ENOTFOUND registry'
esac
[ $bad = 0 ] || exit 1

library=$(find "$build/bench/npm/node_modules" -path "*linux*/libonnxruntime.so.1" 2> /dev/null |
    grep "/$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')/")
[ -n "$library" ] && [ -x "$build/bench_ort" ] || {
    echo "skipped: no ONNX Runtime below $build/bench/npm; make bench-ort brings it"
    exit 77
}
"$COTENANT" zoo write lstm_kws "$dir/model.onnx" > "$dir/said" || exit 1
bench() { "$build/bench_ort" --lib "$library" --seconds 0.01 --out "$dir/out.json" "$@" > "$dir/said" 2> "$dir/err"; }

bench --json --threads 1 "$dir/model.onnx" || { wrong "the comparison failed"; cat "$dir/said" "$dir/err"; }
cmp -s "$dir/said" "$dir/out.json" || wrong "--json and --out differ"
for word in '"models":\[{"name":"'"$(basename "$dir")"'","threads":1,"ours_ms":[0-9.e-]*,"ort_ms":[0-9.e-]*,"ratio":' \
    '"geomean":{"1":[0-9.e-]*}' '"agrees":true'; do
    grep -q "$word" "$dir/out.json" || { wrong "not in the report: $word"; cat "$dir/out.json"; }
done
if bench --threads 1 --tolerance 0 "$dir/model.onnx"; then wrong "a difference was let pass"; fi
grep -q DISAGREES "$dir/said" || { wrong "the table hides a difference"; cat "$dir/said"; }
if bench --threads 1 "$dir/absent.onnx"; then wrong "an absent file was let pass"; fi
grep -q 'FAILED absent' "$dir/said" || { wrong "the table hides a failure"; cat "$dir/said"; }
exit $bad
