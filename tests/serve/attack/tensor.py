"""Group T: tensors."""
import json
import struct
import time

import model
import harness
from harness import SANE, check, item, main
from wire import one, post, request

harness.MODELS[:] = ["zoo:lstm_kws", model.repository("echo", "pair", "gather", "wide", "batch", "deep", "folded", "found", "forked")]


def tensor(name="x", shape=(1,), data=(1,), datatype="FP32", **extra):
    return dict({"name": name, "shape": list(shape), "datatype": datatype, "data": list(data)}, **extra)


def binary(name, shape, data, datatype="FP32"):
    return {"name": name, "shape": list(shape), "datatype": datatype, "parameters": {"binary_data_size": len(data)}}


def ask(*inputs, **more):
    return dict({"inputs": list(inputs)}, **more)


def send_binary(server, name, inputs, tail, status, about):
    head = json.dumps({"inputs": inputs}).encode()
    return post(server, head + tail, status, about, name, {"Inference-Header-Content-Length": str(len(head))})


@item("T1", "sizes that overflow 64 bits")
def overflow(ctx):
    s = ctx.server
    for shape in ([65536] * 4, [2**32, 2**32], [2**62, 4], [2**63 - 1, 2], [2**31, 2**31, 4], [2**61], [2**62], [3] * 100,
                  [2**63 - 1] * 8, [0, 2**63 - 1, 2**63 - 1], [2**32 + 1], [2**60, 16], [2**63 - 1]):
        post(s, ask(tensor(shape=shape)), 400, f"{shape}", "echo")
        post(s, ask(tensor(shape=shape, data=[])), 400, f"{shape} without data", "echo")
        send_binary(s, "echo", [binary("x", shape, b"")], b"", 400, f"{shape} of no bytes")
        send_binary(s, "echo", [binary("x", shape, b"1234")], b"1234", 400, f"{shape} of four bytes")
        for kind in ("FP64", "BYTES", "BOOL", "INT64"):
            post(s, ask(tensor(shape=shape, datatype=kind, data=[])), 400, f"{shape} {kind}", "echo")


@item("T2", "nothing in it")
def empty(ctx):
    s = ctx.server
    for name, shape in (("echo", [0]), ("batch", [0, 3]), ("gather", [0]), ("wide", [0, 1]), ("deep", [0, 192])):
        key, kind = ("at", "INT64") if name == "gather" else ("x", "FP32")
        post(s, ask(tensor(key, shape, [], kind)), 400, f"{name} {shape}", name)
        send_binary(s, name, [binary(key, shape, b"", kind)], b"", 400, f"{name} {shape}, binary")
    post(s, ask(tensor(shape=[], data=[1])), 400, "a scalar", "echo")
    post(s, ask(tensor("mfcc", [1, 0, 10], [])), 400, "a dimension of a fixed shape")
    one(s, request(path="/v2/models/echo/infer", headers=["Inference-Header-Content-Length: 0"]), 400, "a raw body of nothing")


@item("T3", "wrong rank, name, type; missing, extra and double inputs")
def wrong(ctx):
    s = ctx.server
    a, b = (tensor(n, [2, 3], range(6)) for n in "ab")
    post(s, ask(a, b), 200, "right", "pair")
    for about, document in (
            ("b is missing", ask(a)), ("nothing", ask()), ("one more", ask(a, b, tensor("c", [2, 3], range(6)))),
            ("a twice", ask(a, b, a)), ("a twice, no b", ask(a, a)), ("rank 1", ask(a, tensor("b", [6], range(6)))),
            ("rank 3", ask(a, tensor("b", [1, 2, 3], range(6)))), ("turned", ask(a, tensor("b", [3, 2], range(6)))),
            ("type", ask(a, tensor("b", [2, 3], range(6), "INT32"))), ("double", ask(a, tensor("b", [2, 3], range(6), "FP64"))),
            ("case", ask(a, tensor("B", [2, 3], range(6)))), ("few", ask(a, tensor("b", [2, 3], range(5)))),
            ("many", ask(a, tensor("b", [2, 3], range(7)))), ("no data", ask(a, {k: b[k] for k in ("name", "shape", "datatype")})),
            ("no type", ask(a, {k: b[k] for k in ("name", "shape", "data")})),
            ("no shape", ask(a, {k: b[k] for k in ("name", "datatype", "data")})),
            ("no name", ask(a, {k: b[k] for k in ("shape", "datatype", "data")})),
            ("unknown output", ask(a, b, outputs=[{"name": "product"}]))):
        post(s, document, 400, about, "pair")
    got = post(s, ask(b, a, outputs=[{"name": "difference"}]), 200, "another order", "pair")
    check(json.loads(got[2])["outputs"][0]["data"] == [0] * 6, got[2])
    post(s, ask(tensor("mfcc", [1, 49, 10], [0] * 490)), 404, "unknown model", "nobody")
    post(s, ask(tensor("mfcc", [1, 49, 10], [0] * 490)), 404, "unknown version", "lstm_kws/versions/7")


