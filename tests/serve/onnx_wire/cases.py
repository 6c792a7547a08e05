"""Cases of ONNX's suite as requests: inputs in every form the protocol has, and outputs as `cotenant run` writes them."""
import os
import struct
import subprocess

import numpy as np
import onnx
from onnx import TensorProto as T, numpy_helper

DATA = "/usr/include/onnx/backend/test/data"
TYPES = {  # ONNX -> the protocol's name, numpy's type, field of typed gRPC contents, whether JSON carries it
    T.BOOL: ("BOOL", "?", "bool_contents", True), T.UINT8: ("UINT8", "<u1", "uint_contents", True),
    T.UINT16: ("UINT16", "<u2", "uint_contents", True), T.UINT32: ("UINT32", "<u4", "uint_contents", True),
    T.UINT64: ("UINT64", "<u8", "uint64_contents", True), T.INT8: ("INT8", "<i1", "int_contents", True),
    T.INT16: ("INT16", "<i2", "int_contents", True), T.INT32: ("INT32", "<i4", "int_contents", True),
    T.INT64: ("INT64", "<i8", "int64_contents", True), T.FLOAT16: ("FP16", "<f2", None, False),
    T.FLOAT: ("FP32", "<f4", "fp32_contents", True), T.DOUBLE: ("FP64", "<f8", "fp64_contents", True),
    T.BFLOAT16: ("BF16", "<u2", None, False), T.STRING: ("BYTES", "O", "bytes_contents", True)}
BY_NAME = {name: (numpy, field, json) for name, numpy, field, json in TYPES.values()}


class NotCarried(Exception):
    """The protocol has no form for a case; the text says why."""


class Tensor:
    """name, type, shape, and values as a flat numpy array (BYTES: bytes objects)."""

    def __init__(self, name, kind, shape, values):
        self.name, self.type, self.shape, self.values = name, kind, [int(d) for d in shape], values

    def raw(self):
        if self.type == "BYTES":
            return b"".join(struct.pack("<I", len(b)) + b for b in self.values)
        return self.values.tobytes()

    def head(self):
        return {"name": self.name, "datatype": self.type, "shape": self.shape}

    def has_json(self):
        if not BY_NAME[self.type][2]:
            return False
        if self.type == "BYTES":
            return all(is_utf8(b) for b in self.values)
        return self.values.dtype.kind != "f" or bool(np.isfinite(self.values).all())

    def has_typed(self):
        return BY_NAME[self.type][1] is not None

    def json(self):
        values = [b.decode() for b in self.values] if self.type == "BYTES" else self.values.tolist()
        return {**self.head(), "data": values}

    def typed(self):
        field = BY_NAME[self.type][1]
        return {**self.head(), "contents": {field: list(self.values) if self.type == "BYTES" else self.values.tolist()}}


def is_utf8(b):
    try:
        b.decode()
    except UnicodeDecodeError:
        return False
    return True


def tensor_of(proto, name):
    """A TensorProto as a Tensor, bit for bit."""
    if proto.data_type not in TYPES:
        raise NotCarried(f"type {T.DataType.Name(proto.data_type)}")
    kind, form = TYPES[proto.data_type][:2]
    if kind == "BYTES":
        return Tensor(name, kind, proto.dims, list(proto.string_data))
    if kind == "BF16":
        words = np.frombuffer(proto.raw_data, "<u2") if proto.raw_data else np.array(proto.int32_data, "<u2")
        return Tensor(name, kind, proto.dims, words)
    return Tensor(name, kind, proto.dims, numpy_helper.to_array(proto).astype(form).reshape(-1))


def check_type(value):
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise NotCarried(kind.replace("_type", ""))
    if value.type.tensor_type.elem_type not in TYPES:
        raise NotCarried(f"type {T.DataType.Name(value.type.tensor_type.elem_type)}")


class Case:
    """A model of the suite with its first set of inputs. folder: for files that the case writes."""

    def __init__(self, suite, name, folder):
        self.name, self.folder = name, f"{DATA}/{suite}/{name}"
        self.path = f"{self.folder}/model.onnx"
        graph = onnx.load(self.path).graph
        constants = {i.name for i in graph.initializer}
        self.outputs = [v.name for v in graph.output]
        for v in list(graph.input) + list(graph.output):
            check_type(v)
        self.inputs, self.files = [], {}
        for i, v in enumerate(graph.input):
            if v.name not in constants:
                self.read(v, f"{self.folder}/test_data_set_0/input_{i}.pb", folder)

    def read(self, value, path, folder):
        """An input; the suite says uint16 where a model takes bfloat16, so its file is corrected in a copy."""
        proto = onnx.TensorProto()
        with open(path, "rb") as f:
            proto.ParseFromString(f.read())
        if value.type.tensor_type.elem_type == T.BFLOAT16 and proto.data_type == T.UINT16:
            proto.data_type = T.BFLOAT16
            path = f"{folder}/{self.name}.{len(self.inputs)}.pb"
            with open(path, "wb") as f:
                f.write(proto.SerializeToString())
        self.inputs.append(tensor_of(proto, value.name))
        self.files[value.name] = path

    def run(self, folder):
        """Outputs of `cotenant run`: arrays by name; an exception with its message if it fails."""
        args = [os.environ["COTENANT"], "run", self.path, "--output", folder]
        for name, path in self.files.items():
            args += ["--input", f"{name}={path}"]
        done = subprocess.run(args, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return {name: np.load(f"{folder}/{name}.npy") for name in self.outputs}


def same(got, want):
    """Whether a Tensor of the wire holds the bits of an array that `cotenant run` wrote."""
    if list(want.shape) != got.shape:
        return False
    if got.type == "BYTES":
        return [str(s).encode() for s in want.reshape(-1)] == list(got.values)
    if got.type == "BF16":  # `cotenant run` writes float32
        return want.tobytes() == (got.values.astype("<u4") << 16).tobytes()
    return want.dtype == got.values.dtype and want.tobytes() == got.values.tobytes()
