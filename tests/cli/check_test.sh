#!/bin/sh
# check: models, memory, cores, ports, paths without starting; every problem at once; exit code and words of serve.
. "$SRC/tests/cli/expect.sh"
for v in $(env | sed -n 's/^\(COTENANT_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
XDG_CACHE_HOME=$dir; export XDG_CACHE_HOME
any="--http 127.0.0.1:0 --grpc 127.0.0.1:0 --metrics 127.0.0.1:0"

expect 0 check $any
prints "^ok  *model  *keyword 1: .* nodes, about .* MiB"; prints "^ok  *http  *127.0.0.1:0 is free"; prints "^problems: 0"
expect 0 check $any --json
python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not (d['ok'] and d['problems'] == 0 and {f['of'] for f in d['findings']} >= {'model', 'cores', 'memory', 'descriptors', 'policy', 'store', 'http'}))" "$dir/out" || fail "the JSON is not as promised"

# All that is wrong, in one run.
mkdir -p "$dir/repo/cut/1" "$dir/repo/fits/1" "$dir/repo/other/1" "$dir/repo/bad/1"
"$COTENANT" zoo write lstm_kws "$dir/repo/fits/1/model.onnx" 2>/dev/null
head -c 1000 "$dir/repo/fits/1/model.onnx" >"$dir/repo/cut/1/model.onnx"
cp "$dir/repo/fits/1/model.onnx" "$dir/repo/other/1/model.onnx"
echo 'input { name: "nobody" }' >"$dir/repo/other/config.pbtxt"
cp "$dir/repo/fits/1/model.onnx" "$dir/repo/bad/1/model.onnx"
echo 'max_batch_size: -1' >"$dir/repo/bad/config.pbtxt"
expect 3 check "$dir/repo" zoo:vgg16 $any --policy slak --cores 256 --set vgg16.memory_mb=9 --set fits.min_cores=255 --set cut.min_cores=9 \
    --log-file "$dir/none/x.log" --store "$dir/none/y.db" --drain-ms never
for of in "configuration  flag --drain-ms: drain_ms: 'never' is not a whole number" "model  *cut 1: byte 16" \
    "model  *other 1: config.pbtxt:1: the model has no input 'nobody'" "model  *bad 1: .*config.pbtxt:1:17: max_batch_size" \
    "model  *vgg16 1: its weights need .* MiB of memory; the limit is 9 MiB" "policy  *no policy 'slak'; did you mean slack?" \
    "configuration  flag --cores: cores is 256, but" "configuration  models reserve 264 cores" \
    "configuration  flag --log-file: .*$dir/none" "configuration  flag --store: cannot use $dir/none"; do
    prints "^problem  *$of"
done
prints "^ok  *model  *fits 1: 4 nodes"; prints "^problems: 10,"
expect 3 check "$dir/absent.onnx" $any; prints "$dir/absent.onnx does not exist"

