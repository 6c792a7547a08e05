#!/bin/sh
# Command-line conventions: results on stdout, the rest on stderr, exit codes, --help everywhere.
. "$SRC/tests/cli/expect.sh"

expect 0; prints "conformance"
expect 0 --help
[ "$(sed -n 's/:$//p' "$dir/out" | head -1)" = serving ] || fail "serving is not the first group"
[ "$(grep -m1 '^  ' "$dir/out" | cut -d' ' -f3)" = serve ] || fail "serve is not the first command"
# Every command of the table has a usage line and examples of itself.
sed -n 's/^  \([a-z][a-z ]*[a-z]\)  *[a-z].*/\1/p' "$dir/out" | sed 's/  .*//' >"$dir/commands"
[ "$(wc -l <"$dir/commands")" = "$(grep -c "^X(" "$SRC/src/cli/commands.def")" ] || fail "the overview lists $(wc -l <"$dir/commands") commands"
while read -r c; do
    expect 0 $c --help; prints "^usage: cotenant $c"; prints "^examples:$"; prints "^  cotenant $c"
done <"$dir/commands"
expect 0 version; prints "^cotenant [0-9]"
expect 0 zoo --help; prints "zoo write"
expect 2 zoo; quiet
expect 2 nonsense; says "no command 'nonsense'"; quiet

# A mistyped word gets a suggestion and exit code 2.
meant() { # SUGGESTION ARGUMENTS...
    m=$1; shift; expect 2 "$@"; says "did you mean $m?"; quiet
}
meant serve sreve; meant "zoo write" zoo wirte a b; meant "cluster simulate" cluster simlate --trace x
meant "cluster trace stats" cluster trace stat x; meant "config dump" config dmup; meant check chekc
meant --threads run a.onnx --thraeds 3; meant --http serve --htpp=127.0.0.1:0; meant --policy check --polcy fcfs
meant slack node simulate --policy slak; meant slack node policies slak; meant light node simulate --mix lihgt
meant node conformance --suite nod; meant duo node simulate --machine doo
expect 2 run --json=3 a; says "json takes no value"; quiet
expect 2 run -z a; says "unknown option -z"; quiet
expect 2 cluster trace; says "cluster trace synth"; quiet
expect 2 '' ; quiet
expect 2 "$(printf '%05000d' 0)"; quiet
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
