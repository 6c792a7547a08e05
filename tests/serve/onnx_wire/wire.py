"""One inference in the four forms of the protocols: REST with JSON or binary tensors, gRPC raw or typed."""
import http.client
import json
import struct
import sys

import grpc
import numpy as np

from cases import BY_NAME, Tensor


def from_raw(name, kind, shape, data):
    if kind != "BYTES":
        return Tensor(name, kind, shape, np.frombuffer(data, BY_NAME[kind][0]))
    values, at = [], 0
    while at < len(data):
        n = struct.unpack_from("<I", data, at)[0]
        values.append(data[at + 4:at + 4 + n])
        at += 4 + n
    return Tensor(name, kind, shape, values)


def from_json(o):
    kind = o["datatype"]
    values = [s.encode() for s in o["data"]] if kind == "BYTES" else np.array(o["data"], BY_NAME[kind][0])
    return Tensor(o["name"], kind, o["shape"], values)


class Refused(Exception):
    pass


class Rest:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)

    def call(self, method, path, body, headers=()):
        self.connection.request(method, path, body, dict(headers))
        r = self.connection.getresponse()
        return r, r.read()

    def post(self, model, body, headers):
        r, data = self.call("POST", f"/v2/models/{model}/infer", body, headers)
        if r.status != 200:
            raise Refused(f"{r.status} {json.loads(data)['error']}")
        return data, int(r.headers.get("Inference-Header-Content-Length", len(data)))

    def json(self, model, inputs):
        data, _ = self.post(model, json.dumps({"inputs": [t.json() for t in inputs]}), {})
        return {o["name"]: from_json(o) for o in json.loads(data)["outputs"]}

    def binary(self, model, inputs):
        raw = [t.raw() for t in inputs]
        head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
            {**t.head(), "parameters": {"binary_data_size": len(b)}} for t, b in zip(inputs, raw)]}).encode()
        data, at = self.post(model, head + b"".join(raw), {"Inference-Header-Content-Length": str(len(head))})
        out = {}
        for o in json.loads(data[:at])["outputs"]:
            n = o["parameters"]["binary_data_size"]
            out[o["name"]] = from_raw(o["name"], o["datatype"], o["shape"], data[at:at + n])
            at += n
        assert at == len(data), "bytes that belong to no output"
        return out


class Grpc:
    def __init__(self, address, pb):
        sys.path.insert(0, pb)
        import inference_pb2
        self.pb = inference_pb2
        self.channel = grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)])
        self.call = self.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer",
                                             self.pb.ModelInferRequest.SerializeToString,
                                             self.pb.ModelInferResponse.FromString)

    def infer(self, model, inputs, raw):
        request = self.pb.ModelInferRequest(model_name=model, inputs=inputs, raw_input_contents=raw)
        try:
            a = self.call(request, timeout=60)
        except grpc.RpcError as e:
            raise Refused(f"{e.code().name} {e.details()}") from e
        assert len(a.raw_output_contents) == len(a.outputs)
        return {o.name: from_raw(o.name, o.datatype, list(o.shape), data)
                for o, data in zip(a.outputs, a.raw_output_contents)}

    def raw(self, model, inputs):
        return self.infer(model, [t.head() for t in inputs], [t.raw() for t in inputs])

    def typed(self, model, inputs):
        return self.infer(model, [t.typed() for t in inputs], [])
