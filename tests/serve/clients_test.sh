#!/bin/sh
# Existing clients, unmodified: every call of both protocols by Python's HTTP clients, curl and grpcio.
. "$SRC/tests/cli/expect.sh"
skip() { echo "skipped: $1"; exit 77; }
for module in onnx grpc requests urllib3 aiohttp; do
    /usr/bin/python3 -c "import $module" 2> /dev/null || skip "Python's $module is missing: see deps-test.txt"
done
here=$SRC/tests/serve/clients
mkdir "$dir/pb" "$dir/models"
protoc --proto_path="$SRC/tests/serve/grpc" --python_out="$dir/pb" inference.proto
/usr/bin/python3 "$here/models.py" "$dir/models"
server=
trap '[ -z "$server" ] || { kill "$server" 2> /dev/null; wait "$server" || true; }; rm -rf "$dir"' EXIT
"$COTENANT" serve "$dir/models" --http 127.0.0.1:0 --grpc 127.0.0.1:0 --metrics off --admin http --store "$dir/store" \
    --drain-delay-ms 0 > "$dir/said" 2> "$dir/log" &
server=$!
for _ in $(seq 600); do
    grep -q 'msg=ready' "$dir/log" && break
    kill -0 "$server" 2> /dev/null || { cat "$dir/log"; server=; fail "the server did not start"; }
    sleep 0.1
done
HTTP=$(sed -n 's/.*http \([^,]*\).*/\1/p' "$dir/said") GRPC=$(sed -n 's/.*grpc \([^,]*\).*/\1/p' "$dir/said")
export HTTP GRPC PB="$dir/pb" PYTHONDONTWRITEBYTECODE=1
timeout 300 /usr/bin/python3 "$here/matrix.py" || { tail -n 20 "$dir/log"; fail "matrix.py failed"; }
kill "$server"; code=0; wait "$server" || code=$?; server=
[ "$code" = 0 ] || { tail -n 20 "$dir/log"; fail "the server ended with $code"; }
