#!/bin/sh
# config dump: every setting with its value and origin, in the order flag, environment, file, built-in; the manual's file.
. "$SRC/tests/cli/expect.sh"
json() { # EXPRESSION: of the parsed document d on stdout, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($1))" "$dir/out" || fail "not so: $1"
}
for v in $(env | sed -n 's/^\(COTENANT_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done

for c in "config dump" check; do
    expect 0 $c --help; prints "usage: cotenant $c"; prints "examples:"; prints "^addresses:"; prints "^time limits:"
    prints "--http ADDRESS .*default 127.0.0.1:8000; COTENANT_HTTP"
    prints "--drain-delay-ms N .*default 5000; COTENANT_DRAIN_DELAY_MS"
done
expect 2 config; quiet
expect 2 config dump --nonsense; says "unknown option"; quiet

# Built-in: three networks of the zoo.
expect 0 config dump --json
json "d['settings']['http'] == {'value': '127.0.0.1:8000', 'origin': 'built-in'} and d['warnings'] == []"
json "[m['name'] for m in d['models']] == ['keyword', 'mobilenet', 'squeezenet']"
json "all(s['origin'] == 'built-in' for m in d['models'] for s in m['settings'].values())"

# Each layer over the next.
cat >"$dir/cotenant.yaml" <<EOF
http: 127.0.0.1:1
grpc: 127.0.0.1:2
metrics: 127.0.0.1:3
defaults: {queue: 5}
models:
  - {name: a, path: zoo:squeezenet1_1, target_ms: 7}
  - zoo:lstm_kws
EOF
COTENANT_GRPC=127.0.0.1:12 COTENANT_METRICS=127.0.0.1:13 COTENANT_CONFIG=$dir/cotenant.yaml \
    expect 0 config dump --metrics 127.0.0.1:23 --drain-ms 2s --set a.warmup=9 --set max_batch=3 --json
json "[d['settings'][k]['value'] for k in ('http', 'grpc', 'metrics')] == ['127.0.0.1:1', '127.0.0.1:12', '127.0.0.1:23']"
json "d['settings']['http']['origin'].endswith('/cotenant.yaml:1') and d['settings']['grpc']['origin'] == 'COTENANT_GRPC'"
json "d['settings']['metrics']['origin'] == 'flag --metrics' and d['settings']['drain_ms']['value'] == 2000"
json "[m['name'] for m in d['models']] == ['a', 'lstm_kws']"
a="d['models'][0]['settings']"
json "$a['target_ms'] == {'value': 7.0, 'origin': '$dir/cotenant.yaml:6'} and $a['queue']['origin'].endswith(':4')"
json "$a['warmup'] == {'value': 9, 'origin': 'flag --set a.warmup'} and $a['max_batch']['origin'] == 'flag --set max_batch'"
expect 0 config dump "$dir/cotenant.yaml"; prints "^a.target_ms  *7  *$dir/cotenant.yaml:6"; prints "^lstm_kws  *1  *zoo:lstm_kws"
expect 3 config dump "$dir/cotenant.yaml" "$dir/cotenant.yaml"; says "second configuration"; quiet

# A repository; what is wrong with one model is shown beside it.
mkdir -p "$dir/repo/good/3" "$dir/repo/bad/1"
"$COTENANT" zoo write lstm_kws "$dir/repo/good/3/model.onnx" 2>/dev/null
echo 'max_batch_size: {' >"$dir/repo/bad/config.pbtxt"
printf 'parameters { key: "qos.class" value { string_value: "best_effort" } }\nsequence_batching { }\n' >"$dir/repo/good/config.pbtxt"
expect 0 config dump "$dir/repo" --json; says "warning: .*good/config.pbtxt:2: sequence_batching is unknown"
json "[(m['name'], m['version'], m['broken'] is None) for m in d['models']] == [('bad', '1', False), ('good', '3', True)]"
json "d['models'][1]['settings']['class'] == {'value': 'best_effort', 'origin': 'config.pbtxt:1 of model good'}"
json "'config.pbtxt:1:17' in d['models'][0]['broken'] or 'config.pbtxt:1:' in d['models'][0]['broken']"
expect 3 config dump "$dir/repo" --strict; says "bad/config.pbtxt:1:"; quiet

# What is wrong: place, remedy, exit code 3.
echo 'htpp: off' >"$dir/bad.yaml"
expect 3 config dump --config "$dir/bad.yaml"; says "bad.yaml:1: there is no setting htpp; did you mean http?"; quiet
expect 3 config dump --http 0.0.0.0:8000; says "allow it with --expose"; quiet
expect 0 config dump --http 0.0.0.0:8000 --expose
COTENANT_CORES=many expect 3 config dump; says "COTENANT_CORES: cores: 'many' is not a whole number"; quiet
expect 3 config dump zoo:nothing_like_it; says "see cotenant zoo list"; quiet
expect 3 config dump --set keyword.quee=3; says "did you mean queue?"; quiet

# The manual's own example.
sed -n '/^```yaml$/,/^```$/p' "$SRC/docs/serve-config.md" | sed '/^```/d' >"$dir/manual.yaml"
[ -s "$dir/manual.yaml" ] || fail "the manual has lost its example"
mkdir -p "$dir/repository/digits/1"
cp "$dir/repo/good/3/model.onnx" "$dir/detector.onnx"
cp "$dir/detector.onnx" "$dir/repository/digits/1/model.onnx"
expect 0 config dump --config "$dir/manual.yaml" --json
json "[m['name'] for m in d['models']] == ['detector', 'digits', 'mobilenet_v2'] and d['warnings'] == []"
json "all(m['settings']['on_miss']['value'] == 'reject' for m in d['models'])"
