# cotenant why: the printed explanation, and errors for misbehaving servers.
# shellcheck source=tests/cli/expect.sh
. "$SRC/tests/cli/expect.sh"
command -v python3 >/dev/null || exit 77

expect 2 why; says "give a request ID"
expect 2 why r-1 --misses 3; says "give a request ID"
expect 2 why r-1 --url https://127.0.0.1:1
expect 2 why r-1 --url grpc://127.0.0.1:8001; says "metrics address"
expect 1 why r-1 --url http://127.0.0.1:1; says "is the server running"; quiet

cat >"$dir/server.py" <<'PY'
import http.server, json, os, sys
receipt = {"id": "r-1", "model": "digits", "version": "1", "end": "ok", "outcome": "missed",
           "latency_ms": 62.3, "deadline_ms": 50, "cause": "queueing", "behind": "big",
           "why": "late by 12.3 ms of 50: queued 48 ms behind model 'big'\u001b[2J",
           "advice": "give the model min_cores",
           "stages": {"decode_ms": 0.1, "compile_ms": 0, "queue_ms": 48, "compute_ms": 14, "paused_ms": 0.2},
           "within_compute": {"interference_ms": 3}}
answers = {"/why/r-1": receipt, "/why/a%2Fb%20c": dict(receipt, id="a/b c"), "/why/list": [receipt],
           "/why?misses=2": [receipt, dict(receipt, id="r-0", cause="conflict")], "/why?misses=1": []}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = json.dumps(answers[self.path]).encode() if self.path in answers else b'{"error":"nobody remembers it"}'
        if self.path == "/v2/health/ready" and os.path.exists(sys.argv[1] + "/loading"):
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/why/garbage": body = b"\xff\x00{"
        self.send_response(200 if self.path in answers or self.path == "/why/garbage" else 404)
        self.send_header("Content-Length", "1000000" if self.path == "/why/short" else str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.path == "/why/short": self.close_connection = True
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
PY
mkfifo "$dir/port"
timeout 60 python3 "$dir/server.py" "$dir" >"$dir/port" & server=$!
trap 'kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
read -r port <"$dir/port"
url=http://127.0.0.1:$port

expect 0 why r-1 --url "$url"
prints "request r-1 of model digits version 1, ok, deadline missed: 62.300 ms of 50.000"
prints "why: late by 12.3 ms of 50: queued 48 ms behind model 'big'?"
prints "what would help: give the model min_cores"
prints "queue .*48.000 .*77.0 .*behind big"
prints "  interference .*3.000"
expect 0 why "a/b c" --url "$url"; prints "request a/b c of"
expect 0 why r-1 --json --url "$url"; prints '"cause":"queueing"'
expect 0 why --misses 2 --url "$url"; prints "r-0 .*conflict"
expect 0 why --misses 1 --url "$url"; prints "no request in the server"
touch "$dir/loading"
expect 0 why --misses 1 --url "$url"; prints "the server is not ready: it loads its models"
rm "$dir/loading"
expect 1 why r-2 --url "$url"; says "nobody remembers it"; quiet
expect 1 why garbage --url "$url"; quiet
expect 1 why short --url "$url"; quiet
expect 1 why list --url "$url"; says "is not a cotenant server"; quiet
