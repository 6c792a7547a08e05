"""ModelInfer: raw and typed, every type, the same numbers as `cotenant run`, and what is rejected."""
import math
import struct

import grpc

from client import DIR, SERVICE, Code, Stub, ask, client, equal, fails, floats, infer, run, run_all

TYPED = {  # type -> field of the contents, struct format of the raw bytes, values
    "BOOL": ("bool_contents", "?", [True, False, True, False, False, True]),
    "INT8": ("int_contents", "b", [-128, 127, -1, 0, 5, 9]),
    "INT16": ("int_contents", "h", [-32768, 32767, -1, 0, 5, 9]),
    "INT32": ("int_contents", "i", [-2147483648, 2147483647, -1, 0, 5, 9]),
    "INT64": ("int64_contents", "q", [-9223372036854775808, 9223372036854775807, -1, 0, 5, 9]),
    "UINT8": ("uint_contents", "B", [0, 255, 128, 7, 8, 9]),
    "UINT16": ("uint_contents", "H", [0, 65535, 128, 7, 8, 9]),
    "UINT32": ("uint_contents", "I", [0, 4294967295, 128, 7, 8, 9]),
    "UINT64": ("uint64_contents", "Q", [0, 18446744073709551615, 128, 7, 8, 9]),
    "FP32": ("fp32_contents", "f", [0, -1.5, 3.4028234663852886e38, 1.401298464324817e-45, math.inf, 9]),
    "FP64": ("fp64_contents", "d", [0, -1.5, 1.7e308, 5e-324, -math.inf, 9]),
}
TEXT = [b"", b"a", b"bc", b"\0", b"\xff\xfe", b"long " * 50]
RAW = {t: struct.pack("<6" + form, *values) for t, (_, form, values) in TYPED.items()}
RAW["FP16"] = struct.pack("<6H", 0, 0x3C00, 0xBC00, 0x7C00, 1, 0x7BFF)
RAW["BYTES"] = b"".join(struct.pack("<I", len(b)) + b for b in TEXT)
VALUES = {t: (field, values) for t, (field, _, values) in TYPED.items()} | {"BYTES": ("bytes_contents", TEXT)}


def model(name):
    return f"{DIR}/{name}.onnx"


def echo(types):
    return [{"name": f"in_{t}", "datatype": t, "shape": [2, 3]} for t in types]


def rows(shape, numbers, **more):
    return {"model_name": "rows", **more, "inputs": [
        {"name": "x", "datatype": "FP32", "shape": shape, "contents": {"fp32_contents": numbers}}]}


def changed(**change):
    return {"model_name": "rows", "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4],
                                              "contents": {"fp32_contents": [1, 2, 3, 4]}, **change}]}


def rejected(words, request):
    fails(Code.INVALID_ARGUMENT, words, lambda: infer(request))


def raw_echo():
    """raw there and back, every type"""
    types = list(RAW)
    a = infer({"model_name": "echo", "id": "r-1", "inputs": echo(types)[::-1],
               "raw_input_contents": [RAW[t] for t in types][::-1]})
    equal((a.model_name, a.model_version, a.id), ("echo", "1", "r-1"))
    equal(sorted(o.name for o in a.outputs), sorted(f"out_{t}" for t in types))
    for o, data in zip(a.outputs, a.raw_output_contents, strict=True):
        equal((o.name, list(o.shape)), (f"out_{o.datatype}", [2, 3]))
        equal(data, RAW[o.datatype], o.datatype)


def half_is_raw_only():
    """FP16 has no typed contents; answers are raw"""
    inputs = [{**t, "contents": {VALUES[t["datatype"]][0]: VALUES[t["datatype"]][1]}} for t in echo(VALUES)]
    rejected("FP16", {"model_name": "echo", "inputs": inputs + echo(["FP16"])})
    a = infer(rows([1, 4], [1, 2, 3, 4]))
    equal([len(d) for d in a.raw_output_contents], [12, 4])
    assert not a.outputs[0].HasField("contents")


def typed_echo():
    """every type typed"""
    for t, (field, values) in VALUES.items():
        a = infer({"model_name": f"echo_{t}", "inputs": [
            {"name": "in", "datatype": t, "shape": [2, 3], "contents": {field: values}}]})
        equal(a.outputs[0].datatype, t)
        equal(list(a.raw_output_contents), [RAW[t]], t)


def same_as_run():
    """the same numbers as cotenant run, batch by batch"""
    for batch in [1, 2, 5]:
        data = floats([math.sin(i) for i in range(4 * batch)])
        numbers = struct.unpack(f"<{4 * batch}f", data)
        want = run(model("rows"), {"x": ("<f4", [batch, 4], data)}, ["y", "sum"])
        a = infer(rows([batch, 4], numbers))
        equal(list(a.raw_output_contents), [want["y"], want["sum"]])
        b = infer({"model_name": "rows", "model_version": "1", "outputs": [{"name": "sum"}, {"name": "y"}],
                   "inputs": [{"name": "x", "datatype": "FP32", "shape": [batch, 4]}], "raw_input_contents": [data]})
        equal({o.name: d for o, d in zip(b.outputs, b.raw_output_contents)}, want)


def picture():
    """a picture, again and again"""
    data, shape = floats([math.sin(i * 0.01) for i in range(150528)]), [1, 3, 224, 224]
    m = ask("ModelMetadata", {"name": "squeezenet1_1"})
    name, out = m["inputs"][0]["name"], m["outputs"][0]["name"]
    want = run(model("squeezenet1_1"), {name: ("<f4", shape, data)}, [out])[out]
    request = {"model_name": "squeezenet1_1", "inputs": [{"name": name, "datatype": "FP32", "shape": shape}],
               "raw_input_contents": [data]}
    for i in range(5):  # ids of different lengths: numbers at every alignment in the message
        request["id"] = "x" * i
        for call in [client.start("ModelInfer", request), client.start("ModelInfer", request)]:
            equal(call.result().raw_output_contents[0], want)


