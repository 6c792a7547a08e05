"""Group J: JSON."""
import decimal
import http.client
import json
import math
import random
import struct
import threading

import model
import harness
from harness import SANE, check, item, main
from wire import post, refused, request, told

harness.MODELS[:] = ["zoo:lstm_kws", model.repository("echo")]

GOOD = b'{"id":"q","inputs":[{"name":"x","shape":[3],"datatype":"FP32","data":[1,2.5,-3e0]}],"outputs":[{"name":"y"}]}'
MISSING = object()
LARGEST = 0x7f7fffff  # bits of the largest float
decimal.getcontext().prec = 12000


def ask(data="[1]", shape="[1]", name='"x"', datatype='"FP32"', extra="", more=""):
    """A request with parts of it replaced by other text."""
    text = f'{{"inputs":[{{"name":{name},"shape":{shape},"datatype":{datatype},"data":{data}{extra}}}]{more}}}'
    return text if isinstance(text, bytes) else text.encode()


def echo(server, document, status, about):
    return post(server, document, status, about, model="echo")


def values(answer):
    return json.loads(answer[2])["outputs"][0]["data"]


@item("J1", "nested a million deep")
def nested(ctx):
    s = ctx.server
    n = 1000000
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = opening * n + "1" + closing * n
        echo(s, ask(data=deep), 400, f"data {opening}")
        echo(s, ask(shape=deep), 400, f"shape {opening}")
        echo(s, ask(more=',"unknown":' + deep), 400, f"unknown {opening}")
        echo(s, ask(extra=',"parameters":' + deep), 400, f"parameters {opening}")
        echo(s, (opening * n).encode(), 400, f"never closed {opening}")
    echo(s, ask(data="[" * 200 + "1" + "]" * 200), 400, "deeper than the shape")


@item("J2", "a million keys; keys twice")
def keys(ctx):
    s = ctx.server
    many = ",".join(f'"k{i}":{i}' for i in range(1000000))
    echo(s, ask(more="," + many), 413, "a million unknown keys")
    echo(s, ask(more=',"parameters":{' + many + "}"), 413, "a million unknown parameters")
    echo(s, ask(more=',"unknown":[' + "0," * 1000000 + "0]"), 413, "a million unknown numbers")
    echo(s, ask(more=',"unknown":"' + "x" * 2000000 + '"'), 413, "an unknown word of two million letters")
    echo(s, ask(more="," + many[:500000].rsplit(",", 1)[0]), 200, "some unknown keys")
    for twice in (b'{"inputs":[],"inputs":[]}', ask(more=',"id":"a","id":"b"'), ask(extra=',"name":"x"'),
                  ask(extra=',"shape":[1]'), ask(extra=',"data":[1]'), ask(extra=',"data":[2]', data="[1]"),
                  ask(more=',"parameters":{"timeout":1000000,"timeout":2}'), ask(more=',"inputs":[]'),
                  ask(more=',"i\\u006eputs":[]')):
        echo(s, twice, 400, twice[-60:])


@item("J2b", "ten million keys", long=True)
def keys_many(ctx):
    body = ask(more="," + ",".join(['"a":0'] * 10000000))
    check(len(body) < 64 << 20, f"{len(body)} bytes")
    echo(ctx.server, body, 413, "ten million keys")
    refused(ctx.server, request(path="/v2/models/echo/infer", headers=[f"Content-Length: {64 << 20 | 1}"], length=False),
            413, "a byte beyond the limit")


@item("J2c", "large documents from many at once", long=True)
def large(ctx):
    count = 1000000
    body = ask(data="[" + ",".join(["0.123456789"] * count) + "]", shape=f"[{count}]")
    bad = []

    def again():
        for _ in range(3):
            got = ctx.server.call("POST", "/v2/models/echo/infer", body, timeout=120)[0]
            if got not in (200, 503, 504):
                bad.append(got)
    some = [threading.Thread(target=again) for _ in range(6)]
    for t in some:
        t.start()
    for t in some:
        t.join()
    check(not bad, f"{bad}")


