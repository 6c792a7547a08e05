"""Every REST call as NVIDIA's HTTP client makes it, over any HTTP client: call(method, path, body, headers)."""
import gzip
import json
import struct
import zlib

from values import (A, B, BINARY, DIFFERENCE, NUMBERS, RAW, SUM, TEXT, bytes_items, bytes_raw, equal, ints)

CALLS = []


def call(f):
    CALLS.append(f)
    return f


def ask(c, method, path, body=b"", status=200, headers=None):
    got, head, data = c.call(method, path, body if isinstance(body, bytes) else json.dumps(body).encode(), headers or {})
    equal(got, status, f"{method} {path}: {data[:200]}")
    if head.get("inference-header-content-length"):
        return data, int(head["inference-header-content-length"])
    return json.loads(data) if data else None


def infer(c, model, inputs, outputs=None, pack=None, query="", headers=None, status=200, **more):
    """inputs: (name, type, shape, values for JSON, or bytes). Returns {output: values or bytes}."""
    request, tail = {"inputs": [], **more}, b""
    for name, kind, shape, data in inputs:
        form = {"parameters": {"binary_data_size": len(data)}} if isinstance(data, bytes) else {"data": data}
        request["inputs"].append({"name": name, "shape": shape, "datatype": kind, **form})
        tail += data if isinstance(data, bytes) else b""
    if outputs is None:
        request["parameters"] = {**request.get("parameters", {}), "binary_data_output": True}
    else:
        request["outputs"] = outputs
    body = json.dumps(request).encode()
    how = {**(headers or {}), **({"Inference-Header-Content-Length": str(len(body))} if tail else {})}
    body += tail
    if pack:
        body, how["Content-Encoding"] = {"gzip": gzip.compress, "deflate": zlib.compress}[pack](body), pack
    return parse(ask(c, "POST", f"/v2/models/{model}/infer{query}", body, status, how))


def parse(answer):
    if isinstance(answer, dict):
        return answer if "error" in answer else {o["name"]: o["data"] for o in answer["outputs"]}
    data, at = answer
    out = {}
    for o in json.loads(data[:at])["outputs"]:
        n = o.get("parameters", {}).get("binary_data_size")
        out[o["name"]] = o["data"] if n is None else data[at:at + n]
        at += n or 0
    equal(at, len(data))
    return out


def simple(c, first=A, second=B, **how):
    pick = [x if isinstance(x, bytes) else list(x) for x in (first, second)]
    return infer(c, "simple", [("INPUT0", "INT32", [1, 16], pick[0]), ("INPUT1", "INT32", [1, 16], pick[1])], **how)


BOTH = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}, {"name": "OUTPUT1", "parameters": {"binary_data": False}}]
WANT = {"OUTPUT0": ints(SUM), "OUTPUT1": DIFFERENCE}


@call
def health(c):
    for path in ["live?test_1=1&test_2=2", "ready"]:
        ask(c, "GET", f"/v2/health/{path}")


@call
def model_ready(c):
    ask(c, "GET", "/v2/models/simple/ready")
    ask(c, "GET", "/v2/models/simple/versions/1/ready")
    ask(c, "GET", "/v2/models/wrong_model_name/ready", status=404)


@call
def metadata(c):
    equal(ask(c, "GET", "/v2")["name"], "triton")
    m = ask(c, "GET", "/v2/models/simple?test_1=1")
    equal([m["name"], m["inputs"][0]], ["simple", {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]}])
    assert "Request for unknown model" in ask(c, "GET", "/v2/models/wrong_model_name", status=404)["error"]


@call
def config(c):
    m = ask(c, "GET", "/v2/models/images/config")
    equal([m["max_batch_size"], m["input"][0]["format"], m["input"][0]["dims"], m["output"][0]["label_filename"]],
          [8, "FORMAT_NCHW", [1, 2, 2], "labels.txt"])
    assert "dynamic_batching" not in m
    equal(ask(c, "GET", "/v2/models/images/versions/1/config"), m)


@call
def infer_json(c):
    equal(simple(c, outputs=[{"name": "OUTPUT0"}, {"name": "OUTPUT1"}]), {"OUTPUT0": SUM, "OUTPUT1": DIFFERENCE})


@call
def infer_binary(c):
    equal(simple(c, ints(A), ints(B)), {"OUTPUT0": ints(SUM), "OUTPUT1": ints(DIFFERENCE)})


@call
def infer_mixed(c):
    equal(simple(c, A, ints(B), outputs=BOTH, query="?test_1=1&test_2=2", headers={"test": "1"}), WANT)


@call
def infer_parameters(c):
    more = {"sequence_id": 7, "sequence_start": True, "sequence_end": False, "priority": 1, "timeout": 10000000,
            "custom": "x"}
    equal(simple(c, A, ints(B), outputs=BOTH, id="my request id", parameters=more), WANT)


@call
def compressed(c):
    for pack in ["gzip", "deflate"]:
        equal(simple(c, A, ints(B), outputs=BOTH, pack=pack, headers={"Accept-Encoding": pack}), WANT)


@call
def every_type(c):
    for kind, raw in RAW.items():
        equal(infer(c, f"echo_{kind}", [("in", kind, [6], raw)]), {"out": raw}, kind)
    for kind, (form, _, values) in NUMBERS.items():
        got = infer(c, f"echo_{kind}", [("in", kind, [6], values)], [{"name": "out"}])["out"]
        equal(struct.pack("<6" + form, *got), RAW[kind], kind)  # the digits may be fewer, the bits are the same


