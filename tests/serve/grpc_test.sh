#!/bin/sh
# A client of gRPC that nobody here wrote: every call, inference raw and typed, deadlines, cancelled calls.
. "$SRC/tests/cli/expect.sh"
skip() { echo "skipped: $1"; exit 77; }
command -v node > /dev/null && command -v npm > /dev/null || skip "nodejs and npm are missing"
/usr/bin/python3 -c 'import onnx' 2> /dev/null || skip "python3-onnx is missing"

# Its packages are fetched once for a build folder, as the lock file has them.
here=$SRC/tests/serve/grpc npm=$(dirname "$COTENANT")/grpc-npm
fetch() {
    rm -rf "$npm.new" && mkdir -p "$npm.new" && cp "$here/package.json" "$here/package-lock.json" "$npm.new" &&
        npm ci --prefix "$npm.new" --ignore-scripts --no-audit --no-fund --loglevel=error > "$dir/npm.log" 2>&1 &&
        rm -rf "$npm" && mv "$npm.new" "$npm"
}
cmp -s "$here/package-lock.json" "$npm/package-lock.json" || fetch ||
    { tail -n 3 "$dir/npm.log"; skip "the packages cannot be fetched; is there a network?"; }

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
    export HTTP GRPC DIR="$dir" NODE_PATH="$npm/node_modules"
}
play() { timeout 120 node "$here/$1.js" || { tail -n 20 "$dir/log"; fail "$1.js failed"; }; }
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