@item("J3", "broken UTF-8, lone surrogates, a zero in a name")
def text(ctx):
    s = ctx.server
    for bad in (rb'"\ud800"', rb'"\udc00"', rb'"\ud800\u0041"', rb'"\ud83d"', rb'"x\u0000"', b'"\xff"', b'"\xc0\xaf"',
                b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b'"x\0"', b'"x\n"', rb'"\x41"', rb'"\u12"',
                rb'"\u12g4"', rb'"\u+123"', b'"x'):
        for where in (b'{"inputs":[{"name":%s,"shape":[1],"datatype":"FP32","data":[1]}]}',
                      b'{"id":%s,"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}]}',
                      b'{"inputs":[{"name":"x","shape":[1],"datatype":%s,"data":[1]}]}',
                      b'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"outputs":[{"name":%s}]}'):
            echo(s, where % bad, 400, where % bad)
    for bad in (b'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"\xff":1}',
                b'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"a":"\xff"}',
                rb'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"a":"\ud800"}'):
        echo(s, bad, 400, bad[-20:])
    got = echo(s, ask(name=r'"\u0078"', more=r',"id":"\ud83d\ude00\u00e9\/\"\\"'), 200, "escapes")
    check(json.loads(got[2])["id"] == "\U0001f600é/\"\\", got[2])
    got = echo(s, ask(more=',"id":"' + "i" * 100000 + '"'), 200, "a long id")
    check(json.loads(got[2])["id"] == "i" * 100000, "a long id comes back")
    got = echo(s, ask(more=',"id":"a\\r\\nX-Evil: 1"'), 200, "an id that would be headers")
    check("x-evil" not in got[1] and json.loads(got[2])["id"] == "a\r\nX-Evil: 1", f"{got}")


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def nearest(text):
    """The float that is nearest to a decimal, without going by way of a double."""
    first = f32(float(text))
    bits = struct.unpack("<I", struct.pack("<f", abs(first)))[0]
    around = [struct.unpack("<f", struct.pack("<I", b))[0] for b in (max(bits, 1) - 1, bits, min(bits + 1, LARGEST))]
    exact = abs(decimal.Decimal(text))
    size = min(around, key=lambda x: (abs(decimal.Decimal(x) - exact), struct.unpack("<I", struct.pack("<f", x))[0] & 1))
    return math.copysign(size, first)


@item("J4", "numbers that are none, and some that are")
def numbers(ctx):
    s = ctx.server
    for bad in ("1e999", "-1e999", "NaN", "Infinity", "-Infinity", "nan", "inf", "0x10", "01", "-01", "+1", "1.", ".5",
                "1e", "1e+", "-", "--1", "1_000", "1,", "1 2", "3.5e38", "1" * 10000, "1e99999999999999999999", "١",
                "1f", "1.0.0", "null", "true", '"1"', "[1]", "{}", ""):
        echo(s, ask(data=f"[{bad}]"), 400, f"[{bad[:30]}]")
    for good in ("-0", "0", "-0.0", "1e0", "1E+2", "0.1", "3.4028234e38", "1e-45", "16777217", "1e-999",
                 "0." + "3" * 10000, "0." + "0" * 5000 + "1", "1" + "0" * 30, "1.00000005960464477539062500001",
                 "1.000000059604644775390625", "9007199254740993", "2.2250738585072011e-308"):
        got = values(echo(s, ask(data=f"[{good}]"), 200, f"[{good[:30]}]"))[0]
        wanted = nearest(good)
        check(struct.pack("<f", got) == struct.pack("<f", wanted), f"{good[:40]}: {got}, not {wanted}")
    for bad in ("1.5", "1e999", "9223372036854775808", '"1"', "true"):
        echo(s, ask(data=f"[{bad}]", datatype='"INT64"'), 400, f"INT64 {bad}")


@item("J4b", "random numbers come back as they went", long=True)
def numbers_many(ctx):
    rng = random.Random(4)
    for _ in range(200):
        some = [struct.unpack("<f", struct.pack("<I", rng.getrandbits(32)))[0] for _ in range(1000)]
        some = [x for x in some if x == x and abs(x) != float("inf")]
        got = values(echo(ctx.server, ask(data=json.dumps(some), shape=f"[{len(some)}]"), 200, "random"))
        check([struct.pack("<f", x) for x in got] == [struct.pack("<f", x) for x in some], "not the same")


@item("J5", "cut at each byte")
def cut(ctx):
    c = http.client.HTTPConnection("127.0.0.1", ctx.server.ports["http"], timeout=30)
    for headers in ({}, {"Inference-Header-Content-Length": None}):
        for i in range(len(GOOD) + 1):
            part = GOOD[:i]
            if headers:
                headers = {"Inference-Header-Content-Length": str(i)}
            c.request("POST", "/v2/models/echo/infer", part, headers)
            r = c.getresponse()
            got = r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
            whole = i == len(GOOD)
            check(got[0] == (200 if whole else 400), f"{i} bytes: {got[0]} {got[2][:100]}")
            if not whole:
                told(got)
    c.close()


@item("J5b", "what follows the JSON is said to be wrong")
def followed(ctx):
    for more in (b"x", b"\0", b"]", b"{}", b"1"):
        got = ctx.server.call("POST", "/v2/models/echo/infer", GOOD + more)
        check(got[0] == 400 and b"other data follows" in got[2] or b"unexpected data" in got[2], f"{more}: {got}")


@item("J6", "shapes that are none")
def shapes(ctx):
    s = ctx.server
    for bad in ("[-1]", "[0]", "[9223372036854775808]", "[9223372036854775807]", "[1.5]", '["3"]', "[null]", "[[1]]",
                "[true]", "[" + ",".join(["1"] * 10000) + "]", "[2]", "[1,1]", "[]", "{}", '"1"', "1", "[1,]", "[,1]",
                "[4294967297]", "[1e30]", "[18446744073709551617]"):
        echo(s, ask(shape=bad), 400, f"shape {bad[:40]}")
    echo(s, ask(shape="null"), 400, "shape null")
    for data, shape in (("[[1,2],[3]]", "[2,2]"), ("[[1],[2,3]]", "[2,2]"), ("[1,[2]]", "[2]"), ("[]", "[1]"),
                        ("[1,2]", "[1]"), ("[[[1]]]", "[1]"), ("1", "[1]"), ("{}", "[1]"), ('"1"', "[1]")):
        echo(s, ask(data=data, shape=shape), 400, f"{data} as {shape}")


