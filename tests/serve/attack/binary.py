"""Group B: the binary tensor extension."""
import gzip
import json
import random
import struct
import zlib

import model
import harness
from harness import check, item, main
from wire import answers, bomb, one, refused, request

harness.MODELS[:] = ["zoo:lstm_kws", model.repository("echo", "pair")]

A, B = struct.pack("<6f", 1, 2, 3, 4, 5, 6), struct.pack("<6f", 6, 5, 4, 3, 2, 1)


def tensor(name, raw, size=None, shape=(2, 3), datatype="FP32", **extra):
    return dict({"name": name, "shape": list(shape), "datatype": datatype,
                 "parameters": {"binary_data_size": len(raw) if size is None else size}}, **extra)


def ask(server, document, tail, status, about, name="pair", length=None, headers=(), encode=None):
    """length: what the header says; None: the truth; False: no header."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    lines = list(headers)
    if length is not False:
        lines.append(f"Inference-Header-Content-Length: {len(text) if length is None else length}")
    body = text + tail
    return one(server, request(path=f"/v2/models/{name}/infer", headers=lines, body=encode(body) if encode else body),
               status, about)


def pair(**parameters):
    return dict({"inputs": [tensor("a", A), tensor("b", B)]}, **parameters)


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


@item("B0", "what is right comes back right")
def right(ctx):
    s = ctx.server
    got = ask(s, pair(parameters={"binary_data_output": True}), A + B, 200, "both binary")
    n = int(got[1]["inference-header-content-length"])
    head = json.loads(got[2][:n])
    check([o["parameters"]["binary_data_size"] for o in head["outputs"]] == [24, 24], head)
    check(floats(got[2][n:]) == [7.0] * 6 + [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0], floats(got[2][n:]))
    check(got[1]["content-type"] == "application/octet-stream" and len(got[2]) == n + 48, f"{got[1]}")
    mixed = pair(outputs=[{"name": "difference", "parameters": {"binary_data": False}}, {"name": "sum"}],
                 parameters={"binary_data_output": True})
    got = ask(s, mixed, A + B, 200, "one of each")
    n = int(got[1]["inference-header-content-length"])
    head = json.loads(got[2][:n])
    check(head["outputs"][0]["data"] == [-5, -3, -1, 1, 3, 5] and floats(got[2][n:]) == [7.0] * 6, head)
    got = ask(s, pair(), A + B, 200, "binary in, JSON out")
    check("inference-header-content-length" not in got[1], f"{got[1]}")
    got = ask(s, b"", A, 200, "a raw body", name="echo")
    n = int(got[1]["inference-header-content-length"])
    check(got[2][n:] == A, "a raw body")


@item("B1", "binary_data_size without the length header")
def no_header(ctx):
    ask(ctx.server, pair(), A + B, 400, "with a tail", length=False)
    ask(ctx.server, pair(), b"", 400, "without one", length=False)


@item("B2", "N beyond the body")
def beyond(ctx):
    text = json.dumps(pair()).encode()
    for n in (len(text) + 49, 100000, 2**31, 2**32, 2**53):
        ask(ctx.server, pair(), A + B, 400, f"N = {n}", length=n)
        ask(ctx.server, pair(), A + B, 400, f"N = {n}, packed", length=n, headers=["Content-Encoding: gzip"],
            encode=gzip.compress)
        body = text + A + B
        data = request(path="/v2/models/pair/infer", headers=["Transfer-Encoding: chunked",
                                                              f"Inference-Header-Content-Length: {n}"], length=False)
        one(ctx.server, data + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), 400, f"N = {n}, chunked")
    for n in (len(text) - 1, len(text) + 1, 1, 0):
        ask(ctx.server, pair(), A + B, 400, f"N = {n} cuts it elsewhere", length=n)


@item("B3", "N negative, no number, too large")
def no_number(ctx):
    s = ctx.server
    for n in ("-1", "-0", "+5", "0x10", "1e2", "1.0", "abc", "", " ", "1 2", "1,2", "18446744073709551616",
              "9223372036854775808", "99999999999999999999999", "\xb2", "1;2", "NaN"):
        ask(s, pair(), A + B, 400, f"N = {n!r}", length=n)
    true = len(json.dumps(pair()))
    ask(s, pair(), A + B, 200, "leading zeros", length=f"000{true}")
    got = answers(s.send(request(path="/v2/models/pair/infer", headers=[
        f"Inference-Header-Content-Length: {true}", "Inference-Header-Content-Length: 5"],
        body=json.dumps(pair()).encode() + A + B)))
    check(len(got) == 1 and got[0][0] in (200, 400), f"twice: {[g[0] for g in got]}")


@item("B4", "sizes that are not what is left")
def sums(ctx):
    s = ctx.server
    ask(s, pair(), A + B + b"x", 400, "a byte more")
    ask(s, pair(), A + B[:-1], 400, "a byte less")
    ask(s, pair(), A, 400, "one of two")
    ask(s, pair(), b"", 400, "nothing")
    ask(s, pair(), A + B + A, 400, "one more")
    ask(s, {"inputs": [tensor("a", A), dict(tensor("b", B), parameters={}, data=[1] * 6)]}, A + B, 400, "one is JSON")
    ask(s, {"inputs": [tensor("a", A), dict(tensor("b", B), parameters={}, data=[1] * 6)]}, A, 200, "and it is one")


@item("B5", "a size that is not the shape's")
def sizes(ctx):
    s = ctx.server
    for size in (0, 1, 23, 25, 48, 2**31, 2**32 + 24, 2**63 - 1, 2**63, 2**64 + 24, -24, -1):
        ask(s, {"inputs": [tensor("a", A, size), tensor("b", B)]}, A + B, 400, f"size {size}")
    for size in ("24", 24.5, True, None, [24], {}):
        ask(s, {"inputs": [tensor("a", A, size) if size is not None else tensor("a", A, "x"), tensor("b", B)]}, A + B,
            400, f"size {size!r}")
    for shape in ([3, 2], [6], [2, 2], [2, 4], [1, 2, 3]):
        ask(s, {"inputs": [tensor("a", A, shape=shape), tensor("b", B)]}, A + B, 400, f"shape {shape}")
    for kind in ("FP64", "INT32", "FP16", "UINT8", "BOOL", "BYTES", "BF16"):
        ask(s, {"inputs": [tensor("a", A, datatype=kind), tensor("b", B)]}, A + B, 400, f"as {kind}")


@item("B6", "sizes whose product overflows")
def products(ctx):
    for shape in ([65536] * 4, [2**62, 4], [2**31, 2**31, 4], [2**63 - 1, 2], [2**61, 2], [2**32, 2**30]):
        for size in (0, 24, 2**63 - 1):
            ask(ctx.server, {"inputs": [tensor("x", A, size, shape)]}, A, 400, f"{shape}, {size}", name="echo")


@item("B7", "the same input twice")
def twice(ctx):
    s = ctx.server
    ask(s, {"inputs": [tensor("a", A), tensor("a", A)]}, A + A, 400, "a, a")
    ask(s, {"inputs": [tensor("a", A), tensor("b", B), tensor("a", A)]}, A + B + A, 400, "a, b, a")
    many = {"inputs": [tensor("a", b"", 0, [0])] * 10000}
    ask(s, many, b"", 400, "10,000 times nothing")


@item("B8", "binary and data both")
def both(ctx):
    s = ctx.server
    ask(s, {"inputs": [tensor("a", A, data=[1] * 6), tensor("b", B)]}, A + B, 400, "both")
    first = b'{"inputs":[{"data":[1,1,1,1,1,1],"parameters":{"binary_data_size":24},"name":"a","shape":[2,3],"datatype":"FP32"}]}'
    ask(s, first, A, 400, "data first")
    ask(s, {"inputs": [tensor("a", A, data=[]), tensor("b", B)]}, A + B, 400, "empty data")


@item("B9", "tensors at any address")
def odd(ctx):
    s = ctx.server
    for pad in range(1, 70):
        text = json.dumps(pair(id="i" * pad, parameters={"binary_data_output": True})).encode()
        got = ask(s, text, A + B, 200, f"{len(text)} bytes of JSON")
        n = int(got[1]["inference-header-content-length"])
        check(floats(got[2][n:]) == [7.0] * 6 + [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0], f"{len(text)} bytes of JSON")
    flag = {"inputs": [tensor("x", A, 1, [1], "BOOL"), tensor("a", A), tensor("b", B)]}
    ask(s, flag, b"\1" + A + B, 400, "a byte between")
    ask(s, {"inputs": [tensor("x", A, 1, [1], "BOOL")]}, b"\2", 400, "a BOOL of 2", name="echo")


@item("B10", "compressed bodies, within the limit and beyond")
def packed(ctx):
    s = ctx.server
    for encoding, encode in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        got = ask(s, pair(parameters={"binary_data_output": True}), A + B, 200, encoding,
                  headers=[f"Content-Encoding: {encoding}"], encode=encode)
        n = int(got[1]["inference-header-content-length"])
        check(floats(got[2][n:])[:6] == [7.0] * 6, encoding)
        for n in (-1, 1, 100000):
            ask(s, pair(), A + B, 400, f"{encoding}: N is off by {n}", length=len(json.dumps(pair())) + n,
                headers=[f"Content-Encoding: {encoding}"], encode=encode)
    data = bomb(65)
    refused(s, request(path="/v2/models/pair/infer", headers=["Content-Encoding: gzip",
                                                              "Inference-Header-Content-Length: 100"], body=data),
            413, "65 MiB")


def noise(ctx, rounds, seed):
    rng = random.Random(seed)
    whole = json.dumps(pair()).encode() + A + B
    for i in range(rounds):
        data = bytearray(whole)
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at] = rng.randrange(256)
            else:
                del data[at:at + rng.randint(1, 5)]
        length = rng.choice([len(whole) - 48, len(data) - 48, rng.randint(0, len(data) + 2)])
        lines = [f"Inference-Header-Content-Length: {length}"]
        got = answers(ctx.server.send(request(path="/v2/models/pair/infer", headers=lines, body=bytes(data))))
        check(len(got) == 1 and got[0][0] in (200, 400), f"seed {seed}, round {i}: {[g[0] for g in got]} {bytes(data)}")


@item("B11", "bent requests")
def bent(ctx):
    noise(ctx, 500, 1)


@item("B11b", "bent requests, many", long=True)
def bent_many(ctx):
    for seed in range(2, 12):
        noise(ctx, 2000, seed)


if __name__ == "__main__":
    main()
