"""What operators see while clients misbehave: explanations, metrics, traces, logs (R4, R6, R7, R8, A5, and W)."""
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

from harness import COTENANT, SANE, Server, check, item, main, read_all

SAMPLE = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_]\w*="([^"\\\n]|\\["\\n])*",?)*\})? -?[0-9.e+-]+')


def metrics(server):
    status, headers, body = server.call("GET", "/metrics", port="metrics")
    check(status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4"), f"metrics: {status}")
    out = {}
    for line in body.decode().splitlines():
        if line.startswith("# "):
            continue
        check(SAMPLE.fullmatch(line), f"no sample: {line!r}")
        name, value = line.rsplit(" ", 1)
        check(name not in out, f"twice: {name}")
        out[name] = float(value)
    return out


def ask(server, name, **parameters):
    """An inference with an id of its own."""
    i = server.metadata("lstm_kws")["inputs"][0]
    count = 1
    for d in i["shape"]:
        count *= abs(d)
    body = {"id": name, "parameters": parameters,
            "inputs": [dict(i, shape=[abs(d) for d in i["shape"]], data=[0] * count)]}
    return server.call("POST", "/v2/models/lstm_kws/infer", json.dumps(body).encode())


def why(server, *arguments):
    url = f"http://127.0.0.1:{server.ports['metrics']}"
    done = subprocess.run([COTENANT, "why", *arguments, "--url", url], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@item("W1", "a request that expired is explained everywhere")
def w1(ctx):
    s = ctx.server
    before = metrics(s)
    status, _, body = ask(s, "late-1", timeout=1)
    check(status == 504, f"{status} {body[:200]}")
    told = json.loads(body)["error"]
    check(re.match(r"deadline of 1 us passed after \d+ us while ", told), told)
    status, _, body = s.call("GET", "/why/late-1", port="metrics")
    check(status == 200, f"why: {status}")
    receipt = json.loads(body)
    check(receipt["outcome"] == "missed" and receipt["end"] == "expired" and receipt["model"] == "lstm_kws", receipt)
    check(receipt["why"] == told and receipt["advice"], receipt)
    code, out, _ = why(s, "late-1")
    check(code == 0 and told in out and "what would help" in out, out)
    code, out, _ = why(s, "--misses", "50", "--json")
    check(code == 0 and any(r["id"] == "late-1" for r in json.loads(out)), out)
    code, out, err = why(s, "never-seen")
    check(code == 1 and out == "" and "in the history" in err, err)
    after = metrics(s)
    for name in ('cotenant_requests_total{model="lstm_kws",end="expired"}',
                 'cotenant_deadline_total{model="lstm_kws",outcome="missed"}',
                 'cotenant_misses_total{model="lstm_kws",cause="%s"}' % receipt["cause"]):
        check(after[name] >= before[name] + 1, name)
    stats = json.loads(s.call("GET", "/v2/models/lstm_kws/stats")[2])["model_stats"][0]
    check(stats["cotenant"]["misses"][receipt["cause"]] >= 1, stats)


@item("W2", "a request that was answered is explained too")
def w2(ctx):
    s = ctx.server
    status, _, body = ask(s, "good-1")
    check(status == 200 and json.loads(body)["id"] == "good-1", body[:200])
    receipt = json.loads(s.call("GET", "/why/good-1", port="metrics")[2])
    parts = receipt["stages"]
    check(receipt["end"] == "ok" and receipt["blocks"] >= 1 and receipt["cores"][1] >= 1, receipt)
    spent = sum(parts[k] for k in ("decode_ms", "compile_ms", "queue_ms", "compute_ms", "paused_ms", "answer_ms"))
    check(0.2 * receipt["latency_ms"] <= spent <= 1.01 * receipt["latency_ms"] + 0.01, receipt)


@item("W6", "an id that cannot be one is said to be that")
def w4(ctx):
    for bad in ("", "%00", "x" * 200, "%4"):
        status, _, body = ctx.server.call("GET", f"/why/{bad}", port="metrics")
        check(status == 400 and b"the id of a request" in body, f"/why/{bad[:9]}: {status} {body}")


@item("R7", "names of models that are not there make no labels")
def r7(ctx):
    s = ctx.server
    metrics(s)
    before = metrics(s)
    for i in range(300):
        status, _, _ = s.call("POST", f"/v2/models/stranger{i}/infer", b"{}")
        check(status == 404, f"stranger{i}: {status}")
        s.call("GET", f"/v2/models/stranger{i}/stats")
    for bad in ("%0Afoo", "a%22b", "%5C", "x" * 5000, "%00", "{model=1}"):
        s.call("POST", f"/v2/models/{bad}/infer", b"{}")
    after = metrics(s)
    fresh = [k for k in after if k not in before and not k.startswith("cotenant_unmatched")]
    check(not fresh, f"new samples: {fresh[:5]}")
    check(not [k for k in after if "stranger" in k], "a stranger's label")


@item("R9", "pages asked for by many, some of which leave before they are written")
def pages(ctx):
    s = ctx.server
    whole = {path: len(s.call("GET", path, port=port)[2]) for path, port in (("/v2/models/stats", "http"), ("/metrics", "metrics"))}
    for n in range(300):
        path, port = (("/v2/models/stats", "http"), ("/metrics", "metrics"))[n % 2]
        c = s.raw(port)
        c.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        if n % 3 == 0:
            c.close()
            continue
        data = read_all(c)
        c.close()
        check(data.startswith(b"HTTP/1.1 200"), f"{path}: {data[:80]}")
        body = data.split(b"\r\n\r\n", 1)[1]
        check(len(body) >= whole[path] - 200, f"{path}: {len(body)} bytes, {whole[path]} before")
        if port == "http":
            check(len(json.loads(body)["model_stats"]) == 2, "statistics of both models")


@item("R8", "traces: one at a time, bounded, given up without harm", flags=("--trace-mb", "1"))
def r8(ctx):
    s = ctx.server
    for bad in ("0", "61", "-1", "x", "1e9", "99999999999999999999"):
        status, _, body = s.call("GET", f"/trace?seconds={bad}", port="metrics")
        check(status == 400, f"seconds={bad}: {status} {body[:100]}")
    got = []
    first = threading.Thread(target=lambda: got.append(s.call("GET", "/trace?seconds=1", port="metrics")))
    first.start()
    time.sleep(0.3)
    status, _, _ = s.call("GET", "/trace?seconds=1", port="metrics")
    check(status == 409, f"a second trace: {status}")
    first.join()
    status, _, body = got[0]
    check(status == 200 and len(body) <= 1 << 20, f"trace: {status}, {len(body)} bytes")
    phases = {e["ph"] for e in json.loads(body)["traceEvents"]}
    check({"M", "X", "b", "e"} <= phases, f"phases {phases}")
    with s.raw("metrics") as gone:
        gone.sendall(b"GET /trace?seconds=2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.2)
    end = time.monotonic() + 30
    while s.call("GET", "/trace?seconds=1", port="metrics")[0] != 200:
        check(time.monotonic() < end, "no trace after one whose client went away")
        time.sleep(0.2)


@item("A5", "no client chooses a path for logs or traces")
def a5(ctx):
    s = ctx.server
    for path in ("/trace?seconds=1&file=/tmp/cotenant-a5", "/v2/logging", "/v2/trace/setting"):
        for port in ("http", "metrics"):
            for method in ("GET", "POST"):
                s.call(method, path, b'{"log_file":"/tmp/cotenant-a5","trace_file":"/tmp/cotenant-a5"}', port=port)
    check(not os.path.exists("/tmp/cotenant-a5"), "a file that a client named")


@item("R6", "a flood of log lines is limited, and none is forged", own=True)
def r6(_):
    with Server("zoo:lstm_kws", flags=["--log-rate", "20", "--log-level", "debug"]) as s:
        begin = time.monotonic()
        for i in range(1500):
            s.call("POST", "/v2/models/lstm_kws/infer", b"{")
        ask(s, 'x\nlevel=error msg="forged"')
        s.call("POST", "/v2/models/a%0Alevel=error%20msg=forged/infer", b"{}")
        seconds = time.monotonic() - begin
        check(metrics(s)["cotenant_log_suppressed_total"] > 0, "nothing was suppressed")
        s.stop()
        lines = [line for line in s.said().splitlines() if not (SANE and "ASan doesn't fully support" in line)]
        check(len(lines) < 25 * (seconds + 10), f"{len(lines)} lines in {seconds:.0f} s")
        check(all(line.startswith("ts=") for line in lines), f"{[x for x in lines if not x.startswith('ts=')][:3]}")
        check(not any(" level=error" in line and "forged" in line.split("msg=")[1][:9] for line in lines), "forged")
        check(any("suppressed=" in line for line in lines), "it does not say what was left out")


@item("R4", "a log on a full disk costs lines and nothing else", own=True)
def r4(_):
    with Server("zoo:lstm_kws", flags=["--log-file", "/dev/full"]) as s:
        for i in range(20):
            status, _, body = s.infer("lstm_kws")
            check(status == 200, f"{status} {body[:100]}")
        check(metrics(s)["cotenant_log_dropped_total"] > 0, "no line was dropped")
        check(s.stop() == 0, "it did not stop well")


@item("W3", "SIGUSR1 reopens the log; JSON lines are JSON", own=True)
def w3(_):
    with tempfile.TemporaryDirectory() as folder, \
            Server("zoo:lstm_kws", flags=["--log-format", "json", "--log-file", folder + "/log"]) as s:
        path = folder + "/log"
        os.rename(path, path + ".1")
        s.process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + 20
        while not os.path.exists(path) or os.path.getsize(path) == 0:
            check(time.monotonic() < end, "no new log")
            time.sleep(0.05)
        s.stop()
        for name in (path, path + ".1"):
            with open(name) as f:
                lines = [json.loads(line) for line in f]
            check(lines and all("msg" in o and "ts" in o for o in lines), name)
        mode = os.stat(path).st_mode & 0o7
        check(mode == 0, f"readable by all users: {mode:o}")


@item("W5", "a request degraded for its missed deadline is computed, marked and counted", own=True)
def w5(_):
    flags = ["--set", "lstm_kws.target_ms=0.001", "--set", "lstm_kws.on_miss=degrade"]
    with Server("zoo:lstm_kws", flags=flags) as s:
        status, headers, body = ask(s, "slow-1", timing=True)
        check(status == 200 and headers.get("x-cotenant-degraded") == "1", f"{status} {headers}")
        check(json.loads(body)["parameters"]["degraded"] == "true", body[:400])
        receipt = json.loads(s.call("GET", "/why/slow-1", port="metrics")[2])
        check(receipt["degraded"] and receipt["outcome"] == "missed" and "degraded" in receipt["why"], receipt)
        check(metrics(s)['cotenant_degraded_total{model="lstm_kws"}'] == 1, "not counted")
        stats = json.loads(s.call("GET", "/v2/models/lstm_kws/stats")[2])["model_stats"][0]
        check(stats["cotenant"]["degraded"] == 1, stats)


@item("W4", "what is written about metrics is what there is", own=True)
def w4(_):
    source = os.environ.get("SRC", os.path.join(os.path.dirname(__file__), "../../.."))
    with open(os.path.join(source, "docs/observe.md")) as f:
        text = f.read()
    rows = dict(re.findall(r"^\| `((?:cotenant|process)_\w+)` \| (\w+) \|", text, re.M))
    nv = set(re.findall(r"`(nv_\w+[a-z])`", text))
    causes = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`\w+`[^|]*)\|[^|]*\|[^|]*\|$", text, re.M)))) - set(rows)
    with Server("zoo:lstm_kws", flags=["--metrics-compat", "triton"]) as s:
        body = s.call("GET", "/metrics", port="metrics")[2].decode()
        told = dict(re.findall(r"^# TYPE (\w+) (\w+)$", body, re.M))
        check({k: v for k, v in told.items() if not k.startswith("nv_")} == rows, set(told.items()) ^ set(rows.items()))
        check({k for k in told if k.startswith("nv_")} == nv, f"{nv}")
        known = set(re.findall(r'cause="(\w+)"', body))
        check(known == causes, f"causes: {known ^ causes}")


if __name__ == "__main__":
    main()
