#!/bin/sh
# cotenant cluster why: the printed explanation, and errors for what is no scheduler; cluster replay on bad records.
. "$SRC/tests/cli/expect.sh"
command -v python3 >/dev/null || exit 77

expect 2 cluster why; says "usage"
expect 2 cluster why a/b --url https://127.0.0.1:1
expect 2 cluster why "a/b/c"; says "write NAMESPACE/POD"
expect 2 cluster why "A b"; says "write NAMESPACE/POD"
expect 1 cluster why a/b --url http://127.0.0.1:1; says "is the scheduler running"; quiet

cat >"$dir/server.py" <<'PY'
import http.server, json
pod = {"namespace": "ml", "pod": "train-0", "uid": "u", "state": "waiting", "ours": True, "scheduler": "cotenant",
       "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\u001b[2J", "nodes": 3, "nodes_that_fit": 0,
       "gang": {"name": "train", "pods": 2, "start_together": 3, "waits_for": "pods"},
       "refused_by": [{"reason": "Insufficient nvidia.com/gpu", "nodes": 3, "example": "n1", "least_short_of": "2"}],
       "would_help": [{"kind": "room", "text": "2 more GPUs on one node"}],
       "queue": {"name": "backoff", "place": 2, "of": 5, "attempts": 4, "waited_s": 12.5, "retry_in_s": 3, "policy": "maifs"},
       "beliefs": {"class": "ResNet-50", "work_left_s": 3600, "work_left_log_sd": 0.5, "progress_from": "reports"}}
answers = {"/why/ml/train-0": pod, "/why/default/x": dict(pod, pod="x", ours=False, scheduler="other"),
           "/why/a/list": [], "/why/a/else": {"id": "r-1"}}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path in answers
        body = json.dumps(answers[self.path] if known else {"error": "no pod; did you mean train-0?"}).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
PY
mkfifo "$dir/port"
timeout 60 python3 "$dir/server.py" >"$dir/port" & server=$!
trap 'kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
read -r port <"$dir/port"
url=http://127.0.0.1:$port

expect 0 cluster why ml/train-0 --url "$url"
prints "pod ml/train-0: waiting for 12.5 s"
prints "why it waits: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.?"
prints "gang train: 2 pods exist, 3 start together"
prints "queue: backoff, number 2 of 5 waiting jobs, 4 attempts, next in 3.0 s, policy maifs"
prints "  - 2 more GPUs on one node"
prints "ResNet-50 .*3600.0 .*0.50"
expect 0 cluster why x --url "$url"; prints "its schedulerName is other"
expect 0 cluster why ml/train-0 --json --url "$url"; prints '"state":"waiting"'
expect 1 cluster why ml/trian-0 --url "$url"; says "did you mean train-0"; quiet
expect 1 cluster why a/list --url "$url"; says "is not cotenant's Kubernetes scheduler\|JSON"; quiet
expect 1 cluster why a/else --url "$url"; says "is not cotenant's Kubernetes scheduler"; quiet

expect 1 cluster replay "$dir/absent.jsonl"; says "absent.jsonl"; quiet
echo '{"kind":"decision"}' >"$dir/bad.jsonl"
expect 1 cluster replay "$dir/bad.jsonl"; says "line 1"; quiet
echo '{"kind":"header","version":1,"policy":"nothing","seed":"1","set":[]}' >"$dir/bad.jsonl"
expect 2 cluster replay "$dir/bad.jsonl"; says "nothing"; quiet
echo 'text' >"$dir/bad.jsonl"
expect 1 cluster replay "$dir/bad.jsonl"; says "bad.jsonl"; quiet