def chosen_outputs():
    """chosen outputs, and timing"""
    a = infer(rows([1, 4], [1, 2, 3, 4], outputs=[{"name": "sum"}], parameters={
        "timing": {"bool_param": True}, "priority": {"int64_param": 1}, "unheard_of": {"string_param": "x"}}))
    equal([o.name for o in a.outputs], ["sum"])
    equal(list(a.outputs[0].shape), [])
    assert len(a.parameters) > 3


def classes():
    """classification: the highest values as text"""
    def top(n, **more):
        a = infer(rows([2, 4], [1, 2, 3, 4, 4, 3, 2, 1], outputs=[
            {"name": "y", "parameters": {"classification": {"int64_param": n, **more}}}]))
        return list(a.outputs[0].shape), a.outputs[0].datatype, texts(a.raw_output_contents[0])
    y = infer(rows([2, 4], [1, 2, 3, 4, 4, 3, 2, 1])).raw_output_contents[0]
    y = struct.unpack("<6f", y)
    for n in [1, 2, 3, 100]:  # `sum` has no batch dimension, so the model has none: all elements compete
        want = [f"{v:f}:{i}" for i, v in sorted(enumerate(y), key=lambda p: (-p[1], p[0]))][:n]
        equal(top(n), ([len(want)], "BYTES", want))
    fails(Code.INVALID_ARGUMENT, "at least 0", lambda: top(-1))
    b = infer({"model_name": "echo_INT32", "inputs": [{"name": "in", "datatype": "INT32", "shape": [2, 3],
                                                       "contents": {"int_contents": [3, -9, 8, 8, 1, 2]}}],
               "outputs": [{"name": "out", "parameters": {"classification": {"int64_param": 3}}}]})
    equal(texts(b.raw_output_contents[0]), ["8:2", "8:3", "3:0"])
    fails(Code.INVALID_ARGUMENT, "BYTES, which has no classification", lambda: infer(
        {"model_name": "echo_BYTES", "inputs": [{"name": "in", "datatype": "BYTES", "shape": [2, 3],
                                                 "contents": {"bytes_contents": TEXT}}],
         "outputs": [{"name": "out", "parameters": {"classification": {"int64_param": 3}}}]}))


def texts(raw):
    out = []
    while raw:
        n = struct.unpack_from("<I", raw)[0]
        out.append(raw[4:4 + n].decode())
        raw = raw[4 + n:]
    return out


def compressed():
    """compressed messages: gzip and deflate"""
    want = infer(rows([1, 4], [1, 2, 3, 4]))
    call = client.methods["ModelInfer"][1]
    for how in [grpc.Compression.Gzip, grpc.Compression.Deflate]:
        equal(call(client.request("ModelInfer", rows([1, 4], [1, 2, 3, 4])), compression=how), want)
        big = rows([3000, 4], [1, 2, 3, 4] * 3000)
        equal(call(client.request("ModelInfer", big), compression=how), infer(big))
        equal(client.methods["ModelReady"][1](client.request("ModelReady", {"name": "rows"}), compression=how).ready, True)


def many():
    """400 calls at once, on four connections"""
    stubs = [Stub(SERVICE) for _ in range(4)]
    calls = [stubs[i % 4].start("ModelInfer", rows([1, 4], [i, 0, 0, 0], id=f"n-{i}")) for i in range(400)]
    for i, call in enumerate(calls):
        equal(call.result().id, f"n-{i}")
    for s in stubs:
        s.channel.close()


def rejections():
    """what is rejected"""
    x, bare = floats([1, 2, 3, 4]), {"name": "x", "datatype": "FP32", "shape": [1, 4]}
    fails(Code.NOT_FOUND, "Request for unknown model: 'nobody' is not found", lambda: infer({**changed(), "model_name": "nobody"}))
    fails(Code.NOT_FOUND, "unknown model", lambda: infer({**changed(), "model_version": "9"}))
    rejected("both contents and raw contents", {**changed(), "raw_input_contents": [x]})
    rejected("2 raw contents", {"model_name": "rows", "inputs": [bare], "raw_input_contents": [x, x]})
    rejected("16 bytes", {"model_name": "rows", "inputs": [bare], "raw_input_contents": [x[1:]]})
    rejected("4 numbers", changed(contents={"fp32_contents": [1, 2, 3]}))
    rejected(".", changed(name="z"))
    rejected(".", changed(datatype="FP64", contents={"fp64_contents": [1, 2, 3, 4]}))
    rejected(".", changed(shape=[4]))
    rejected(".", changed(shape=[1, 5], contents={"fp32_contents": [1, 2, 3, 4, 5]}))
    rejected("match", changed(contents={"int_contents": [1, 2, 3, 4]}))
    rejected("unknown", changed(datatype="FLOAT"))
    rejected(".", {"model_name": "rows"})
    rejected(".", {**changed(), "outputs": [{"name": "nothing"}]})
    rejected("not a number", {**changed(), "parameters": {"timeout": {"string_param": "soon"}}})
    rejected("shared memory", changed(parameters={"shared_memory_region": {"string_param": "a"}}))
    try:
        infer(changed(shape=[65536, 65536, 65536, 65536]))
    except grpc.RpcError:
        pass
    else:
        raise AssertionError("a tensor of 2^64 elements was accepted")
    equal(len(infer(changed()).outputs), 2)


run_all([raw_echo, half_is_raw_only, typed_echo, same_as_run, picture, chosen_outputs, classes, compressed, many, rejections])
