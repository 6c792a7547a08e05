"""Inference requests of numpy arrays (binary, JSON, gRPC), and a client of HTTP/1.1 that counts what it reads."""
import json
import socket
import struct

import numpy as np

import h2

TYPES = {"float32": "FP32", "float64": "FP64", "float16": "FP16", "int64": "INT64", "int32": "INT32", "int16": "INT16",
         "int8": "INT8", "uint64": "UINT64", "uint32": "UINT32", "uint16": "UINT16", "uint8": "UINT8", "bool": "BOOL",
         "object": "BYTES"}
ARRAYS = {v: k for k, v in TYPES.items()}


def f32(*values):
    return np.array(values, np.float32)


def i64(*values):
    return np.array(values, np.int64)


def scalar(v, kind=np.int64):
    return np.array(v, kind)


def strings(*values):
    return np.array([v.encode() if isinstance(v, str) else v for v in values], object)


def raw_of(array):
    """The bytes of a tensor: strings have their length before them."""
    if array.dtype == object:
        return b"".join(struct.pack("<I", len(v)) + v for v in array.ravel())
    return np.ascontiguousarray(array).tobytes()


def array_of(raw, datatype, shape):
    if datatype != "BYTES":
        return np.frombuffer(raw, ARRAYS[datatype]).reshape(shape)
    out, at = [], 0
    while at < len(raw):
        (n,) = struct.unpack_from("<I", raw, at)
        out.append(raw[at + 4:at + 4 + n])
        at += 4 + n
    return np.array(out + [None], object)[:-1].reshape(shape)


def plain(array):
    """Elements as JSON has them."""
    if array.dtype == object:
        return [v.decode("utf-8", "replace") for v in array.ravel()]
    return [v if v == v and abs(v) != float("inf") else 0 for v in array.ravel().tolist()]


def document(inputs, binary=True, outputs=True):
    """Body and the length of its JSON."""
    parts, tail = [], b""
    for name, array in inputs.items():
        one = {"name": name, "shape": list(array.shape), "datatype": TYPES[array.dtype.name]}
        if binary:
            data = raw_of(array)
            one["parameters"] = {"binary_data_size": len(data)}
            tail += data
        else:
            one["data"] = plain(array)
        parts.append(one)
    head = json.dumps({"inputs": parts, "parameters": {"binary_data_output": outputs}}).encode()
    return head + tail, len(head)


def http_request(model, inputs, binary=True, outputs=True, headers=()):
    body, head = document(inputs, binary, outputs)
    return post(model, body, [f"Inference-Header-Content-Length: {head}", *headers] if binary else headers)


def post(model, body, headers=(), declared=None):
    lines = [f"POST /v2/models/{model}/infer HTTP/1.1", "Host: localhost", *headers,
             f"Content-Length: {len(body) if declared is None else declared}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def grpc_request(model, inputs):
    out = h2.blob(1, model)
    for name, array in inputs.items():
        dims = b"".join(h2.varint(d) for d in array.shape)
        out += h2.blob(5, h2.blob(1, name) + h2.blob(2, TYPES[array.dtype.name]) + h2.blob(3, dims))
    return h2.message(out + b"".join(h2.varint(7 << 3 | 2) + h2.varint(len(r)) + r for r in map(raw_of, inputs.values())))


class Gone(Exception):
    """The server closed the connection, or was silent for too long."""


class Connection:
    """One connection of HTTP/1.1. A response's body is kept up to `keep` bytes and counted beyond."""

    def __init__(self, server, timeout=20, receive=None, port="http"):
        self.s = socket.socket(socket.AF_INET)
        if receive:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.s.settimeout(timeout)
        self.s.connect(("127.0.0.1", server.ports[port]))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sink = bytearray(1 << 18)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.s.close()

    def send(self, data):
        try:
            self.s.sendall(data)
        except OSError as e:
            raise Gone(repr(e)) from e

    def receive(self):
        try:
            n = self.s.recv_into(self.sink)
        except OSError as e:
            raise Gone(repr(e)) from e
        if n == 0:
            raise Gone("closed")
        return memoryview(self.sink)[:n]

    def answer(self, keep=1 << 20):
        """(status, headers, the first `keep` bytes of the body)"""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive()
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
        left = int(fields.get("content-length", 0)) - len(rest)
        kept = [rest]
        while left > 0:
            part = self.receive()
            left -= len(part)
            if keep > 0:
                kept.append(bytes(part))
                keep -= len(part)
        return int(lines[0].split()[1]), fields, b"".join(kept)

    def ask(self, data, keep=1 << 20):
        self.send(data)
        return self.answer(keep)


def outputs_of(answer):
    """{name: array} of a response with binary or JSON outputs."""
    _, fields, data = answer
    n = int(fields.get("inference-header-content-length", len(data)))
    told, at, out = json.loads(data[:n]), n, {}
    for o in told["outputs"]:
        size = o.get("parameters", {}).get("binary_data_size")
        if size is None:
            flat = [v.encode() for v in o["data"]] if o["datatype"] == "BYTES" else o["data"]
            out[o["name"]] = np.array(flat, ARRAYS[o["datatype"]]).reshape(o["shape"])
        else:
            out[o["name"]] = array_of(data[at:at + size], o["datatype"], o["shape"])
            at += size
    return out
