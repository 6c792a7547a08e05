#!/bin/sh
# Command-line conventions: results on stdout, the rest on stderr, exit codes, --help everywhere.
. "$SRC/tests/cli/expect.sh"

expect 0; prints "conformance"
expect 0 --help; prints "commands:"
expect 0 version; prints "^cotenant [0-9]"
for c in "zoo list" "zoo write" "model show" "model check" run conformance machine serve check bench why version; do
    expect 0 $c --help; prints "examples:"; prints "usage: cotenant $c"
done
expect 0 zoo --help; prints "zoo write"
expect 2 zoo; quiet
expect 2 nonsense; says "no command 'nonsense'"; quiet
expect 2 run; says "usage: cotenant run"; quiet
expect 2 run a b; quiet
expect 2 run --strange; says "unknown option --strange"; quiet
expect 2 zoo write squeezenet1_1 "$dir/f.onnx" --batch zero; says "whole number"; quiet
expect 2 conformance --suite strange; says "no suite 'strange'"; quiet
expect 1 run "$dir/absent.onnx"; says "absent.onnx"; quiet
expect 1 model check "$dir/absent.onnx"; quiet
expect 1 conformance "$dir"; says "libonnx-testdata"; quiet

expect 2 run resnet5; says "resnet50"; quiet
printf 'not a model' >"$dir/bad.onnx"
expect 1 model check "$dir/bad.onnx"; says "bad.onnx"; quiet

expect 0 zoo list; prints "resnet50"
expect 0 zoo write squeezenet1_1 "$dir/s.onnx" --seed 3
expect 0 model check "$dir/s.onnx"; prints "ok"
expect 0 model show "$dir/s.onnx"; prints "total"
expect 0 model show squeezenet1_1 --csv; prints "^name,op,inputs,output,macs,weight_bytes"
expect 2 run "$dir/s.onnx" --input nobody=random; says "no input has that name"; quiet
expect 0 run "$dir/s.onnx" --output "$dir/a" --json; cp "$dir/out" "$dir/run.json"
expect 0 run squeezenet1_1 --seed 3 --output "$dir/b"

# Open dimensions: named by symbol or by place, refused when there is none of that name.
suite=/usr/share/libonnx-testdata/data/simple/test_single_relu_model/model.onnx
expect 2 model show "$suite" --dim n=3; says "no input has such an open dimension"; quiet
expect 2 model show squeezenet1_1 --dim batch=2; says "no input has such an open dimension"; quiet
