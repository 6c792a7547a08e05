"""A gRPC client of the server under test (grpcio), beside a REST client and `cotenant run`.

Messages are made by protoc from inference.proto and health.proto in the folder PB. Environment: GRPC and HTTP are
the server's addresses, DIR the folder of models, COTENANT the program.
"""
import http.client
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

import grpc
from google.protobuf import json_format

sys.path.insert(0, os.environ["PB"])
import health_pb2  # noqa: E402
import inference_pb2  # noqa: E402

DIR = os.environ["DIR"]
Code = grpc.StatusCode
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Stub:
    """The calls of one service, by name, with the message types of its descriptor."""

    def __init__(self, service, address=None):
        self.channel = grpc.insecure_channel(address or os.environ["GRPC"], UNLIMITED)
        self.methods = {}
        for m in service.methods:
            kind = "stream_stream" if m.client_streaming else "unary_stream" if m.server_streaming else "unary_unary"
            ask, answer = m.input_type._concrete_class, m.output_type._concrete_class
            self.methods[m.name] = (ask, getattr(self.channel, kind)(
                f"/{service.full_name}/{m.name}", ask.SerializeToString, answer.FromString))

    def request(self, method, fields):
        return json_fill(self.methods[method][0](), fields)

    def start(self, method, fields=None, timeout=None, metadata=None):
        return self.methods[method][1].future(self.request(method, fields or {}), timeout, metadata)

    def call(self, method, fields=None, timeout=None, metadata=None):
        return as_dict(self.methods[method][1](self.request(method, fields or {}), timeout, metadata))


def json_fill(message, fields):
    """Sets the fields of a message from a dict; values may be bytes, lists and dicts."""
    for name, value in fields.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        if field.message_type and field.message_type.GetOptions().map_entry:
            for key, v in value.items():
                json_fill(getattr(message, name)[key], v)
        elif field.label == field.LABEL_REPEATED:
            for v in value:
                if field.message_type:
                    json_fill(getattr(message, name).add(), v)
                else:
                    getattr(message, name).append(v)
        elif field.message_type:
            getattr(message, name).SetInParent()
            json_fill(getattr(message, name), value)
        else:
            setattr(message, name, value)
    return message


def as_dict(message):
    """Every field by its own name; 64-bit integers are text, bytes stay in the message (see raw_of)."""
    return json_format.MessageToDict(message, including_default_value_fields=True, preserving_proto_field_name=True)


SERVICE = inference_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
client = Stub(SERVICE)
health = Stub(health_pb2.DESCRIPTOR.services_by_name["Health"])


def ask(method, fields=None, **how):
    return client.call(method, fields, **how)


def infer(fields, **how):
    """ModelInfer: the answer as a message, so that bytes are bytes."""
    return client.methods["ModelInfer"][1](client.request("ModelInfer", fields), how.get("timeout"), how.get("metadata"))


def fails(code, words, call):
    try:
        answer = call()
    except grpc.RpcError as e:
        assert e.code() == code, f"{e.code()} {e.details()}, not {code}"
        assert re.search(words, e.details()), f"'{e.details()}' lacks {words}"
        return e
    raise AssertionError(f"answered {str(answer)[:200]}, not {code} {words}")


def rest(method, path, body=None):
    host, port = os.environ["HTTP"].rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=60)
    c.request(method, path, body)
    r = c.getresponse()
    out = r.status, r.read()
    c.close()
    return out


def rest_json(path):
    return json.loads(rest("GET", path)[1])


def npy_write(path, kind, shape, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))}{',' * (len(shape) == 1)}), }}"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("latin1") + data)


def npy_bytes(path):
    with open(path, "rb") as f:
        data = f.read()
    return data[10 + struct.unpack_from("<H", data, 8)[0]:]


def run(model, inputs, outputs):
    """What `cotenant run` computes: bytes by name of output. inputs: name -> (type, shape, bytes)."""
    folder = tempfile.mkdtemp(prefix="run-", dir=DIR)
    args = [os.environ["COTENANT"], "run", model, "--output", folder]
    for name, (kind, shape, data) in inputs.items():
        npy_write(f"{folder}/{name}.in.npy", kind, shape, data)
        args += ["--input", f"{name}={folder}/{name}.in.npy"]
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL)
    return {name: npy_bytes(f"{folder}/{name}.npy") for name in outputs}


def floats(numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def until(what, test):
    for _ in range(500):
        if test():
            return
        time.sleep(0.02)
    raise AssertionError(f"never: {what}")


def equal(a, b, what=""):
    assert a == b, f"{what}: {str(a)[:300]} is not {str(b)[:300]}"


def run_all(tests):
    for test in tests:
        test()
        print("ok ", test.__doc__)
