"""Requests over HTTP/1.1 as bytes, so that they can be wrong, and answers counted one by one."""
import json
import re
import zlib

from harness import check, status_of

LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


def request(method="POST", path="/v2/models/lstm_kws/infer", headers=(), body=b"", length=True):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if length and (body or method == "POST"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def valid(server, model="lstm_kws", **parameters):
    """A whole request that is answered with 200."""
    body, headers = server.infer_body(model, **parameters)
    return request(path=f"/v2/models/{model}/infer", headers=[f"{k}: {v}" for k, v in headers.items()], body=body)


def answers(data):
    """Every answer in what came back: (status, headers, body). Fails where that is not HTTP."""
    out = []
    while data:
        head, mark, rest = data.partition(b"\r\n\r\n")
        check(mark and re.match(rb"HTTP/1\.1 \d{3} ", head), f"no answer: {data[:80]!r}")
        fields = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
        fields = {k.lower(): v for k, v in fields.items()}
        size = int(fields.get("content-length", 0))
        check(len(rest) >= size, f"an answer that is cut: {len(rest)} of {size} bytes")
        out.append((status_of(head), fields, rest[:size]))
        data = rest[size:]
    return out


def told(answer):
    """The sentence of an error, which has neither paths nor addresses."""
    status, fields, body = answer
    check(fields.get("content-type") == "application/json", f"{status}: {fields}")
    why = json.loads(body)["error"]
    check(why and not re.search(r"/(tmp|home|usr|work|root)/|0x[0-9a-f]{6}", why), f"{status}: {why}")
    return why


def refused(server, data, status, about, port="http"):
    """The one answer is this status; the connection is closed and what came behind it is not read."""
    got = answers(server.send(data, port=port))
    check([g[0] for g in got] == [status], f"{about}: {[g[0] for g in got]}, not {status}")
    return told(got[0])


def one(server, data, status, about, port="http"):
    """The answer to a request; the client sends no more."""
    got = answers(server.send(data, port=port))
    check(len(got) == 1, f"{about}: {len(got)} answers")
    check(got[0][0] == status, f"{about}: {got[0][0]} {got[0][2][:160]!r}, not {status}")
    if status >= 400:
        told(got[0])
    return got[0]


def post(server, document, status, about, model="lstm_kws", headers=None):
    """An inference by its JSON, or by its bytes; the answer as it was read."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    got = server.call("POST", f"/v2/models/{model}/infer", body, headers or {}, timeout=60)
    check(got[0] == status, f"{about}: {got[0]} {got[2][:200]!r}, not {status}")
    if status >= 400:
        told(got)
    return got


def bomb(mib):
    """gzip of so many MiB of blanks, a thousandth of it, made quickly: blocks after a full flush repeat."""
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = z.compress(b" " * (1 << 20)) + z.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * mib + last + bytes(8)
