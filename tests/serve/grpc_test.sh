#!/bin/sh
# An independent gRPC client (grpcio): every call, inference raw and typed, deadlines, cancelled calls.
. "$SRC/tests/cli/expect.sh"
skip() { echo "skipped: $1"; exit 77; }
/usr/bin/python3 -c 'import onnx' 2> /dev/null || skip "python3-onnx is missing"
/usr/bin/python3 -c 'import grpc' 2> /dev/null || skip "python3-grpcio is missing"
here=$SRC/tests/serve/grpc
mkdir "$dir/pb"
protoc --proto_path="$here" --python_out="$dir/pb" inference.proto health.proto

/usr/bin/python3 "$here/models.py" "$dir"
"$COTENANT" zoo write squeezenet1_1 "$dir/squeezenet1_1.onnx" > /dev/null 2>&1
server=
stop() { [ -z "$server" ] || { kill "$server" 2> /dev/null; wait "$server"; } || true; server=; }
trap 'stop; rm -rf "$dir"' EXIT

start() { # ARGUMENTS...: a server; HTTP and GRPC are its addresses
    : > "$dir/said"
    env COTENANT_STORE="$dir/store" "$COTENANT" serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 --metrics off \
        --drain-delay-ms 0 "$@" > "$dir/said" 2> "$dir/log" &
    server=$!
    for _ in $(seq 600); do
        grep -q grpc "$dir/said" && break
        kill -0 "$server" 2> /dev/null || { cat "$dir/log"; server=; fail "the server did not start"; }
        sleep 0.1
    done
    HTTP=$(sed -n 's/.*http \([^,]*\).*/\1/p' "$dir/said") GRPC=$(sed -n 's/.*grpc \([^,]*\).*/\1/p' "$dir/said")
    [ -n "$GRPC" ] || { cat "$dir/log"; fail "the server does not say where it is"; }
    export HTTP GRPC DIR="$dir" PB="$dir/pb" PYTHONDONTWRITEBYTECODE=1
}
play() { timeout 120 /usr/bin/python3 "$here/$1.py" || { tail -n 20 "$dir/log"; fail "$1.py failed"; }; }
ended() { # after SIGTERM, as it should
    kill "$server"; code=0; wait "$server" || code=$?; server=
    [ "$code" = 0 ] || { tail -n 20 "$dir/log"; fail "the server ended with $code"; }
}

start "$dir/echo.onnx" "$dir/rows.onnx" "$dir/squeezenet1_1.onnx"
play calls
play times
play stream
ended

start "$dir/echo.onnx" "$dir"/echo_*.onnx "$dir/rows.onnx" "$dir/squeezenet1_1.onnx" --shapes 8 --set rows.queue=4096 --set rows.target_ms=60000
play infer
ended

start "$dir/rows.onnx" --admin http
play admin
ended
