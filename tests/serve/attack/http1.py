"""Group H: HTTP framing."""
import gzip
import random
import resource
import socket
import struct
import threading
import time
import zlib

import model
import harness
from crowd import Crowd, fresh
from harness import Failed, SANE, Server, check, item, main, read_all, status_of
from wire import LIVE, answers, bomb, one, refused, request, told, valid

SLOW = ("--header-ms", "600", "--body-ms", "1500", "--idle-ms", "20000", "--write-ms", "1500", "--connections", "64")
INFER = "/v2/models/lstm_kws/infer"
harness.MODELS.append(model.repository("wide"))


def served(server):
    check(server.infer("lstm_kws")[0] == 200, "an honest request is not served any more")


def head(*lines, first="POST " + INFER + " HTTP/1.1", host="Host: localhost"):
    return "\r\n".join([first] + ([host] if host else []) + list(lines)).encode("latin-1") + b"\r\n\r\n"


# What must come back for each row of the table of parsers' strictness.
ROWS = [
    ("Content-Length and Transfer-Encoding", 400,
     head("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n"),
    ("two different Content-Length", 400, head("Content-Length: 5", "Content-Length: 6") + b"hello"),
    ("Content-Length: -5", 400, head("Content-Length: -5") + b"hello"),
    ("Content-Length: +5", 400, head("Content-Length: +5") + b"hello"),
    ("Content-Length: 5, 5", 400, head("Content-Length: 5, 5") + b"hello"),
    ("Content-Length beyond 64 bits", 400, head("Content-Length: 18446744073709551621") + b"hello"),
    ("space before the colon", 400, head("Content-Length : 5") + b"hello"),
    ("folded header", 400, head("X-A: a", " b", "Content-Length: 0")),
    ("bare LF", 400, b"GET /v2 HTTP/1.1\nHost: localhost\n\n"),
    ("missing Host", 400, head("Content-Length: 0", host=None)),
    ("two Host", 400, head("Host: localhost", "Content-Length: 0")),
    ("NUL in a value", 400, head("X-A: a\0b", "Content-Length: 0")),
    ("Transfer-Encoding: xchunked", 400, head("Transfer-Encoding: xchunked") + b"0\r\n\r\n"),
    ("chunked, identity", 400, head("Transfer-Encoding: chunked, identity") + b"0\r\n\r\n"),
    ("chunk size 0x5", 400, head("Transfer-Encoding: chunked") + b"0x5\r\nhello\r\n0\r\n\r\n"),
    ("chunk size beyond 64 bits", 400,
     head("Transfer-Encoding: chunked") + b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    ("200 kB of header", 431, head("X-A: " + "a" * 200000)),
    ("lower-case method", 400, head(first="get /v2 HTTP/1.1")),
    ("HTTP/9.9", 505, head(first="GET /v2 HTTP/9.9")),
]
MORE = [
    ("LF alone after a header", 400, b"GET /v2 HTTP/1.1\r\nHost: localhost\nX-A: b\r\n\r\n"),
    ("CR alone", 400, b"GET /v2 HTTP/1.1\r\nHost: localhost\rX-A: b\r\n\r\n"),
    ("chunk without CR", 400, head("Transfer-Encoding: chunked") + b"1\na\r\n0\r\n\r\n"),
    ("chunk longer than it says", 400, head("Transfer-Encoding: chunked") + b"1\r\nab\r\n0\r\n\r\n"),
    ("negative chunk", 400, head("Transfer-Encoding: chunked") + b"-1\r\n\r\n"),
    ("100,000 bytes of chunk extension", 400,
     head("Transfer-Encoding: chunked") + b"1;" + b"e" * 100000 + b"\r\na\r\n0\r\n\r\n"),
    ("Transfer-Encoding twice", 400,
     head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"0\r\n\r\n"),
    ("Transfer-Encoding in HTTP/1.0", 400,
     head("Transfer-Encoding: chunked", first="POST " + INFER + " HTTP/1.0") + b"0\r\n\r\n"),
    ("two equal Content-Length", 400, head("Content-Length: 5", "Content-Length: 5") + b"hello"),
    ("hexadecimal Content-Length", 400, head("Content-Length: 0x5") + b"hello"),
    ("empty Content-Length", 400, head("Content-Length:") + b"hello"),
    ("1,000 headers", 431, head(*[f"X-{i}: a" for i in range(1000)])),
    ("no version", 400, b"GET /v2\r\nHost: localhost\r\n\r\n"),
    ("control character in the target", 400, head(first="GET /v2\x01 HTTP/1.1")),
    ("header without a name", 400, head(": a")),
    ("HTTP/2 preface", 505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
]


@item("H1", "every row of the table of strictness")
def strict(ctx):
    for about, status, data in ROWS + MORE:
        refused(ctx.server, data + LIVE, status, about)
        if b"\r\n" in data:  # the same, a byte at a time where that is short
            with ctx.server.raw() as s:
                for i in range(0, min(len(data), 400)):
                    try:
                        s.send(data[i:i + 1])
                    except OSError:
                        break
                else:
                    try:
                        s.sendall(data[400:])
                    except OSError:
                        pass
                got = read_all(s)
                early = 413 if about.startswith("chunk size") else status  # its first digits are too large already
                check(status_of(got) in (status, early, 0), f"{about}, byte by byte: {got[:80]!r}")


@item("H2", "200,000 chunks of a byte")
def chunks(ctx):
    body, _ = ctx.server.infer_body("lstm_kws", binary=False)
    body = body.ljust(200000)
    data = head("Transfer-Encoding: chunked")
    data += b"".join(b"1\r\n%c\r\n" % c for c in body) + b"0\r\n\r\n"
    got = answers(ctx.server.send(data, timeout=60))
    check([g[0] for g in got] == [200], f"{[g[:1] for g in got]}")


@item("H2b", "200,000 chunks with as much besides as is allowed, and more")
def chunk_padding(ctx):
    data = head("Transfer-Encoding: chunked") + b"1;a=b\r\n \r\n" * 200000 + b"0\r\n\r\n"
    one(ctx.server, data, 400, "blanks in chunks with extensions")
    data = head("Transfer-Encoding: chunked") + b"0\r\n" + b"X-A: b\r\n" * 20000 + b"\r\n"
    got = answers(ctx.server.send(data))
    check(got and got[0][0] in (400, 431), f"trailers without end: {got[:1]}")


def drip(server, start, more, pause, limit):
    """Sends a byte each pause until an answer comes: (answer, seconds)."""
    begin = time.monotonic()
    with server.raw() as s:
        s.sendall(start)
        s.settimeout(pause)
        got = b""
        while time.monotonic() - begin < limit:
            try:
                part = s.recv(65536)
                got += part
                if not part:
                    break
            except socket.timeout:
                try:
                    s.send(more)
                except OSError:
                    break
            except OSError:
                break
        return got, time.monotonic() - begin


@item("H3", "headers, then a body, a byte at a time: 408 by an absolute timer", flags=SLOW)
def slow(ctx):
    s = ctx.server
    cases = [("headers", b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a", 0.4),
             ("body", head("Content-Length: 100000") + b'{"inputs":[', b" ", 1),
             ("chunks", head("Transfer-Encoding: chunked"), b"1\r\n \r\n", 1)]
    told_late = {}

    def run(about, start, more):
        told_late[about] = drip(s, start, more, 0.1, 20)
    some = [threading.Thread(target=run, args=case[:3]) for case in cases]
    for t in some:
        t.start()
    for t in some:
        t.join()
    for about, _, _, least in cases:
        got, seconds = told_late[about]
        check(status_of(got) == 408 and least < seconds < 12, f"slow {about}: {got[:40]} after {seconds:.1f} s")
    with s.raw() as slow:  # it may be slow between requests
        for _ in range(2):
            slow.sendall(LIVE)
            check(status_of(slow.recv(4096)) == 200, "a slow but honest client")
            time.sleep(0.8)


@item("H3b", "50 slow clients at once", long=True, flags=SLOW)
def many_slow(ctx):
    some = [ctx.server.raw() for _ in range(50)]
    for s in some:
        s.sendall(head("Content-Length: 1000000") + b"{")
    served(ctx.server)
    kinds = {status_of(read_all(s)) for s in some}
    for s in some:
        s.close()
    check(kinds == {408}, f"{kinds}")


@item("H4", "1 GiB declared, 10 bytes sent, held")
def declared(ctx):
    s = ctx.server
    refused(s, head("Content-Length: 1073741824") + b"0123456789", 413, "1 GiB")
    rss, some = s.rss(), []
    for _ in range(40):  # 2.4 GiB of what is allowed each
        c = s.raw()
        c.sendall(head("Content-Length: 62914560") + b"0123456789")
        some.append(c)
    time.sleep(0.5)
    served(s)
    check(SANE or s.rss() - rss < 128 << 20, f"{(s.rss() - rss) >> 20} MiB for bodies that were never sent")
    late = []
    for c in some:
        c.shutdown(socket.SHUT_WR)
        late.append(status_of(read_all(c)))
        c.close()
    check(set(late) <= {400, 503} and 400 in late, f"{set(late)}")


@item("H5", "Expect: 100-continue, never followed up", flags=SLOW)
def expects(ctx):
    s = ctx.server
    got, seconds = drip(s, head("Content-Length: 1000", "Expect: 100-continue"), b"", 0.2, 20)
    check(got.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"), f"{got[:60]}")
    check(status_of(got[25:]) == 408 and 1 < seconds < 12, f"{got[25:70]} after {seconds:.1f} s")
    one(s, head("Content-Length: 1073741824", "Expect: 100-continue"), 413, "too large: without 100")
    one(s, head("Content-Length: 10", "Expect: 100-continue", first="POST /v2/models/nobody/infer HTTP/1.1"), 404,
        "unknown model: without 100")
    one(s, head("Content-Length: 10", "Expect: the-unexpected"), 417, "expects something else")


@item("H6", "10,000 pipelined requests")
def pipelined(ctx):
    got = []
    with ctx.server.raw(timeout=60) as s:
        reader = threading.Thread(target=lambda: got.append(read_all(s)))
        reader.start()
        s.sendall(LIVE * 10000)
        s.shutdown(socket.SHUT_WR)
        reader.join()
    got = answers(got[0])
    check(len(got) == 10000 and all(g[0] == 200 for g in got), f"{len(got)} answers")


@item("H6b", "pipelined inferences and errors, answered in their order")
def pipelined_mixed(ctx):
    good = valid(ctx.server)
    bad = request(body=b"{}")
    with ctx.server.raw(timeout=60) as s:
        got = []
        reader = threading.Thread(target=lambda: got.append(read_all(s)))
        reader.start()
        s.sendall((good + bad + LIVE) * 100)
        s.shutdown(socket.SHUT_WR)
        reader.join()
    kinds = [g[0] for g in answers(got[0])]
    check(kinds == [200, 400, 200] * 100, f"{len(kinds)} answers: {kinds[:9]}")


@item("H6c", "10,000 pipelined requests, and no answer is read", long=True, flags=SLOW)
def pipelined_unread(ctx):
    with ctx.server.raw() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(1)
        try:
            s.sendall((b"GET /v2/models/lstm_kws/stats HTTP/1.1\r\nHost: localhost\r\n\r\n") * 10000)
        except OSError:
            pass
        time.sleep(2.5)
        served(ctx.server)


@item("H7", "many idle connections: a cap, and newcomers are served", flags=SLOW)
def idle(ctx):
    s = ctx.server
    time.sleep(0.3)  # the second tenant is no newcomer: those make room first
    for sent in (b"", b"GET /v2 HT"):
        some = []
        for _ in range(400):
            try:
                some.append(s.raw())
                some[-1].sendall(sent)
            except OSError:
                pass
        check(s.fds() < 200, f"{s.fds()} descriptors")
        for _ in range(5):
            served(s)
        for c in some:
            c.close()
        served(s)


@item("H7b", "10,000 idle connections", long=True)
def idle_many(ctx):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    some = []
    try:
        for _ in range(min(10000, min(hard, 16384) - 200)):
            try:
                some.append(ctx.server.raw())
            except OSError:
                time.sleep(0.01)
        check(ctx.server.fds() < 1200, f"{ctx.server.fds()} descriptors")
        for _ in range(20):
            served(ctx.server)
    finally:
        for c in some:
            c.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    served(ctx.server)


@item("H7c", "connections full of unfinished requests: served all the same, then accepted again", long=True,
      flags=SLOW)
def full(ctx):
    s = ctx.server
    some = []
    for _ in range(55):  # with the second tenant there is room for a few more
        some.append(s.raw())
        some[-1].sendall(head("Content-Length: 100") + b"{")
    served(s)
    for c in some:
        check(status_of(read_all(c)) == 408, "an unfinished request")
        c.close()
    served(s)


@item("H8", "half-close; RST while the answer is written; a client that never reads", flags=SLOW)
def gone(ctx):
    s = ctx.server
    one(s, valid(s), 200, "half-close after the request")
    for _ in range(20):
        with s.raw() as c:
            c.sendall(valid(s, "squeezenet1_1"))
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for _ in range(5):
        with s.raw() as c:  # gone in the middle of a body
            c.sendall(head("Content-Length: 100000") + b"{" * 5000)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    served(s)


@item("H8b", "answers of 16 MiB that are not read, or not to their end", flags=SLOW)
def unread(ctx):
    s = ctx.server
    body = bytes(4 * 64)
    data = request(path="/v2/models/wide/infer", headers=["Inference-Header-Content-Length: 0"], body=body)
    before, some = s.fds(), []
    for _ in range(6):
        c = s.raw()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.sendall(data)
        some.append(c)
    for c in some[:3]:
        c.recv(1000)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    served(s)
    end = time.monotonic() + 20
    while s.fds() > before + 1:  # the second tenant may have come; until answers have waited too long to be taken
        check(time.monotonic() < end, f"{s.fds()} descriptors, {before} before")
        time.sleep(0.1)
    for c in some[3:]:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    with s.raw(timeout=60) as c:
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        got = read_all(c)
    check(status_of(got) == 200 and len(got) > 16 << 20, f"{status_of(got)}, {len(got)} bytes")


@item("H9", "a body on GET is not the next request")
def get_body(ctx):
    data = request("GET", "/v2", body=LIVE) + request("GET", "/v2/models/lstm_kws")
    got = answers(ctx.server.send(data))
    check([g[0] for g in got] == [200, 200] and b"lstm_kws" in got[1][2], f"{[g[0] for g in got]}")
    chunked = head("Transfer-Encoding: chunked", first="GET /v2 HTTP/1.1")
    data = chunked + b"%x\r\n%s\r\n0\r\n\r\n" % (len(LIVE), LIVE) + request("GET", "/v2/models/lstm_kws")
    got = answers(ctx.server.send(data))
    check([g[0] for g in got] == [200, 200] and b"lstm_kws" in got[1][2], f"{[g[0] for g in got]}")
    data = request("HEAD", "/v2/health/live") + LIVE
    got = ctx.server.send(data)
    check(got.count(b"HTTP/1.1 ") == 2, f"HEAD: {got[:200]!r}")


PATHS = [
    ("/" + "a" * 65536, {414}), ("/v2/models/" + "m" * 10000, {400, 404}),
    ("/v2/models/lstm_kws%00", {400}), ("/v2/models/%00", {400}), ("/v2%00", {404}),
    ("/v2/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", {400}), ("/v2/models/../../etc/passwd", {404}),
    ("/v2/models/..", {400, 404}), ("/v2/models/%2e%2e", {400}), ("/v2/models/.", {400, 404}),
    ("//", {404}), ("//v2", {404}), ("/v2//models", {404}), ("/v2/models//ready", {400}),
    ("/v2/models/%c0%af", {400}), ("/v2/models/%c0%ae%c0%ae%c0%af", {400}), ("/v2/models/%e0%80%af", {400}),
    ("/v2/models/%252e%252e", {400}), ("/v2/models/lstm_kws%", {400}), ("/v2/models/lstm_kws%4", {400}),
    ("/v2/models/%zz", {400}), ("/v2/models/lstm_kws/versions/../..", {400, 404}), ("/V2", {404}),
    ("/v2/models/lstm%5fkws", {200}), ("/v2/health/live?" + "q" * 5000, {200}), ("/v2/health/live#x", {400}),
    ("/v2/models/lstm_kws/versions/99999999999999999999", {404}), ("/v2/models/lstm_kws/versions/-1", {400, 404}),
    ("/v2/models/lstm_kws;x=1", {400}), ("/v2\\models", {404}), ("/v2/./models", {404}), ("/v2/models/<script>", {400}),
]


@item("H10", "targets of all kinds")
def targets(ctx):
    for path, wanted in PATHS:
        got = answers(ctx.server.send(request("GET", path)))
        check(len(got) == 1 and got[0][0] in wanted, f"{path[:60]}: {[g[0] for g in got]}, not {wanted}")
        if got[0][0] >= 400:
            why = told(got[0])
            check("<" not in why or "script" not in why, why)
    check(status_of(ctx.server.send(b"GET /v2/\xc0\xaf HTTP/1.1\r\nHost: localhost\r\n\r\n")) == 400, "raw bytes")


def explode(s, mib):
    data, rss = bomb(mib), s.rss()
    refused(s, head("Content-Encoding: gzip", f"Content-Length: {len(data)}") + data, 413, f"{mib} MiB")
    refused(s, head("Content-Encoding: gzip", "Transfer-Encoding: chunked") +
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data), 413, f"{mib} MiB in a chunk")
    check(SANE or s.rss() - rss < 160 << 20, f"{(s.rss() - rss) >> 20} MiB more")


@item("H11b", "gzip bombs of 10 GiB, eight at once", long=True)
def bombs_many(ctx):
    bad = []

    def throw():
        try:
            explode(ctx.server, 10240)  # ten megabytes: one cannot hold more than a thousand
        except Failed as e:
            bad.append(e)
    some = [threading.Thread(target=throw) for _ in range(8)]
    for t in some:
        t.start()
    for t in some:
        t.join()
    check(not [e for e in bad if "more" not in str(e)], f"{bad[:2]}")


@item("H11", "gzip bombs; nested, several and broken encodings")
def bombs(ctx):
    s = ctx.server
    explode(s, 1024)  # a megabyte
    body, _ = s.infer_body("lstm_kws", binary=False)
    packed = gzip.compress(body)
    cases = [("gzip", packed, 200), ("deflate", zlib.compress(body), 200), ("x-gzip", packed, 200),
             ("gzip, gzip", gzip.compress(packed), 415), ("br", body, 415), ("gzip", gzip.compress(packed), 400),
             ("gzip", packed[:-9], 400), ("gzip", packed + packed, 400), ("gzip", body, 400), ("gzip", b"", 400),
             ("identity", body, 200), ("gzip", packed[:-8] + bytes(8), 400), ("deflate", b"\xff" * 100, 400)]
    for encoding, data, status in cases:
        got = answers(s.send(request(headers=[f"Content-Encoding: {encoding}"], body=data)))
        check([g[0] for g in got] == [status], f"{encoding} {data[:12]!r}: {[g[0] for g in got]}, not {status}")
    one(s, request(headers=["Content-Encoding: gzip", "Content-Encoding: gzip"], body=packed), 415, "encoded twice")


@item("H12", "absolute and authority forms, CONNECT, Upgrade")
def forms(ctx):
    s = ctx.server
    for path, status in (("http://x/v2/health/live", 200), ("http://other:99/v2/health/live", 200),
                         ("http://", 400), ("http:///v2", 400), ("x:80", 400), ("*", 400), ("ftp://x/v2", 400),
                         ("v2", 400)):
        one(s, request("GET", path), status, path)
    refused(s, request("CONNECT", "x:80") + LIVE, 405, "CONNECT")
    got = answers(s.send(request("OPTIONS", "*")))
    check(len(got) == 1 and got[0][0] in (404, 405), "OPTIONS *")
    for up in ("h2c", "websocket", "TLS/1.0"):
        upgrade = request("GET", "/v2/health/live", headers=[f"Upgrade: {up}", "Connection: Upgrade, HTTP2-Settings",
                                                            "HTTP2-Settings: AAMAAABkAAQAAP__"])
        got = answers(s.send(upgrade + LIVE))
        check([g[0] for g in got] == [200, 200], f"upgrade to {up}: {[g[0] for g in got]}")
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "HEAD"):
        got = s.call(method, INFER)
        check(got[0] == 405 and got[1].get("allow") == "POST", f"{method}: {got[0]} {got[1].get('allow')}")


@item("H13", "Content-Length above and below the JSON", flags=SLOW)
def lengths(ctx):
    s = ctx.server
    body, _ = s.infer_body("lstm_kws", binary=False)
    begin = time.monotonic()
    got = answers(s.send(head(f"Content-Length: {len(body) + 10}") + body, more=True))
    check([g[0] for g in got] == [408] and time.monotonic() - begin < 12, f"above, held: {[g[0] for g in got]}")
    refused(s, head(f"Content-Length: {len(body) + 10}") + body, 400, "above, closed")
    got = answers(s.send(head(f"Content-Length: {len(body) - 3}") + body))
    check([g[0] for g in got] == [400, 400], f"below: {[g[0] for g in got]}")
    one(s, head(f"Content-Length: {len(body) + 10}") + body + b" " * 10, 200, "blanks")
    one(s, head(f"Content-Length: {len(body) + 10}") + body + b"x" * 10, 400, "more than the JSON")
    one(s, head("Content-Length: 0"), 400, "no body at all")
    one(s, head(), 400, "no length and no body")


@item("H14", "descriptors run out: accept backs off without spinning", own=True)
def descriptors(_):
    with Server("zoo:lstm_kws", prefix=("prlimit", "--nofile=32")) as s:
        served(s)
        some = []
        for _ in range(100):
            try:
                some.append(s.raw())
                some[-1].sendall(head("Content-Length: 100") + b"{")
            except OSError:
                pass
        time.sleep(0.5)
        before = s.cpu()
        time.sleep(2)
        spent = s.cpu() - before
        check(spent < 0.5, f"{spent:.2f} s of computing in 2 s of nothing")
        check(s.alive(), "it ended")
        for c in some:
            c.close()
        time.sleep(0.5)
        for _ in range(5):
            served(s)
        check(s.admin_call("POST", "/v2/repository/index")[0] == 200, "the admin socket")
        check(s.stop() == 0, "it did not stop well")


PART = request(headers=["Content-Length: 1000"], length=False) + b"x"
CROWDS = {"no byte": b"", "half a head": b"GET /v2/heal", "half a body": PART, "half a body after an answer": LIVE + PART,
          "half a chunk": request(headers=["Transfer-Encoding: chunked"], length=False) + b"ff\r\nx",
          "one answer, then idle": LIVE, "eight answers, then idle": LIVE * 8,
          "answers that are not read": LIVE * 2000}


@item("H17", "more connections than allowed, unfinished or idle, opened anew when closed: newcomers are served", flags=["--connections", "256"])
def crowds(ctx):
    for name, data in CROWDS.items():
        with Crowd(ctx.server, 400, data):
            good = fresh(lambda: ctx.server.call("GET", "/v2/health/live", timeout=10)[0] == 200)
            check(good >= 48, f"{name}: {good} of 50 newcomers were served")


@item("H17b", "1,500 and 5,000 such connections against the built-in limit", long=True)
def large_crowds(ctx):
    for n in (1500, 5000):
        for name, data in CROWDS.items():
            with Crowd(ctx.server, n, data):
                good = fresh(lambda: ctx.server.call("GET", "/v2/health/live", timeout=10)[0] == 200, 250)
                check(good >= 238, f"{n} times {name}: {good} of 250 newcomers were served")


@item("H15", "clients that are gone when the answer is written")
def broken_pipe(ctx):
    data = valid(ctx.server)
    for i in range(100):
        with ctx.server.raw() as c:
            c.sendall(data * (1 + i % 5))
            if i % 2:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for port in ("grpc", "metrics"):
        for _ in range(20):
            with ctx.server.raw(port) as c:
                c.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    served(ctx.server)


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        kind = rng.randrange(5)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at:at + rng.randint(1, 9)]
        elif kind == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
        elif kind == 3:
            data[at:at] = rng.choice([b"\r\n", b"\n", b"\0", b": ", b"0\r\n\r\n", b"HTTP/1.1", b"Content-Length: 3\r\n",
                                      b"Transfer-Encoding: chunked\r\n", b"%00", b"GET "])
        else:
            data[at:at] = data[at:at + 40]
        if not data:
            data = bytearray(b"x")
    return bytes(data)


def noise(ctx, rounds, seed):
    rng = random.Random(seed)
    body, _ = ctx.server.infer_body("lstm_kws", binary=False)
    seeds = [LIVE, request(body=body[:300]), head("Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
             request("GET", "/v2/models/lstm_kws"), request(headers=["Content-Encoding: gzip"], body=gzip.compress(b"{}"))]
    for i in range(rounds):
        data = rng.randbytes(rng.randint(1, 2000)) if i % 4 == 0 else mutate(rng, rng.choice(seeds))
        got = ctx.server.send(data, timeout=20)
        check(got == b"" or 200 <= status_of(got) < 600, f"seed {seed}, round {i}: {got[:60]!r}")
        check(status_of(got) != 500, f"seed {seed}, round {i}: {got[:200]!r}")


@item("H16", "random bytes and bent requests")
def fuzz(ctx):
    noise(ctx, 400, 1)


@item("H16b", "random bytes and bent requests, many", long=True)
def fuzz_long(ctx):
    for seed in range(2, 12):
        noise(ctx, 2000, seed)
    for port in ("grpc", "metrics"):
        rng = random.Random(port)
        for _ in range(500):
            ctx.server.send(rng.randbytes(rng.randint(1, 2000)), port=port)


if __name__ == "__main__":
    main()
