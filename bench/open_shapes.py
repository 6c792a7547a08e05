"""Open shapes: latency and memory of an encoder whose sequence length is open, and of a fully convolutional network.

usage: open_shapes.py [--requests N] [--lengths N] [--layers N] PROGRAM...
Each PROGRAM (`cotenant`) serves the same files to one client over a socket. The client sends one length again and again,
then random lengths, in the order of a seed: each for the first time, then again. `make bench-open-shapes` calls it.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/serve/attack"))
import harness  # noqa: E402
from client import Connection, http_request  # noqa: E402

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


def tokens(length):
    return {"ids": np.arange(length, dtype=np.int64).reshape(1, -1) % 1000, "mask": np.ones((1, length), np.int64)}


def image(side):
    return {"image": np.ones((1, 3, side, side + 8), np.float32)}


def ask(connection, model, inputs):
    """Milliseconds from the first byte sent to the last one received."""
    data = http_request(model, inputs)
    began = time.perf_counter()
    status, _, body = connection.ask(data, keep=300)
    ms = (time.perf_counter() - began) * 1e3
    harness.check(status == 200, f"{model} answers {status}: {body[:300]!r}")
    return ms


def measure(server, model, make, sizes, usual, requests):
    with Connection(server, timeout=120) as c:
        ask(c, model, make(usual))
        one = [ask(c, model, make(usual)) for _ in range(requests)]
        time.sleep(0.5)
        before = server.rss()
        first = {n: ask(c, model, make(n)) for n in sizes}
        again = {n: min(ask(c, model, make(n)) for _ in range(3)) for n in sizes}
        drawn = random.Random(SEED).choices(sizes, k=requests)
        known = [ask(c, model, make(n)) for n in drawn]
        grown = (server.rss() - before) / 2**20
    p50 = statistics.median
    ratios = sorted(first[n] / again[n] for n in sizes if n != usual)
    print(f"  {model:14} {p50(one):9.2f} {p50(first.values()):10.2f} {p50(known):10.2f} {p50(known) / p50(one):8.2f} "
          f"{p50(ratios):11.2f} {ratios[len(ratios) * 9 // 10]:11.2f} {grown:9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--lengths", type=int, default=128)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--programs", default="", help="build folder with bench_open_shapes")
    parser.add_argument("served", nargs="+")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, n) for n in ("encoder.onnx", "image.onnx")]
        encoder(files[0], o.layers)
        convolutional(files[1])
        lengths, sides = list(range(1, o.lengths + 1)), list(range(32, 160, 4))
        random.Random(SEED).shuffle(lengths)
        random.Random(SEED).shuffle(sides)
        print(f"served to one client; {len(lengths)} lengths, {len(sides)} image sizes; milliseconds")
        print("                  one size   new sizes  any known  any/one   new/known         p90  grew [MB]")
        for program in o.served:
            harness.COTENANT = program
            print(program)
            with harness.Server(*files, wait=300) as s:
                measure(s, "encoder", tokens, lengths, 64, o.requests)
                measure(s, "image", image, sides, 96, o.requests)
        if o.programs:
            print("compiled and run on one thread")
            sys.stdout.flush()
            subprocess.run([os.path.join(o.programs, "bench_open_shapes"), files[0], str(o.lengths)], check=True)


if __name__ == "__main__":
    main()