@item("T4", "BYTES past the end")
def strings(ctx):
    s = ctx.server
    for about, shape, data in (("past the end", [1], struct.pack("<I", 5) + b"abc"),
                               ("2^32-1", [1], struct.pack("<I", 2**32 - 1) + b"abc"), ("cut", [1], b"\1\0"),
                               ("left over", [1], struct.pack("<I", 1) + b"abc"), ("none", [1], b""),
                               ("one of two", [2], struct.pack("<I", 3) + b"abc"),
                               ("a sum of 2^32", [2], struct.pack("<I", 2**32 - 4) + struct.pack("<I", 0)),
                               ("many", [2**40], struct.pack("<I", 0)), ("2^62", [2**62], struct.pack("<I", 0))):
        send_binary(s, "echo", [binary("x", shape, data, "BYTES")], data, 400, about)
    fine = struct.pack("<I", 3) + b"abc"
    send_binary(s, "echo", [binary("x", [1], fine, "BYTES")], fine, 400, "well formed, and the model takes FP32")
    post(s, ask(tensor(datatype="BYTES", data=["abc"])), 400, "as JSON", "echo")


@item("T5", "a batch beyond the most")
def batch(ctx):
    s = ctx.server
    post(s, ask(tensor(shape=[4, 3], data=range(12))), 200, "the most", "batch")
    post(s, ask(tensor(shape=[5, 3], data=range(15))), 400, "one more", "batch")
    zeros = bytes(4 * 3 * 100000)
    send_binary(s, "batch", [binary("x", [100000, 3], zeros)], zeros, 400, "100,000")
    one(s, request(path="/v2/models/batch/infer", headers=["Inference-Header-Content-Length: 0"], body=zeros), 400, "raw")


@item("T10", "reshape in config.pbtxt: clients see its dims, the model has its shape")
def reshape(ctx):
    s = ctx.server
    told = json.loads(s.call("GET", "/v2/models/folded")[2])
    check(told["inputs"][0]["shape"] == [-1, 6] and told["outputs"][0]["shape"] == [-1, 3, 2], f"metadata: {told}")
    for n in (1, 2, 4):
        status, _, got = s.call("POST", "/v2/models/folded/infer", json.dumps(ask(tensor(shape=[n, 6], data=range(6 * n)))))
        out = json.loads(got)["outputs"][0] if status == 200 else {}
        check(out.get("shape") == [n, 3, 2] and out["data"] == [-float(i) for i in range(6 * n)], f"{status} {got[:200]}")
    raw = request(path="/v2/models/folded/infer", headers=["Inference-Header-Content-Length: 0"], body=bytes(24))
    one(s, raw, 200, "raw")
    for shape in ([1, 2, 3], [1, 3, 2], [6], [1, 5], [2, 3]):
        n = 1
        for d in shape:
            n *= d
        post(s, ask(tensor(shape=shape, data=range(n))), 400, f"of the model, or of none: {shape}", "folded")
    post(s, ask(tensor(shape=[5, 6], data=range(30))), 400, "a batch beyond the most", "folded")
    ranked = ask(tensor(shape=[2, 6], data=range(12)), outputs=[{"name": "y", "parameters": {"classification": 2}}])
    status, _, got = s.call("POST", "/v2/models/folded/infer", json.dumps(ranked))
    check(status == 200 and json.loads(got)["outputs"][0]["shape"][0] == 2, f"classification: {status} {got[:200]}")
    # The output's shape depends on the values: one that config.pbtxt does not reshape is the request's fault.
    for _ in range(8):
        post(s, ask(tensor(shape=[3], data=[1, 0, 2])), 400, "an output that is not reshaped", "found")
    post(s, ask(tensor(shape=[3], data=[1, 5, 2])), 200, "one that is", "found")


@item("T11", "inputs that choose a branch with an unsupported type: an error, every time, and the model is served on")
def forked(ctx):
    s = ctx.server
    x = tensor(shape=[2], data=[1, 2])
    for _ in range(12):
        post(s, ask(tensor("c", [], [False], "BOOL"), x), 400, "the branch that cannot be computed", "forked")
    post(s, ask(tensor("c", [], [True], "BOOL"), x), 200, "the other", "forked")


