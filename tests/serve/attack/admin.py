"""Group A: administration is only possible at the admin address. A5 is in observe.py."""
import json
import os
import signal
import socket
import stat
import tempfile
import threading
import time

import model
import harness
from h2 import DATA, END_STREAM, H2, blob, frame, message
from harness import Server, check, item, main, play, read_all
from wire import answers, request, told

REPOSITORY = model.repository("echo", "pair", "batch")
harness.MODELS[:] = ["zoo:lstm_kws", REPOSITORY]
ECHO = json.dumps({"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2]}]}).encode()
PERMISSION_DENIED, UNIMPLEMENTED = 7, 12


def admin(server, data):
    """Raw bytes to the admin socket: its answers."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(120)
        s.connect(server.admin)
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        return answers(read_all(s))


def change(server, what, name, status, about=""):
    got = admin(server, request(path=f"/v2/repository/models/{name}/{what}"))
    check(len(got) == 1 and got[0][0] == status, f"{about or name[:40]} {what}: {[(g[0], g[2][:200]) for g in got]}, not {status}")
    if status >= 400:
        return told(got[0])
    return None


def echo(server):
    return server.call("POST", "/v2/models/echo/infer", ECHO, timeout=60)[0]


def index(server):
    status, body = server.admin_call("POST", "/v2/repository/index")
    check(status == 200, f"index: {status}")
    return {(m["name"], m["version"]): m for m in json.loads(body)}


@item("A1", "loading and unloading only where it is enabled, over a socket of its own")
def enabled(ctx):
    s = ctx.server
    for path in ("/v2/repository/index", "/v2/repository/models/echo/load", "/v2/repository/models/echo/unload"):
        for port in ("http", "metrics"):
            got = answers(s.send(request(path=path), port=port))
            check(len(got) == 1 and got[0][0] == 403, f"{port} {path}: {got[0][0]}")
    check(echo(s) == 200, "it was unloaded all the same")
    mode = os.stat(s.admin).st_mode
    check(stat.S_ISSOCK(mode) and mode & 0o007 == 0, f"the admin socket is open to all users: {mode:o}")
    check(("echo", "1") in index(s), f"{index(s)}")


@item("A1b", "off means off", own=True)
def off(_):
    with Server("zoo:lstm_kws", flags=["--admin", "off"]) as s:
        def run(ctx):
            got = answers(s.send(request(path="/v2/repository/models/lstm_kws/unload")))
            check(got[0][0] == 403, f"{got[0][0]}")
            check(not os.path.exists(s.admin), "there is a socket")
        return play(s, {"run": run})


NAMES = ["..%2f..%2fetc", "%2e%2e", "a;id", "$(id)", "%24%28id%29", "`id`", "", "%00", "echo%00", "echo%2f..", "." * 5,
         "-rf", "m" * 10000, "m" * 129, "%d0%b5cho", "ech%ef%bd%8f", "e%cc%81cho", "echo%0a", "echo%20", "%ff%fe",
         "echo%2fversions%2f1", "..", ".", "echo%2F1%2Fmodel.onnx", "C%3A%5Cx", "%25%32%65", "<script>", "echo%09"]


@item("A2", "names that are paths, commands, nothing, long or look-alikes")
def names(ctx):
    s = ctx.server
    before = index(s)
    for name in NAMES:
        for what in ("load", "unload"):
            got = admin(s, request(path=f"/v2/repository/models/{name}/{what}"))
            check(len(got) == 1 and got[0][0] in (400, 404), f"{name[:40]} {what}: {[g[0] for g in got]}")
            told(got[0])
        got = answers(s.send(request(path=f"/v2/models/{name}/infer", body=ECHO)))
        check(len(got) == 1 and got[0][0] in (400, 404), f"{name[:40]} infer: {[g[0] for g in got]}")
    for name in ("nobody", "etc", "passwd", "model.onnx", "1", "Echo"):
        got = admin(s, request(path=f"/v2/repository/models/{name}/load"))
        check(got[0][0] in (400, 404), f"{name}: {got[0][0]}")
    for body in (b'{"parameters":{"config":"{"}}', b'{"parameters":{"config":{}}}', b'{"parameters":{"config":"[[[["}}',
                 b'{"parameters":{"config":"{\\"backend\\":\\"x\\",\\"default_model_filename\\":\\"/etc/passwd\\"}"}}',
                 b'{"parameters":{"file:1/model.onnx":"AAAA"}}', b"{", b"[" * 30000, b'{"parameters":{"file:../../x":"AAAA"}}'):
        got = admin(s, request(path="/v2/repository/models/echo/load", body=body))
        check(got[0][0] == 400, f"{body[:40]}: {got[0][0]}")
    check(index(s) == before and echo(s) == 200, "something has changed")


ALIASES = ["/v2/./repository/index", "/v2/../v2/repository/index", "/v2/%72epository/index", "//v2/repository/index",
           "/v2//repository/index", "/v2/repository/index/", "/v2%2frepository%2findex", "/v2/repository%2findex",
           "/V2/repository/index", "/v2/repository/INDEX", "/v2/repository/index?x=1", "/v2/repository/index%00",
           "/v2/repository/index;x", "http://x/v2/repository/index", "/v2/repository/models/echo/unload?x",
           "/v2/repository/models/echo/./unload", "/v2/repository/models/%65cho/unload", "/v2/models/echo/unload",
           "/v2/repository/models/echo%2funload", "/v2\\repository\\models\\echo\\unload", "/v2/repository/models//unload"]


@item("A3", "restricted calls by every alias, verb and protocol")
def aliases(ctx):
    s = ctx.server
    for path in ALIASES:
        for method in ("POST", "GET", "PUT", "HEAD", "OPTIONS", "PATCH"):
            for port in ("http", "metrics"):
                got = s.send(request(method, path, headers=["Connection: close", "X-HTTP-Method-Override: POST"]), port=port)
                code = int(got[9:12]) if got else 0
                check(code in (400, 403, 404, 405), f"{port} {method} {path}: {code}")
    for method, body in (("RepositoryIndex", b""), ("RepositoryModelLoad", blob(2, "echo")),
                         ("RepositoryModelUnload", blob(2, "echo"))):
        with H2(s) as c:
            got = c.answer(c.call(method, message(body)))["grpc"]
            check(got == PERMISSION_DENIED, f"gRPC {method}: {got}")
        with H2(s) as c:
            got = c.answer(c.call("./" + method, message(body)))["grpc"]
            check(got == UNIMPLEMENTED, f"gRPC ./{method}: {got}")
    check(echo(s) == 200, "it was unloaded all the same")


def storm(server, seconds, loaders):
    """Loads and unloads against inferences; every answer must be one that is foreseen."""
    bad, over = [], time.monotonic() + seconds
    served = [0]

    def admit(kinds):
        i = 0
        while time.monotonic() < over:
            got = admin(server, request(path=f"/v2/repository/models/echo/{kinds[i % len(kinds)]}"))
            if len(got) != 1 or got[0][0] not in (200, 400, 404, 503):
                bad.append((kinds[i % len(kinds)], [g[0] for g in got]))
            i += 1

    def ask():
        while time.monotonic() < over:
            got = echo(server)
            served[0] += got == 200
            if got not in (200, 404, 503):
                bad.append(("infer", got))
    some = [threading.Thread(target=admit, args=(["load", "unload"][i % 2:] + ["load", "unload"][:i % 2],))
            for i in range(loaders)]
    some += [threading.Thread(target=ask) for _ in range(4)]
    for t in some:
        t.start()
    for t in some:
        t.join()
    check(not bad, f"{bad[:5]}")
    change(server, "load", "echo", 200, "after the storm")
    check(echo(server) == 200, "not served after the storm")
    return served[0]


@item("A6", "100 loads of one model at once; loads and unloads against inferences")
def loads(ctx):
    s = ctx.server
    kinds, some = [], []
    for _ in range(100):
        t = threading.Thread(target=lambda: kinds.append(
            admin(s, request(path="/v2/repository/models/pair/load"))[0][0]))
        some.append(t)
        t.start()
    for t in some:
        t.join()
    check(kinds == [200] * 100, f"{set(kinds)}")
    storm(s, 2, 6)
    for _ in range(5):
        change(s, "unload", "echo", 200)
        check(echo(s) in (404, 503), "it is unloaded")
        change(s, "load", "echo", 200)
        check(echo(s) == 200, "it is loaded")


@item("A6b", "loads and unloads against inferences, long", long=True)
def loads_long(ctx):
    check(storm(ctx.server, 20, 8) > 0, "nothing was served")


@item("A6c", "a reload that fails keeps what was there; a new version takes over")
def versions(ctx):
    s = ctx.server
    whole = model.ALL["batch"]
    path = os.path.join(REPOSITORY, "batch", "1", "model.onnx")
    body = json.dumps({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}).encode()

    def ask():
        status, _, got = s.call("POST", "/v2/models/batch/infer", body)
        check(status == 200, f"{status} {got[:200]}")
        return json.loads(got)

    def write(file, data):
        with open(file + ".new", "wb") as f:
            f.write(data)
        os.rename(file + ".new", file)

    for broken in (b"", b"not a model", whole[:-9], whole.replace(b"Neg", b"Nag"), os.urandom(5000)):
        write(path, broken)
        why = change(s, "load", "batch", 400, "broken")
        check("batch" in why or "onnx" in why.lower() or why, why)
        check(ask()["outputs"][0]["data"] == [-1, -2, -3], "the old one is served on")
    write(path, whole)
    change(s, "load", "batch", 200, "mended")
    os.makedirs(os.path.join(REPOSITORY, "batch", "2"), exist_ok=True)
    second = whole.replace(b"Neg", b"Abs")
    write(os.path.join(REPOSITORY, "batch", "2", "model.onnx"), second)
    change(s, "load", "batch", 200, "version 2")
    got = ask()
    check(got["model_version"] == "2" and got["outputs"][0]["data"] == [1, 2, 3], f"{got}")
    os.remove(os.path.join(REPOSITORY, "batch", "2", "model.onnx"))
    os.rmdir(os.path.join(REPOSITORY, "batch", "2"))
    change(s, "load", "batch", 200, "version 1 again")
    check(ask()["model_version"] == "1", "back to version 1")


def hang_up(server, word):
    """SIGHUP, until the log has the word once more."""
    before = server.said().count(word)
    server.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 60
    while server.said().count(word) == before:
        check(time.monotonic() < end, f"no {word!r} after SIGHUP: {server.said()[-800:]}")
        time.sleep(0.05)


@item("A7", "SIGHUP with a broken configuration", own=True)
def broken_configuration(_):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cotenant.yaml")
        good = f"sources: [zoo:lstm_kws, {REPOSITORY}]\ndefaults:\n  target_ms: 750\n"

        def write(text):
            with open(path, "wb") as f:
                f.write(text if isinstance(text, bytes) else text.encode())
        write(good)
        with Server(flags=["--config", path]) as s:
            def run(_):
                for bad in ("{", "sources: [", good + "body_mb: -1\n", good + "nonsense: 1\n",
                            "sources: [zoo:nothing]\n", b"\xff\xfe\0", "a: &a [*a]\n", "",
                            good + "models:\n  - name: ghost\n"):
                    write(bad)
                    if bad == "":  # an empty one is no error: what it leaves out is built in
                        continue
                    hang_up(s, "not reloaded")
                    check(echo(s) == 200 and s.alive(), f"after {bad[:30]!r}")
                os.remove(path)
                hang_up(s, "not reloaded")
                write(good)
                hang_up(s, "msg=reloaded")
                check(echo(s) == 200, "after all is well again")
                for _ in range(20):
                    s.process.send_signal(signal.SIGHUP)
            return play(s, {"run": run})


def unload(server, host="localhost", headers=()):
    """The status of an unload over REST and over gRPC, as a browser would send it."""
    got = server.send(request(path="/v2/repository/models/echo/unload", headers=headers).replace(
        b"Host: localhost", f"Host: {host}".encode()))
    with H2(server) as c:
        extra = [tuple(line.lower().split(": ", 1)) for line in headers]
        stream, out = c.headers("/inference.GRPCInferenceService/RepositoryModelUnload", extra=extra)
        if host != "localhost":
            out = c.headers("/inference.GRPCInferenceService/RepositoryModelUnload", extra=extra, stream=stream, authority=host)[1]
        data = message(blob(2, "echo"))
        c.send(out + frame(DATA, END_STREAM, stream, data))
        return answers(got)[0][0], c.answer(stream)["grpc"]


@item("A8", "requests of web pages: other names (DNS rebinding) and other sites", own=True)
def web_pages(_):
    with Server("zoo:lstm_kws", REPOSITORY, flags=["--admin", "http"]) as s:
        def run(_):
            for host in ("evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "10.0.0.1"):
                check(unload(s, host) == (403, PERMISSION_DENIED), f"Host: {host}: {unload(s, host)}")
                got = answers(s.send(request("GET", "/metrics").replace(b"localhost", host.encode()), port="metrics"))
                check(got[0][0] == 403 and "hosts" in told(got[0]), f"metrics, Host: {host}: {got[0]}")
            for lines in (["Origin: http://evil.example"], ["Origin: null"], ["Origin: http://localhost:1"],
                          ["Sec-Fetch-Site: cross-site"], ["Origin: http://localhost", "Origin: http://evil.example"]):
                check(unload(s, headers=lines) == (403, PERMISSION_DENIED), f"{lines}: {unload(s, headers=lines)}")
                got = answers(s.send(request(path="/v2/models/echo/infer", headers=lines, body=ECHO)))
                check(got[0][0] == 403 and "origins" in told(got[0]), f"infer, {lines}: {got[0]}")
            got = answers(s.send(request("GET", "/v2/health/live", headers=["Origin: http://evil.example"])))
            check(got[0][0] == 200, f"health: {got[0]}")
            check(echo(s) == 200, "it was unloaded all the same")
            check(unload(s, headers=["Origin: http://localhost"]) == (200, 0), "its own origin")
        play(s, {"run": run})
    with Server("zoo:lstm_kws", REPOSITORY, flags=["--admin", "http", "--hosts", "models.example", "--origins", "https://app.example"]) as s:
        def allowed(_):
            check(unload(s, "other.example") == (403, PERMISSION_DENIED), "another name")
            check(unload(s, headers=["Origin: https://app.example.evil"]) == (403, PERMISSION_DENIED), "another site")
            check(unload(s, "models.example:8000", ["Origin: https://app.example", "Sec-Fetch-Site: cross-site"]) == (200, 0), "allowed")
        return play(s, {"run": allowed})


if __name__ == "__main__":
    main()
