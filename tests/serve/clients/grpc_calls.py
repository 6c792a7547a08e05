"""Every gRPC call as NVIDIA's client makes it, by grpcio and by its asyncio API: ask(method, fields), stream(requests)."""
import asyncio
import os
import struct
import sys

import grpc

from values import A, B, DIFFERENCE, NUMBERS, RAW, SUM, TEXT, bytes_items, bytes_raw, equal, ints

sys.path.insert(0, os.environ["PB"])
import inference_pb2  # noqa: E402

CALLS = []
SERVICE = inference_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]


def call(f):
    CALLS.append(f)
    return f


def methods(channel):
    out = {}
    for m in SERVICE.methods:
        kind = "stream_stream" if m.client_streaming else "unary_unary"
        out[m.name] = (m.input_type._concrete_class, getattr(channel, kind)(
            f"/{SERVICE.full_name}/{m.name}", m.input_type._concrete_class.SerializeToString,
            m.output_type._concrete_class.FromString))
    return out


class Grpcio:
    name = "grpcio"

    def __init__(self, address):
        self.methods = methods(grpc.insecure_channel(address))

    def request(self, method, fields):
        return self.methods[method][0](**fields)

    def ask(self, method, compression=None, **fields):
        return self.methods[method][1](self.request(method, fields), 60, (("test", "1"),), compression=compression)

    def together(self, method, requests):
        return [f.result() for f in [self.methods[method][1].future(self.request(method, r)) for r in requests]]

    def stream(self, requests):
        return list(self.methods["ModelStreamInfer"][1](iter([self.request("ModelStreamInfer", r) for r in requests])))


class Asyncio:
    """A channel for each call: it belongs to the event loop that made it."""
    name = "grpcio.aio"

    def __init__(self, address):
        self.address = address

    def run(self, work):
        async def inside():
            async with grpc.aio.insecure_channel(self.address) as channel:
                return await work(methods(channel))
        return asyncio.run(inside())

    def ask(self, method, compression=None, **fields):
        async def work(m):
            return await m[method][1](m[method][0](**fields), timeout=60, compression=compression)
        return self.run(work)

    def together(self, method, requests):
        async def work(m):
            return await asyncio.gather(*[m[method][1](m[method][0](**r)) for r in requests])
        return self.run(work)

    def stream(self, requests):
        async def work(m):
            async def all():
                for r in requests:
                    yield m["ModelStreamInfer"][0](**r)
            return [a async for a in m["ModelStreamInfer"][1](all())]
        return self.run(work)


CLIENTS = [Grpcio, Asyncio]


def simple(model="simple", kind="INT32", raw=(ints(A), ints(B)), outputs=("OUTPUT0", "OUTPUT1"), **more):
    return {"model_name": model, "outputs": [{"name": o} for o in outputs], "raw_input_contents": raw,
            "inputs": [{"name": n, "datatype": kind, "shape": [1, 16]} for n in ("INPUT0", "INPUT1")], **more}


def answers(a):
    equal(len(a.outputs), len(a.raw_output_contents))
    return {o.name: d for o, d in zip(a.outputs, a.raw_output_contents)}


WANT = {"OUTPUT0": ints(SUM), "OUTPUT1": ints(DIFFERENCE)}


def fails(code, words, work):
    try:
        work()
    except grpc.RpcError as e:
        equal(e.code(), code, e.details())
        assert words in e.details(), e.details()
    else:
        raise AssertionError(f"answered, not {code}")


@call
def health(c):
    assert c.ask("ServerLive").live and c.ask("ServerReady").ready


@call
def model_ready(c):
    assert c.ask("ModelReady", name="simple").ready and c.ask("ModelReady", name="simple", version="1").ready
    assert not c.ask("ModelReady", name="wrong_model_name").ready


@call
def metadata(c):
    equal(c.ask("ServerMetadata").name, "triton")
    m = c.ask("ModelMetadata", name="simple")
    equal([m.name, m.inputs[0].name, list(m.inputs[0].shape)], ["simple", "INPUT0", [-1, 16]])
    fails(grpc.StatusCode.NOT_FOUND, "Request for unknown model", lambda: c.ask("ModelMetadata", name="wrong_model_name"))


@call
def config(c):
    m = c.ask("ModelConfig", name="images").config
    equal([m.name, m.max_batch_size, m.input[0].format, list(m.input[0].dims), m.output[0].label_filename],
          ["images", 8, inference_pb2.ModelInput.FORMAT_NCHW, [1, 2, 2], "labels.txt"])
    assert not m.HasField("dynamic_batching") and m.version_policy.latest.num_versions == 1


@call
def infer_raw(c):
    equal(answers(c.ask("ModelInfer", **simple())), WANT)
    equal(answers(c.ask("ModelInfer", **simple(outputs=()))), WANT)


@call
def infer_typed(c):
    for model, kind, form in [("simple", "INT32", "<16i"), ("simple_int8", "INT8", "<16b")]:
        request = simple(model, kind, raw=())
        for i, numbers in zip(request["inputs"], (A, B)):
            i["contents"] = {"int_contents": numbers}
        equal(answers(c.ask("ModelInfer", **request)), {"OUTPUT0": struct.pack(form, *SUM), "OUTPUT1": struct.pack(form, *DIFFERENCE)})


@call
def infer_parameters(c):
    more = {"sequence_id": {"int64_param": 7}, "sequence_start": {"bool_param": True}, "sequence_end": {"bool_param": True},
            "priority": {"uint64_param": 1}, "timeout": {"int64_param": 10000000}, "custom": {"string_param": "x"}}
    a = c.ask("ModelInfer", **simple(id="my request id", parameters={k: inference_pb2.InferParameter(**v) for k, v in more.items()}))
    equal([a.id, answers(a)], ["my request id", WANT])


