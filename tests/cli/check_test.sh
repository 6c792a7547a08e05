#!/bin/sh
# check: models, memory, cores, ports, paths without starting; every problem at once; exit 0, 3 or 4.
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
for of in "configuration  flag --drain-ms: drain_ms: 'never' is not a whole number" "model  *cut 1: " \
    "model  *other 1: config.pbtxt:1: the model has no input 'nobody'" "model  *bad: .*config.pbtxt:1:17: max_batch_size" \
    "model  *vgg16 1 needs about .* MiB, but memory_mb is 9; raise it" "policy  *there is no policy slak; did you mean slack" \
    "cores  *cores is 256, but" "cores  *models reserve 264 cores" "log_file  *cannot write to $dir/none" \
    "store  *cannot write to $dir/none"; do
    prints "^problem  *$of"
done
prints "^ok  *model  *fits 1: 4 nodes"; prints "^problems: 10,"
expect 3 check "$dir/absent.onnx" $any; prints "$dir/absent.onnx does not exist"

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