def quickest(server, name, body, headers, times):
    """The least time in blocks that a request took, as the server says."""
    best = 1e9
    for _ in range(times):
        got = server.call("POST", f"/v2/models/{name}/infer", body, dict(headers, **{"x-cotenant-timing": "1"}))
        check(got[0] == 200, f"{got[0]} {got[2][:200]}")
        head = json.loads(got[2][:int(got[1]["inference-header-content-length"])])
        best = min(best, head["parameters"]["compute_us"])
    return best


def floats(server, name, shape, bits):
    count = 1
    for d in shape:
        count *= d
    tail = struct.pack("<I", bits) * count
    head = json.dumps({"inputs": [binary("x" if name != "lstm_kws" else "mfcc", shape, tail)],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + tail, {"Inference-Header-Content-Length": str(len(head))}


@item("T6", "NaN, infinity, denormals: no slower than others")
def odd_floats(ctx):
    s = ctx.server
    for name, shape in (("deep", [64, 192]), ("lstm_kws", [1, 49, 10])):
        usual = quickest(s, name, *floats(s, name, shape, 0x3f800000), 12)
        for about, bits in (("NaN", 0x7fc00000), ("signalling NaN", 0x7f800001), ("infinity", 0x7f800000),
                            ("denormal", 0x00012345), ("least", 1), ("largest", 0x7f7fffff), ("-0", 0x80000000)):
            for _ in range(10):  # other programs may have the cores for a while
                took = quickest(s, name, *floats(s, name, shape, bits), 12)
                if SANE or took < 6 * usual + 300:
                    break
            else:
                check(False, f"{name}, {about}: {took:.0f} us, usually {usual:.0f}")
    tail = struct.pack("<4I", 0x7fc00000, 0x7f800000, 0xff800000, 0x80000000)
    got = send_binary(s, "echo", [binary("x", [4], tail)], tail, 400, "what JSON cannot say")
    check(b"binary" in got[2], got[2])


@item("T7", "an answer beyond the limit", flags=("--response-mb", "4"))
def huge(ctx):
    s = ctx.server
    rss = s.rss()
    for rows, status in ((15, 200), (16, 413), (17, 413), (64, 413), (4000, 413)):
        tail = bytes(4 * rows)
        head = json.dumps({"inputs": [binary("x", [rows, 1], tail)],
                           "parameters": {"binary_data_output": True}}).encode()
        post(s, head + tail, status, f"{rows} rows", "wide", {"Inference-Header-Content-Length": str(len(head))})
    post(s, ask(tensor(shape=[8, 1], data=[0.1234567] * 8)), 413, "as JSON it is longer", "wide")
    # 2^24 rows are 2^42 bytes: refused by its size before anything is allocated.
    tail = bytes(4 << 22)
    got = s.call("POST", "/v2/models/wide/infer", tail, {"Inference-Header-Content-Length": "0"}, timeout=60)
    check(got[0] in (400, 413), f"1 TiB: {got[0]} {got[2][:200]}")
    check(SANE or s.rss() - rss < 160 << 20, f"{(s.rss() - rss) >> 20} MiB more")


@item("T8", "indices out of range are an error, every time, and the model is served on")
def gather(ctx):
    s = ctx.server
    for index in (10, -11, 2**31, 2**32, 2**62, -2**63, 2**63 - 1, 11, 100, -12):
        for _ in range(2):  # often enough that a model which fails would be put aside
            post(s, ask(tensor("at", [3], [0, index, 1], "INT64")), 400, f"index {index}", "gather")
    got = post(s, ask(tensor("at", [3], [0, -1, 9], "INT64")), 200, "within", "gather")
    check(json.loads(got[2])["outputs"][0]["data"] == [0, 1, 2, 3, 36, 37, 38, 39, 36, 37, 38, 39], got[2])


@item("T9", "many shapes of one model: as many as are kept, and the rest in turn")
def shapes(ctx):
    s = ctx.server
    begin = time.monotonic()
    for n in range(1, 40):
        status, _, body = s.call("POST", "/v2/models/echo/infer",
                                 json.dumps(ask(tensor(shape=[n], data=range(n)))).encode(), timeout=60)
        check(status in (200, 503), f"{n}: {status} {body[:200]}")
        check(status != 200 or json.loads(body)["outputs"][0]["data"] == list(range(n)), f"{n}: {body[:200]}")
    check(time.monotonic() - begin < 60, "it takes for ever")


if __name__ == "__main__":
    main()
