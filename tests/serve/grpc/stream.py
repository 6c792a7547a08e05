"""ModelStreamInfer: many inferences on one call, answered in order."""
import queue
import re

import grpc

from client import Code, ask, client, equal, floats, infer, run_all, until


def rows(name, numbers, **more):
    return {"model_name": "rows", "id": name, "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [1, 4], "contents": {"fp32_contents": numbers}}], **more}


class Stream:
    """send(request), next() -> answer, end() -> status code."""

    def __init__(self, timeout=None, compression=None):
        self.requests = queue.Queue()
        self.call = client.methods["ModelStreamInfer"][1](iter(self.requests.get, None), timeout,
                                                          compression=compression)

    def send(self, fields):
        self.requests.put(client.request("ModelStreamInfer", fields))

    def next(self):
        return next(self.call)

    def end(self):
        self.requests.put(None)
        return self.code()

    def code(self):
        for _ in iter(self.answer, None):
            pass
        return self.call.code()

    def answer(self):
        try:
            return next(self.call)
        except (StopIteration, grpc.RpcError):
            return None


def in_turn():
    """one after the other"""
    s = Stream()
    for i in range(5):
        s.send(rows(f"a-{i}", [i, 0, 0, 0]))
        a = s.next()
        equal((a.error_message, a.infer_response.id), ("", f"a-{i}"))
        equal(a.infer_response.parameters["triton_final_response"].bool_param, True)
        a.infer_response.ClearField("parameters")
        equal(a.infer_response, infer(rows(f"a-{i}", [i, 0, 0, 0])))
    equal(s.end(), Code.OK)


def ordered():
    """200 at once come back in order"""
    s = Stream()
    for i in range(200):
        s.send(rows(f"b-{i}", [i, 1, 2, 3]))
    s.requests.put(None)
    for i in range(200):
        equal(s.next().infer_response.id, f"b-{i}")
    equal(s.code(), Code.OK)


def bad_ones():
    """a bad request gets an error, and the others go on"""
    s = Stream()
    s.send(rows("c-1", [1, 2, 3, 4]))
    s.send(rows("c-2", [1, 2, 3]))
    s.send(rows("c-3", [1, 2, 3, 4], model_name="nobody"))
    s.send(rows("c-4", [1, 2, 3, 4], parameters={"timeout": {"int64_param": -1}}))
    s.send(rows("c-5", [1, 2, 3, 4]))
    equal(s.next().infer_response.id, "c-1")
    assert re.search("4 numbers", s.next().error_message)
    other = s.next()
    assert re.search("'nobody' is not found", other.error_message)
    equal(other.infer_response.id, "c-3")
    assert re.search("timeout", s.next().error_message)
    equal(s.next().infer_response.id, "c-5")
    equal(s.end(), Code.OK)


def pictures():
    """30 pictures: more bytes than a flow-control window"""
    name = ask("ModelMetadata", {"name": "squeezenet1_1"})["inputs"][0]["name"]
    data = floats([0.5] * 150528)

    def request(i):
        return {"model_name": "squeezenet1_1", "id": i, "raw_input_contents": [data],
                "inputs": [{"name": name, "datatype": "FP32", "shape": [1, 3, 224, 224]}]}
    alone = infer(request("x"))
    s = Stream()
    for i in range(30):
        s.send(request(f"d-{i}"))
    s.requests.put(None)
    for i in range(30):
        a = s.next().infer_response
        equal(a.id, f"d-{i}")
        equal(list(a.raw_output_contents), list(alone.raw_output_contents))
    equal(s.code(), Code.OK)


def compressed():
    """compressed messages"""
    for how in [grpc.Compression.Gzip, grpc.Compression.Deflate]:
        s = Stream(compression=how)
        for i in range(20):
            s.send(rows(f"g-{i}", [], inputs=[
                {"name": "x", "datatype": "FP32", "shape": [500, 4], "contents": {"fp32_contents": [i, 1, 2, 3] * 500}}]))
        s.requests.put(None)
        for i in range(20):
            a = s.next()
            equal((a.error_message, a.infer_response.id), ("", f"g-{i}"))
            equal(len(a.infer_response.raw_output_contents[0]), 6000)
        equal(s.code(), Code.OK)


def nothing():
    """a call without requests"""
    equal(Stream().end(), Code.OK)


def cancelled():
    """cancelled"""
    s = Stream()
    for i in range(50):
        s.send(rows(f"e-{i}", [i, 1, 2, 3]))
    s.next()
    s.call.cancel()
    equal(s.code(), Code.CANCELLED)
    s.requests.put(None)
    until("the server goes on", lambda: ask("ServerLive")["live"])


def deadline():
    """a deadline of the whole call"""
    s = Stream(timeout=0.5)
    s.send(rows("f-1", [1, 2, 3, 4]))
    s.next()
    equal(s.code(), Code.DEADLINE_EXCEEDED)
    s.requests.put(None)


run_all([in_turn, ordered, bad_ones, pictures, compressed, nothing, cancelled, deadline])
