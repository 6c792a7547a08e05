#!/usr/bin/python3
"""Writes a model that the zoo does not have; its weights are random with a fixed seed.

usage: write_model.py encoder|convolutional|mlp FILE.onnx
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEED = 7


class Graph:
    """Nodes and constants of a model under construction; the weights are random."""

    def __init__(self):
        self.nodes, self.constants, self.rng = [], [], np.random.default_rng(SEED)

    def const(self, values, kind=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def weight(self, *shape):
        return self.const(self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) if len(shape) > 2 else shape[0]))

    def op(self, kind, *inputs, **attributes):
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def save(self, path, inputs, output):
        self.nodes.append(helper.make_node("Identity", [output], ["y"]))
        ins = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "open", ins, [out], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.save(model, path)


def norm(g, x, width):
    apart = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    square = g.op("ReduceMean", g.op("Mul", apart, apart), axes=[-1])
    y = g.op("Div", apart, g.op("Sqrt", g.op("Add", square, g.const(1e-6))))
    return g.op("Add", g.op("Mul", y, g.const(np.ones(width))), g.const(np.zeros(width)))


def linear(g, x, a, b):
    return g.op("Add", g.op("MatMul", x, g.weight(a, b)), g.const(g.rng.standard_normal(b) * 0.02))


def encoder(path, layers=6, width=384, heads=12, words=1000, places=512):
    """An encoder as exporters write it: shapes are computed from the input's, attention and norms are written out."""
    g = Graph()
    one, zero = g.const(1, np.int64), g.const(0, np.int64)
    axis0, size = g.const([0], np.int64), g.op("Shape", "ids")
    batch = g.op("Unsqueeze", g.op("Gather", size, zero), axis0)
    length = g.op("Unsqueeze", g.op("Gather", size, one), axis0)
    place = g.op("Slice", g.weight(places, width), g.const([0], np.int64), length, axis0)
    x = norm(g, g.op("Add", g.op("Gather", g.weight(words, width), "ids"), place), width)
    mask = g.op("Cast", g.op("Unsqueeze", "mask", g.const([1, 2], np.int64)), to=TensorProto.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.const(1), mask), g.const(-10000))
    by_head = g.op("Concat", batch, length, g.const([heads], np.int64), g.const([width // heads], np.int64), axis=0)
    whole = g.op("Concat", batch, length, g.const([width], np.int64), axis=0)
    for _ in range(layers):
        q, k, v = (g.op("Transpose", g.op("Reshape", linear(g, x, width, width), by_head), perm=p)
                   for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = g.op("Div", g.op("MatMul", q, k), g.const(np.sqrt(width / heads)))
        y = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), whole)
        x = norm(g, g.op("Add", linear(g, y, width, width), x), width)
        y = linear(g, x, width, 4 * width)
        erf = g.op("Add", g.op("Erf", g.op("Div", y, g.const(np.sqrt(2)))), g.const(1))
        y = linear(g, g.op("Mul", g.op("Mul", y, erf), g.const(0.5)), 4 * width, width)
        x = norm(g, g.op("Add", y, x), width)
    tokens = ["batch", "length"]
    g.save(path, [("ids", TensorProto.INT64, tokens), ("mask", TensorProto.INT64, tokens)], x)


def convolutional(path, widths=(32, 64, 128, 128)):
    """A fully convolutional network that halves the image three times and restores it."""
    g, x, before = Graph(), "image", 3
    for i, n in enumerate(widths):
        side = 1 if i == 0 else 2
        x = g.op("Conv", x, g.weight(n, before, 3, 3), kernel_shape=[3, 3], pads=[1] * 4, strides=[side] * 2)
        x, before = g.op("Relu", x), n
        x = g.op("Relu", g.op("Conv", x, g.weight(n, n, 3, 3), kernel_shape=[3, 3], pads=[1] * 4))
    x = g.op("Conv", x, g.weight(4, before, 1, 1), kernel_shape=[1, 1])
    g.save(path, [("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])], x)


def mlp(path, widths=(16, 64, 4)):
    """A network that runs for a few microseconds."""
    g, x = Graph(), "x"
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        x = g.op("Gemm", g.op("Relu", x) if i > 0 else x, g.weight(a, b), g.const(g.rng.standard_normal(b)))
    g.save(path, [("x", TensorProto.FLOAT, [1, widths[0]])], x)


if __name__ == "__main__":
    models = {m.__name__: m for m in (encoder, convolutional, mlp)}
    if len(sys.argv) != 3 or sys.argv[1] not in models:
        sys.exit(__doc__)
    models[sys.argv[1]](sys.argv[2])