@call
def strings(c):
    a, b = [str(x) for x in A], [str(x) for x in B]
    inputs = [("INPUT0", "BYTES", [1, 16], a), ("INPUT1", "BYTES", [1, 16], bytes_raw([x.encode() for x in b]))]
    got = infer(c, "simple_string", inputs, [{"name": "OUTPUT0", "parameters": {"binary_data": True}}, {"name": "OUTPUT1"}])
    equal([int(x) for x in bytes_items(got["OUTPUT0"])], SUM)
    equal([int(x) for x in got["OUTPUT1"]], DIFFERENCE)
    items = [b"he\0llo", b"\0\1\2\3"] * 8
    equal(infer(c, "simple_identity", [("INPUT0", "BYTES", [1, 16], bytes_raw(items))]), {"OUTPUT0": bytes_raw(items)})
    text = [t.decode() for t in TEXT]
    equal(infer(c, "echo_BYTES", [("in", "BYTES", [6], text)], [{"name": "out"}]), {"out": text})
    equal(infer(c, "echo_BYTES", [("in", "BYTES", [6], bytes_raw(BINARY))]), {"out": bytes_raw(BINARY)})


@call
def classification(c):
    def top(binary):
        return infer(c, "images", [("x", "FP32", [2, 1, 2, 2], [1.0, 5, 10, 4, 4, 3, 2, 1])],
                     [{"name": "y", "parameters": {"classification": 2, "binary_data": binary}}])["y"]
    want = ["10.000000:2:bird", "5.000000:1:dog", "4.000000:0:cat", "3.000000:1:dog"]
    equal(top(False), want)
    equal(bytes_items(top(True)), [w.encode() for w in want])


@call
def no_inputs(c):
    equal(infer(c, "constant", [], [{"name": "y"}]), {"y": [1, 2, 3]})


@call
def concurrent(c):
    body = json.dumps({"inputs": [{"name": n, "shape": [1, 16], "datatype": "INT32", "data": A} for n in ("INPUT0", "INPUT1")]})
    answers = c.together([("POST", "/v2/models/simple/infer", body.encode(), {})] * 32)
    equal([s for s, _, _ in answers], [200] * 32)
    equal({tuple(json.loads(d)["outputs"][0]["data"]) for _, _, d in answers}, {tuple(2 * a for a in A)})


@call
def statistics(c):
    stats = ask(c, "GET", "/v2/models/simple/stats")["model_stats"]
    equal([len(stats), stats[0]["inference_stats"]["success"]["count"] > 0], [1, True])
    for key in ["compute_input", "compute_infer", "compute_output"]:
        assert key in stats[0]["batch_stats"][0], key
    equal(ask(c, "GET", "/v2/models/simple/versions/1/stats")["model_stats"][0]["name"], "simple")
    assert len(ask(c, "GET", "/v2/models/stats")["model_stats"]) > 5


@call
def errors(c):
    for model, inputs in [("simple", [("INPUT0", "INT32", [1, 15], A)]), ("simple", [("INPUT0", "INT32", [1, 16], A)]),
                          ("simple", []), ("echo_FP16", [("in", "FP16", [6], [1.0] * 6)])]:
        assert infer(c, model, inputs, [], status=400)["error"]
    got = simple_wrong(c)
    assert got.startswith("Request for unknown model"), got
    ask(c, "POST", "/v2/models/simple/infer", b"{", 400)
    ask(c, "GET", "/v2/nothing", status=404)
    ask(c, "DELETE", "/v2/models/simple", status=405)


def simple_wrong(c):
    return infer(c, "wrong_model_name", [("INPUT0", "INT32", [1, 16], A)], status=404)["error"]


@call
def settings(c):
    equal(ask(c, "GET", "/v2/trace/setting")["trace_level"], ["OFF"])
    equal(ask(c, "GET", "/v2/logging")["log_error"], True)
    for kind in ["system", "cuda"]:
        equal(ask(c, "GET", f"/v2/{kind}sharedmemory/status"), [])
        ask(c, "POST", f"/v2/{kind}sharedmemory/unregister")


@call
def model_control(c):
    index = ask(c, "POST", "/v2/repository/index")
    equal([m["state"] for m in index], ["READY"] * len(index))
    ask(c, "POST", "/v2/repository/models/simple/load", {})
    bad = '"parameters": {"config": {{"max_batch_size": "16"}}}'
    assert "failed to load" in ask(c, "POST", "/v2/repository/models/simple/load", {"parameters": {"config": bad}}, 400)["error"]
    ask(c, "POST", "/v2/repository/models/simple/load", {"parameters": {"config": '{"max_batch_size":"16"}'}})
    equal(ask(c, "GET", "/v2/models/simple/config")["max_batch_size"], 16)
    ask(c, "POST", "/v2/repository/models/simple/unload", {"parameters": {"unload_dependents": False}})
    ask(c, "GET", "/v2/models/simple/ready", status=503)
    assert "failed to load" in ask(c, "POST", "/v2/repository/models/wrong_model_name/load", {}, 400)["error"]
    ask(c, "POST", "/v2/repository/models/simple/load", {})
    ask(c, "GET", "/v2/models/simple/ready")
    equal(ask(c, "GET", "/v2/models/simple/config")["max_batch_size"], 8)