@call
def compressed(c):
    for how in [grpc.Compression.Gzip, grpc.Compression.Deflate]:
        equal(answers(c.ask("ModelInfer", compression=how, **simple())), WANT)
        assert c.ask("ModelReady", compression=how, name="simple").ready


@call
def every_type(c):
    for kind, raw in RAW.items():
        one = {"name": "in", "datatype": kind, "shape": [6]}
        equal(answers(c.ask("ModelInfer", model_name=f"echo_{kind}", inputs=[one], raw_input_contents=[raw])), {"out": raw}, kind)
    typed = {**{k: (field, values) for k, (_, field, values) in NUMBERS.items()}, "BYTES": ("bytes_contents", TEXT)}
    for kind, (field, values) in typed.items():
        one = {"name": "in", "datatype": kind, "shape": [6], "contents": {field: values}}
        raw = bytes_raw(TEXT) if kind == "BYTES" else RAW[kind]
        equal(answers(c.ask("ModelInfer", model_name=f"echo_{kind}", inputs=[one])), {"out": raw}, kind)


@call
def strings(c):
    a, b = ([str(x).encode() for x in xs] for xs in (A, B))
    got = answers(c.ask("ModelInfer", **simple("simple_string", "BYTES", (bytes_raw(a), bytes_raw(b)))))
    equal([[int(x) for x in bytes_items(got[o])] for o in ("OUTPUT0", "OUTPUT1")], [SUM, DIFFERENCE])
    request = simple("simple_string", "BYTES", ())
    for i, items in zip(request["inputs"], (a, b)):
        i["contents"] = {"bytes_contents": items}
    equal(answers(c.ask("ModelInfer", **request)), got)


@call
def classification(c):
    a = c.ask("ModelInfer", model_name="images", raw_input_contents=[struct.pack("<8f", 1, 5, 10, 4, 4, 3, 2, 1)],
              inputs=[{"name": "x", "datatype": "FP32", "shape": [2, 1, 2, 2]}],
              outputs=[{"name": "y", "parameters": {"classification": inference_pb2.InferParameter(int64_param=2)}}])
    equal([a.outputs[0].datatype, list(a.outputs[0].shape)], ["BYTES", [2, 2]])
    equal(bytes_items(a.raw_output_contents[0]), [b"10.000000:2:bird", b"5.000000:1:dog", b"4.000000:0:cat", b"3.000000:1:dog"])


@call
def no_inputs(c):
    equal(answers(c.ask("ModelInfer", model_name="constant")), {"y": struct.pack("<3f", 1, 2, 3)})


@call
def concurrent(c):
    equal([answers(a) for a in c.together("ModelInfer", [simple()] * 32)], [WANT] * 32)


@call
def stream(c):
    got = c.stream([simple(id=f"{i}") for i in range(16)] + [simple("wrong_model_name", id="bad")])
    equal([a.infer_response.id for a in got], [f"{i}" for i in range(16)] + ["bad"])
    for a in got[:16]:
        equal([a.error_message, answers(a.infer_response)], ["", WANT])
        assert a.infer_response.parameters["triton_final_response"].bool_param
    assert "Request for unknown model" in got[16].error_message


@call
def statistics(c):
    stats = c.ask("ModelStatistics", name="simple").model_stats
    equal([len(stats), stats[0].inference_stats.success.count > 0], [1, True])
    assert len(c.ask("ModelStatistics").model_stats) > 5


@call
def errors(c):
    bad = grpc.StatusCode.INVALID_ARGUMENT
    fails(bad, "missing", lambda: c.ask("ModelInfer", model_name="simple"))
    fails(bad, "bytes", lambda: c.ask("ModelInfer", **simple(raw=(ints(A), b"x"))))
    fails(bad, "no output", lambda: c.ask("ModelInfer", **simple(outputs=["nothing"])))
    fails(grpc.StatusCode.NOT_FOUND, "Request for unknown model", lambda: c.ask("ModelInfer", **simple("wrong_model_name")))


@call
def settings(c):
    equal(list(c.ask("TraceSetting").settings["trace_level"].value), ["OFF"])
    assert c.ask("LogSettings").settings["log_error"].bool_param
    for kind in ["System", "Cuda"]:
        equal(len(c.ask(f"{kind}SharedMemoryStatus").regions), 0)
        c.ask(f"{kind}SharedMemoryUnregister")


@call
def model_control(c):
    bad = grpc.StatusCode.INVALID_ARGUMENT
    index = c.ask("RepositoryIndex").models
    equal([m.state for m in index], ["READY"] * len(index))

    def load(name="simple", config=None):
        parameters = {"config": inference_pb2.ModelRepositoryParameter(string_param=config)} if config else {}
        return c.ask("RepositoryModelLoad", model_name=name, parameters=parameters)
    load()
    fails(bad, "failed to load", lambda: load(config='"parameters": {"config": {{"max_batch_size": "16"}}}'))
    load(config='{"max_batch_size":"16"}')
    equal(c.ask("ModelConfig", name="simple").config.max_batch_size, 16)
    c.ask("RepositoryModelUnload", model_name="simple",
          parameters={"unload_dependents": inference_pb2.ModelRepositoryParameter(bool_param=False)})
    assert not c.ask("ModelReady", name="simple").ready
    fails(bad, "failed to load", lambda: load("wrong_model_name"))
    load()
    assert c.ask("ModelReady", name="simple").ready
