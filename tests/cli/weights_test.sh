#!/bin/sh
# --weights of run and compile, and the setting of serve: on every instruction set, programs with weights of 16 and 8 bits
# compute what the reference kernels compute with rounded weights, and a server what `run` computes.
. "$SRC/tests/cli/expect.sh"
check() { /usr/bin/python3 -W ignore "$SRC/tests/cli/weights.py" "$@"; }
check write "$dir"
outputs() { # FOLDER ARGUMENTS...: of one run
    to=$dir/$1; shift
    rm -rf "$to"; mkdir "$to"
    expect 0 run "$@" --output "$to"
}
for rows in 1 3 20; do
    for width in fp16 int8; do
        outputs want_${width}_$rows "$dir/${width}_mlp$rows.onnx" --input "x=$dir/x$rows.npy" --reference
    done
done
every_program() {
    for rows in 1 3 20; do
        outputs fp32_$rows "$dir/mlp$rows.onnx" --input "x=$dir/x$rows.npy" --weights fp32
        for width in fp16 int8; do
            outputs got_${width}_$rows "$dir/mlp$rows.onnx" --input "x=$dir/x$rows.npy" --weights $width --threads 2
        done
    done
}
for isa in baseline avx2 avx512; do
    COTENANT_ISA=$isa "$COTENANT" run lstm_kws > "$dir/out" 2> "$dir/err" || {
        grep -q 'cannot run' "$dir/err" && continue
        cat "$dir/err"; exit 1
    }
    export COTENANT_ISA=$isa
    every_program
    unset COTENANT_ISA
    check check "$dir" $isa
done

# compile reports bytes, errors of the weights and of the outputs, and layers that stay as they are.
for width in fp16 int8; do
    expect 0 compile "$dir/mlp3.onnx" --weights $width --no-store --cores 1 --json
    check report "$dir/out" $width
done
expect 0 compile "$dir/mlp3.onnx" --weights int8 --no-store --cores 1
prints 'int8 weights: 2 layers narrowed from 0.7 to 0.2 MB, 0 as in the file'
prints "output 'y' on random inputs: differs by at most"
expect 0 compile squeezenet1_1 --weights fp16 --no-store --cores 1; prints 'convolution kernels read 32-bit weights'
expect 0 compile lstm_kws --weights int8 --no-store --cores 1; prints 'recurrent kernels read 32-bit weights'
expect 0 compile "$dir/mlp3.onnx" --weights fp32 --no-store --cores 1 --json
! grep -q '"weights"' "$dir/out" || fail "weights as in the file are reported"

for command in run compile; do
    expect 2 $command "$dir/mlp3.onnx" --weights in8; says "'in8' is not one of fp32, fp16, int8; did you mean int8?"
done
expect 2 run "$dir/mlp3.onnx" --weights int8 --reference; says 'leave out --weights'
expect 3 check "m=$dir/mlp1.onnx" --set m.weights=in8; prints "'in8' is not one of fp32, fp16, int8; did you mean int8?"
expect 3 check "m=$dir/mlp1.onnx" --set m.weight=int8; prints 'did you mean weights?'

every_program
mkdir -p "$dir/repository/narrow/1"
cp "$dir/mlp1.onnx" "$dir/repository/narrow/1/model.onnx"
echo 'parameters { key: "qos.weights" value { string_value: "int8" } }' > "$dir/repository/narrow/config.pbtxt"
cat > "$dir/cotenant.yaml" <<YAML
sources: [repository]
models:
  - {name: wide, path: mlp1.onnx}
  - {name: half, path: mlp1.onnx, weights: fp16}
  - {name: open, path: mlpn.onnx}
YAML
"$COTENANT" serve --config "$dir/cotenant.yaml" --set open.weights=int8 --http 127.0.0.1:0 --grpc off --metrics 127.0.0.1:0 \
    --store "$dir/store" --log-level error --drain-delay-ms 0 --drain-ms 200 > "$dir/addresses" 2> "$dir/log" &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT
for _ in $(seq 300); do [ -s "$dir/addresses" ] && break; sleep 0.1; done
http=$(sed -n 's/.*http \([0-9.:]*\).*/\1/p' "$dir/addresses")
metrics=$(sed -n 's/.*metrics \([0-9.:]*\).*/\1/p' "$dir/addresses")
[ -n "$http" ] && [ -n "$metrics" ] || { cat "$dir/log"; fail "no addresses: $(cat "$dir/addresses")"; }
check serve "$dir" "$http" "$metrics"
kill $server
wait $server || fail "the server ended with $?: $(cat "$dir/log")"