@item("J7", "100,000 outputs; one of them twice")
def outputs(ctx):
    s = ctx.server
    many = ",".join(f'{{"name":"o{i}"}}' for i in range(100000))
    echo(s, ask(more=f',"outputs":[{many}]'), 400, "100,000 unknown outputs")
    many = ",".join(['{"name":"y"}'] * 100000)
    echo(s, ask(more=f',"outputs":[{many}]'), 400, "100,000 times the same")
    echo(s, ask(more=',"outputs":[{"name":"y"},{"name":"y"}]'), 400, "twice")
    echo(s, ask(more=',"outputs":[{"name":"z"}]'), 400, "unknown")
    echo(s, ask(more=',"outputs":[{}]'), 400, "without a name")
    inputs = ",".join(['{"name":"x","shape":[1],"datatype":"FP32","data":[1]}'] * 100000)
    echo(s, f'{{"inputs":[{inputs}]}}'.encode(), 400, "100,000 inputs")
    got = echo(s, ask(more=',"outputs":[]'), 200, "none: all")
    check(len(json.loads(got[2])["outputs"]) == 1, got[2])


@item("J8", "strings for numbers, and the reverse")
def kinds(ctx):
    s = ctx.server
    for bad in (ask(data='["1"]'), ask(data='"1"'), ask(name="5"), ask(datatype="5"), ask(more=',"id":5'),
                ask(more=',"parameters":{"timeout":"5"}'), ask(more=',"parameters":{"timeout":-5}'),
                ask(more=',"parameters":{"timeout":1.5}'), ask(more=',"parameters":{"priority":"1"}'),
                ask(more=',"parameters":{"binary_data_output":"yes"}'),
                ask(more=',"parameters":{"binary_data_output":1}'), ask(more=',"parameters":[]'),
                ask(more=',"parameters":"x"'), ask(more=',"outputs":{}'), ask(more=',"outputs":["y"]'),
                ask(more=',"outputs":[{"name":1}]'), b'{"inputs":{}}', b'{"inputs":["x"]}', b'{"inputs":[[]]}',
                b'{"inputs":5}', b'{"inputs":null}', b"{}", b"[]", b"5", b'"x"', b"null", b"", b" ", ask() + ask(),
                ask() + b"x", b"\xef\xbb\xbf" + ask(), ask(datatype='"fp32"'), ask(datatype='"FP32 "'),
                ask(datatype='"BOOL"'), ask(datatype='"FP16"'), ask(datatype='""'), ask(name='""'), ask(name='"X"'),
                ask(extra=',"parameters":{"binary_data_size":"4"}'),
                ask(extra=',"parameters":{"shared_memory_region":"r"}'),
                ask(more=',"outputs":[{"name":"y","parameters":{"shared_memory_region":"r"}}]'),
                b"'" + ask() + b"'", ask(more=",}"), ask(more=",,"), ask().replace(b":", b"=")):
        echo(s, bad, 400, bad[-70:])
    for good in (ask(more=',"parameters":{"unknown":{"a":[1]},"x":"y","priority":0}'), ask(more=',"parameters":{}'),
                 ask(more=',"parameters":null'), ask(more=',"id":null'), b" \r\n\t" + ask() + b"\n",
                 ask(more=',"parameters":{"priority":99999999999,"timeout":18446744073709551615}')):
        echo(s, good, 200, good[-70:])


def bend(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        if rng.random() < 0.5:
            data[at] = rng.choice(b'{}[]",:0123456789.eE+-tfn\\u \0\xff')
        elif rng.random() < 0.5:
            del data[at]
        else:
            data[at:at] = data[rng.randrange(len(data)):][:rng.randint(1, 20)]
    return bytes(data)


def noise(ctx, rounds, seed):
    rng = random.Random(seed)
    c = http.client.HTTPConnection("127.0.0.1", ctx.server.ports["http"], timeout=30)
    for i in range(rounds):
        data = bend(rng, GOOD)
        c.request("POST", "/v2/models/echo/infer", data)
        r = c.getresponse()
        body = r.read()
        check(r.status in (200, 400), f"seed {seed}, round {i}: {r.status} {data} {body[:200]}")
        try:
            whole = json.loads(data)
        except ValueError:
            whole = MISSING
        check(r.status == 400 or whole is not MISSING, f"what is no JSON was taken: {data}")
    c.close()


@item("J9", "bent requests: what is taken is JSON")
def bent(ctx):
    noise(ctx, 2000, 1)


@item("J9b", "bent requests, many", long=True)
def bent_many(ctx):
    for seed in range(2, 8 if SANE else 22):
        noise(ctx, 5000, seed)


if __name__ == "__main__":
    main()