# check and serve refuse the same configurations, with the same words and exit code.
printf 'my notes' >"$dir/notes"
printf 'modles:\n  - zoo:lstm_kws\n' >"$dir/typo.yaml"
printf 'models:\n  - path: zoo:lstm_kws\n    target_m: 3\n' >"$dir/key.yaml"
refused() { # CODE WORDS ARGUMENTS...
    want=$1; words=$2; shift 2
    expect "$want" check $any "$@"; prints "^problem .*$words"
    expect "$want" serve $any "$@"; says "$words"
    [ "$(cat "$dir/notes")" = 'my notes' ] || fail "the file of another program was replaced"
}
refused 3 "cores is 99, but CPU affinity and quota allow [0-9]*; lower it" zoo:lstm_kws --cores 99
refused 3 "models reserve 2 cores (min_cores), but there are 1; lower some" zoo:lstm_kws a=zoo:lstm_kws --set min_cores=1 --cores 1
refused 3 "model lstm_kws: min_cores 250 is more than all [0-9]* cores" zoo:lstm_kws --set min_cores=250
refused 3 "no policy 'slak'; did you mean slack?" zoo:lstm_kws --policy slak
refused 3 "policy-set slack.safty=1: .*did you mean safety?" zoo:lstm_kws --policy-set slack.safty=1
refused 3 "cannot use $dir/notes as profile store: it is not a profile store of cotenant; it is left as it is" zoo:lstm_kws --store "$dir/notes"
refused 3 "cannot use $dir as profile store: it is a folder" zoo:lstm_kws --store "$dir"
refused 3 "log_file: cannot write the log to $dir/none/x" zoo:lstm_kws --log-file "$dir/none/x"
refused 3 "$dir/repo/fits/1/model.onnx is not a log" zoo:lstm_kws --log-file "$dir/repo/fits/1/model.onnx"
printf 'models:\n  - zoo:lstm_kws\n' >"$dir/fine.yaml"; cp "$dir/fine.yaml" "$dir/fine"
refused 3 "log_file: $dir/fine.yaml is the configuration" --config "$dir/fine.yaml" --log-file "$dir/fine.yaml"
cmp -s "$dir/fine" "$dir/fine.yaml" || fail "the configuration was written to"
refused 3 "cannot use /dev/null as profile store: it is a device" zoo:lstm_kws --store /dev/null
refused 3 "typo.yaml:1: there is no section modles; did you mean models?" --config "$dir/typo.yaml"
refused 3 "key.yaml:3: there is no setting target_m; did you mean target_ms?" --config "$dir/key.yaml"
refused 3 "there is no setting quee; did you mean queue?" zoo:lstm_kws --set quee=3
refused 3 "no network resnet5 in the zoo; did you mean zoo:resnet50?" zoo:resnet5
expect 5 check $any "$dir/repo/cut"; prints "^problem  *model  *cut 1: byte 16"
expect 5 serve $any "$dir/repo/cut"; says "msg=\"model unavailable\" model=cut .*byte 16"
expect 0 check $any "$dir/repo/cut" --set required=false; prints "^warning  *model  *cut 1: byte 16"
"$COTENANT" compile lstm_kws --store "$dir/notes" >"$dir/out" 2>&1 && fail "compile replaced a file of another program"
grep -q "notes as profile store: it is not a profile store" "$dir/out" || fail "compile does not say why"

# The store in the cache directory is left out with a warning.
mkdir -p "$dir/cache/cotenant"; cp "$dir/notes" "$dir/cache/cotenant/profiles-1.db"
XDG_CACHE_HOME=$dir/cache expect 0 check $any zoo:lstm_kws; prints "^warning  *store .*profiles-1.db"
cmp -s "$dir/notes" "$dir/cache/cotenant/profiles-1.db" || fail "the file in the cache directory was replaced"

# An address that others reach is not listened at, not even for a moment.
expect 3 check --http 0.0.0.0:0 --grpc off --metrics off; prints "allow it with --expose"
if grep -q '0.0.0.0:0 is free' "$dir/out"; then fail "it listened where it may not"; fi

# A port in use: exit code 4. The file of a socket is removed.
python3 - "$COTENANT" <<'PY' || fail "a taken port is not told"
import socket, subprocess, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1)
at = "127.0.0.1:%d" % s.getsockname()[1]
r = subprocess.run([sys.argv[1], "check", "zoo:lstm_kws", "--http", at, "--grpc", "off", "--metrics", "off"], capture_output=True, text=True)
sys.exit(not (r.returncode == 4 and "problem  http" in r.stdout and at in r.stdout))
PY
expect 0 check zoo:lstm_kws --http "unix:$dir/a.sock" --grpc off --metrics off
[ ! -e "$dir/a.sock" ] || fail "the socket's file is still there"
(ulimit -n 200; expect 0 check zoo:lstm_kws $any; prints "^warning  *descriptors .* but the limit is 200") || exit 1
