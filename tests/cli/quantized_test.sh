#!/bin/sh
# Quantised networks, compiled for every instruction set: QLinear and integer operators equal the reference kernels
# exactly; layers between QuantizeLinear and DequantizeLinear differ by at most one quantum, in few elements.
. "$SRC/tests/cli/expect.sh"
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || exit 77
/usr/bin/python3 "$SRC/tests/cli/quantized_models.py" "$dir"
isas=
for isa in baseline avx2 avxvnni avx512; do
    ! COTENANT_ISA=$isa "$COTENANT" run "$dir/exact/dynamic.onnx" >"$dir/out" 2>&1 || isas="$isas $isa"
done
[ -n "$isas" ] || { cat "$dir/out"; fail "no instruction set runs"; }
for kind in exact qdq; do
    for file in "$dir/$kind"/*.onnx; do
        name=$(basename "$file" .onnx)
        expect 0 run "$file" --reference --output "$dir/$kind-want/$name"
        for isa in $isas; do
            export COTENANT_ISA=$isa
            expect 0 run "$file" --threads 2 --output "$dir/$kind-$isa/$name"
        done
        unset COTENANT_ISA
    done
done
/usr/bin/python3 - "$dir" <<'P' || fail "answers differ from the reference"
import glob, os, sys
import numpy as np
compared = 0
for want in glob.glob(sys.argv[1] + '/*-want/*/y.npy'):
    exact = '/exact-want/' in want
    b = np.load(want).astype(np.int64)
    for isa in ('baseline', 'avx2', 'avxvnni', 'avx512'):
        path = want.replace('-want/', '-%s/' % isa)
        if not os.path.exists(path):
            continue
        difference = np.abs(np.load(path).astype(np.int64) - b)
        share = (difference > 0).mean()
        compared += 1
        assert len(np.unique(b)) > 8, 'the network %s says nothing' % want
        assert difference.max() <= (0 if exact else 1) and share <= (0 if exact else 0.01), \
            '%s: by %d, in a share of %g' % (path, difference.max(), share)
assert compared >= 150
P
# The layers are computed with bytes.
expect 0 compile "$dir/qdq/conv_relu_uint8.onnx" --no-store
prints 'int8 tile'
expect 0 compile "$dir/exact/dynamic.onnx" --no-store
prints 'int8 tile'
# A sum of a convolution's bytes is computed by the convolution, unless another layer reads those bytes too.
for type in uint8 int8; do
    for network in odd wide grouped chained both; do
        expect 0 compile "$dir/exact/residual_${network}_$type.onnx" --no-store
        prints '^ *[0-9]* *s *QLinearConv'
    done
    expect 0 compile "$dir/exact/residual_shared_$type.onnx" --no-store
    prints '^ *[0-9]* *c *QLinearConv'
done
# The operator-oriented format has no layer of reference kernels or floats between its ends.
for type in uint8 int8; do
    expect 0 compile "$dir/qdq/block_$type.onnx" --no-store
    prints 'QGemm'
    prints '^8 steps'
done
