#!/bin/sh
# Models in float16 and bfloat16: compiled programs against the reference kernels, on every instruction set.
. "$SRC/tests/cli/expect.sh"
python3=/usr/bin/python3
$python3 -W ignore "$SRC/tests/cli/half_precision.py" write "$dir"
run() { # FOLDER OPTIONS...: outputs of all models
    to=$1; shift
    for file in "$dir"/*.onnx; do
        name=$(basename "$file" .onnx)
        mkdir -p "$dir/$to/$name"
        "$COTENANT" run "$file" --output "$dir/$to/$name" "$@" > "$dir/out" 2> "$dir/err" || { cat "$dir/err"; exit 1; }
    done
}
run want --reference
for isa in baseline avx2 avx512; do
    COTENANT_ISA=$isa "$COTENANT" run "$dir/mlp1_float16.onnx" > "$dir/out" 2> "$dir/err" || {
        grep -q 'cannot run' "$dir/err" && continue
        cat "$dir/err"; exit 1
    }
    export COTENANT_ISA=$isa
    run got
    unset COTENANT_ISA
    $python3 -W ignore "$SRC/tests/cli/half_precision.py" check "$dir"
done
# Their products are fast layers, and their weights stay in 16 bits.
"$COTENANT" compile "$dir/mlp40_float16.onnx" > "$dir/out" 2>&1
prints 'gemm tile'
