#!/usr/bin/python3
"""Writes small networks of many architectures, as exporters write them; their weights are random with a fixed seed.

usage: architectures.py NAME|all FOLDER     writes FOLDER/NAME.onnx
       architectures.py list
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

import write_model

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Net(write_model.Graph):
    """A network with operator set 17; helpers are named after what exporters' source frameworks call them."""

    def __init__(self):
        super().__init__()
        self.inputs, self.opset = [], 17

    def input(self, name, shape, kind=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def ints(self, *values):
        return self.const(list(values), np.int64)

    def multi(self, kind, inputs, count, **attributes):
        names = [f"{kind}{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names

    def write(self, path, *outputs):
        outs = [helper.make_tensor_value_info(o, FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, outs, self.constants)
        sets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=sets)
        model.ir_version = 8
        onnx.save(onnx.shape_inference.infer_shapes(model), path)

    def conv(self, x, a, b, kernel, stride=1, groups=1, dilation=1, pad=None, dims=2, bias=True):
        kernel = [kernel] * dims if isinstance(kernel, int) else kernel
        pads = [(k - 1) // 2 * dilation for k in kernel] if pad is None else [pad] * dims
        inputs = [x, self.weight(b, a // groups, *kernel)] + ([self.const(self.rng.standard_normal(b) * 0.1)] if bias else [])
        return self.op("Conv", *inputs, kernel_shape=kernel, strides=[stride] * dims, group=groups,
                       dilations=[dilation] * dims, pads=pads * 2)

    def norm_batch(self, x, n):
        value = self.rng.uniform
        return self.op("BatchNormalization", x, *(self.const(value(lo, hi, n)) for lo, hi in
                       ((0.8, 1.2), (-0.1, 0.1), (-0.1, 0.1), (0.8, 1.2))))

    def cbr(self, x, a, b, kernel, act="Relu", **more):
        x = self.norm_batch(self.conv(x, a, b, kernel, bias=False, **more), b)
        return self.act(x, act)

    def act(self, x, kind):
        if kind == "relu6":
            return self.op("Clip", x, self.const(0), self.const(6))
        if kind == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "gelu":
            erf = self.op("Add", self.op("Erf", self.op("Div", x, self.const(np.sqrt(2)))), self.const(1))
            return self.op("Mul", self.op("Mul", x, erf), self.const(0.5))
        if kind == "gelu_tanh":
            cube = self.op("Mul", self.op("Pow", x, self.const(3)), self.const(0.044715))
            inner = self.op("Tanh", self.op("Mul", self.op("Add", x, cube), self.const(np.sqrt(2 / np.pi))))
            return self.op("Mul", self.op("Mul", x, self.const(0.5)), self.op("Add", inner, self.const(1)))
        return self.op(kind, x) if kind else x

    def norm_layer(self, x, n):
        return self.op("LayerNormalization", x, self.const(self.rng.uniform(0.8, 1.2, n)),
                       self.const(self.rng.uniform(-0.1, 0.1, n)), axis=-1, epsilon=1e-6)

    def norm_rms(self, x, n):
        mean = self.op("ReduceMean", self.op("Pow", x, self.const(2)), axes=[-1])
        y = self.op("Mul", x, self.op("Div", self.const(1), self.op("Sqrt", self.op("Add", mean, self.const(1e-6)))))
        return self.op("Mul", self.const(self.rng.uniform(0.8, 1.2, n)), y)

    def linear(self, x, a, b, bias=True):
        y = self.op("MatMul", x, self.weight(a, b))
        return self.op("Add", self.const(self.rng.standard_normal(b) * 0.02), y) if bias else y

    def fc(self, x, a, b):
        return self.op("Gemm", x, self.weight(b, a), self.const(self.rng.standard_normal(b) * 0.1), transB=1)

    def head(self, x, a, classes=1000):
        return self.fc(self.op("Flatten", self.op("GlobalAveragePool", x)), a, classes)

    def heads(self, x, batch, length, heads, width, perm=(0, 2, 1, 3)):
        x = self.op("Reshape", x, self.ints(batch, length, heads, width // heads))
        return self.op("Transpose", x, perm=list(perm))

    def attention(self, x, batch, length, heads, width, bias=None):
        q, k, v = (self.heads(self.linear(x, width, width), batch, length, heads, width, p)
                   for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        scores = self.op("Mul", self.op("MatMul", q, k), self.const(np.sqrt(heads / width)))
        if bias:
            scores = self.op("Add", scores, bias)
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(batch, length, width))
        return self.linear(y, width, width)

    def mlp(self, x, width, act="gelu", factor=4):
        return self.linear(self.act(self.linear(x, width, factor * width), act), factor * width, width)


def image(g, side=224, channels=3, batch=1):
    return g.input("image", [batch, channels, side, side])


def vit(g, batch=1, side=224, width=192, depth=4):
    n = (side // 16) ** 2
    x = g.conv(image(g, side, batch=batch), 3, width, 16, stride=16, pad=0)
    x = g.op("Transpose", g.op("Reshape", x, g.ints(batch, width, -1)), perm=[0, 2, 1])
    token = g.op("Expand", g.weight(1, 1, width), g.ints(batch, 1, width))
    x = g.op("Add", g.op("Concat", token, x, axis=1), g.weight(1, n + 1, width))
    for _ in range(depth):
        x = g.op("Add", x, g.attention(g.norm_layer(x, width), batch, n + 1, width // 64, width))
        x = g.op("Add", x, g.mlp(g.norm_layer(x, width), width))
    x = g.op("Gather", g.norm_layer(x, width), g.const(0, np.int64), axis=1)
    return g.fc(x, width, 1000)


def vit_batch8(g):
    return vit(g, 8, 96)


def convnext(g, widths=(48, 96, 192), batch=1):
    x = g.conv(image(g, 128, batch=batch), 3, widths[0], 4, stride=4, pad=0)
    for i, n in enumerate(widths):
        if i:
            x = g.op("Transpose", g.norm_layer(g.op("Transpose", x, perm=[0, 2, 3, 1]), widths[i - 1]), perm=[0, 3, 1, 2])
            x = g.conv(x, widths[i - 1], n, 2, stride=2, pad=0)
        for _ in range(2):
            y = g.op("Transpose", g.conv(x, n, n, 7, groups=n), perm=[0, 2, 3, 1])
            y = g.mlp(g.norm_layer(y, n), n)
            y = g.op("Mul", g.const(g.rng.uniform(0.1, 1, n)), y)
            x = g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))
    x = g.op("ReduceMean", x, axes=[-2, -1], keepdims=0)
    return g.fc(g.norm_layer(x, widths[-1]), widths[-1], 1000)


def shuffle(g, x, n, side, groups, batch=1):
    x = g.op("Reshape", x, g.ints(batch, groups, n // groups, side, side))
    return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3, 4]), g.ints(batch, n, side, side))


def shufflenet_v1(g, groups=3):
    x, n, side = g.op("MaxPool", g.cbr(image(g), 3, 24, 3, stride=2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 24, 56
    for m, blocks in ((240, 3), (480, 3)):
        for b in range(blocks):
            first = b == 0
            out = m - n if first else m
            y = g.cbr(x, n, m // 4 // groups * groups, 1, groups=1 if n == 24 else groups)
            y = shuffle(g, y, m // 4 // groups * groups, side, groups)
            y = g.cbr(y, m // 4, m // 4, 3, act=None, groups=m // 4, stride=2 if first else 1)
            y = g.cbr(y, m // 4, out, 1, act=None, groups=groups)
            if first:
                short = g.op("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, count_include_pad=1)
                x, side = g.op("Relu", g.op("Concat", short, y, axis=1)), side // 2
            else:
                x = g.op("Relu", g.op("Add", x, y))
            n = m
    return g.head(x, n)


def shufflenet_v2(g, batch=1):
    x = g.cbr(image(g, batch=batch), 3, 24, 3, stride=2)
    x, n, side = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 24, 56
    for m, blocks in ((116, 3), (232, 3), (464, 2)):
        h = m // 2
        for b in range(blocks):
            if b == 0:
                left = g.cbr(g.cbr(x, n, n, 3, act=None, groups=n, stride=2), n, h, 1)
                right, a, step, side = x, n, 2, side // 2
            else:
                left, right = g.multi("Split", [x, g.ints(h, h)], 2, axis=1)
                a, step = h, 1
            right = g.cbr(right, a, h, 1)
            right = g.cbr(g.cbr(right, h, h, 3, act=None, groups=h, stride=step), h, h, 1)
            x = shuffle(g, g.op("Concat", left, right, axis=1), m, side, 2, batch)
        n = m
    return g.head(g.cbr(x, n, 1024, 1), 1024)


def excite(g, x, n, mid, mean="ReduceMean", gate="HardSigmoid"):
    s = g.op("GlobalAveragePool", x) if mean != "ReduceMean" else g.op("ReduceMean", x, axes=[2, 3])
    s = g.conv(g.op("Relu", g.conv(s, n, mid, 1)), mid, n, 1)
    s = g.op("HardSigmoid", s, alpha=1 / 6) if gate == "HardSigmoid" else g.op(gate, s)
    return g.op("Mul", x, s)


def mobilenet_v3_small(g, batch=1):
    x = g.cbr(image(g, batch=batch), 3, 16, 3, "HardSwish", stride=2)
    n = 16
    for k, e, m, se, act, s in ((3, 16, 16, 1, "Relu", 2), (3, 72, 24, 0, "Relu", 2), (3, 88, 24, 0, "Relu", 1),
                                (5, 96, 40, 1, "HardSwish", 2), (5, 240, 40, 1, "HardSwish", 1),
                                (5, 120, 48, 1, "HardSwish", 1), (5, 288, 96, 1, "HardSwish", 2), (5, 576, 96, 1, "HardSwish", 1)):
        y = g.cbr(g.cbr(x, n, e, 1, act), e, e, k, act, groups=e, stride=s)
        y = g.cbr(excite(g, y, e, e // 4) if se else y, e, m, 1, None)
        x, n = (g.op("Add", x, y) if n == m and s == 1 else y), m
    x = g.op("GlobalAveragePool", g.cbr(x, n, 576, 1, "HardSwish"))
    return g.fc(g.op("HardSwish", g.fc(g.op("Flatten", x), 576, 1024)), 1024, 1000)


def mobilenet_v3_batch8(g):
    return mobilenet_v3_small(g, 8)


def efficientnet_lite(g):
    x, n = g.cbr(image(g), 3, 32, 3, "relu6", stride=2), 32
    for e, m, k, s in ((1, 16, 3, 1), (6, 24, 3, 2), (6, 24, 3, 1), (6, 40, 5, 2), (6, 80, 3, 2), (6, 112, 5, 1), (6, 192, 5, 2)):
        y = g.cbr(x, n, e * n, 1, "relu6") if e > 1 else x
        y = g.cbr(y, e * n, e * n, k, "relu6", groups=e * n, stride=s)
        y = g.cbr(y, e * n, m, 1, None)
        x, n = (g.op("Add", x, y) if n == m and s == 1 else y), m
    return g.head(g.cbr(x, n, 1280, 1, "relu6"), 1280)


def resnext(g, groups=32, batch=1, side=224):
    x, n = g.op("MaxPool", g.cbr(image(g, side, batch=batch), 3, 64, 7, stride=2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for i, (w, m) in enumerate(((128, 256), (256, 512), (512, 1024))):
        s = 2 if i else 1
        y = g.cbr(g.cbr(x, n, w, 1), w, w, 3, groups=groups, stride=s)
        y = g.cbr(y, w, m, 1, None)
        x, n = g.op("Relu", g.op("Add", y, g.cbr(x, n, m, 1, None, stride=s))), m
    return g.head(x, n)


def regnet(g):  # groups of 24 channels, squeeze and excitation
    x, n = g.cbr(image(g), 3, 32, 3, stride=2), 32
    for m in (48, 120, 336):
        for s in (2, 1):
            y = g.cbr(g.cbr(x, n, m, 1), m, m, 3, groups=m // 24, stride=s)
            y = g.cbr(excite(g, y, m, m // 4, "GAP", "Sigmoid"), m, m, 1, None)
            x, n = g.op("Relu", g.op("Add", y, x if s == 1 else g.cbr(x, n, m, 1, None, stride=2))), m
    return g.head(x, n)


def unet_deconv(g, batch=1, side=128):
    x, n, kept = image(g, side, batch=batch), 3, []
    for m in (16, 32, 64, 128):
        x = g.cbr(g.cbr(x, n, m, 3), m, m, 3)
        kept.append((x, m))
        x, n = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), m
    x, n = g.cbr(x, n, 256, 3), 256
    for skip, m in reversed(kept):
        x = g.op("ConvTranspose", x, g.weight(n, m, 2, 2), g.const(np.zeros(m)), kernel_shape=[2, 2], strides=[2, 2])
        x, n = g.cbr(g.op("Concat", skip, x, axis=1), 2 * m, m, 3), m
    return g.op("Sigmoid", g.conv(x, n, 1, 1))


def unet_resize(g, mode="linear", corners="align_corners"):
    x, n, kept = image(g, 160), 3, []
    for m in (16, 32, 64):
        x = g.cbr(x, n, m, 3)
        kept.append((x, m))
        x, n = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), m
    for skip, m in reversed(kept):
        x = g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode=mode, coordinate_transformation_mode=corners)
        x, n = g.cbr(g.op("Concat", x, skip, axis=1), n + m, m, 3), m
    return g.conv(x, n, 3, 1)


def unet_cubic(g):
    return unet_resize(g, "cubic", "half_pixel")


def style(g):  # reflection padding, instance normalization
    def block(x, a, b, k, stride=1, relu=True):
        p = k // 2
        x = g.conv(g.op("Pad", x, g.ints(0, 0, p, p, 0, 0, p, p), mode="reflect"), a, b, k, stride=stride, pad=0)
        x = g.op("InstanceNormalization", x, g.const(g.rng.uniform(0.8, 1.2, b)), g.const(np.zeros(b)))
        return g.op("Relu", x) if relu else x

    x = block(block(block(image(g, 160), 3, 16, 9), 16, 32, 3, 2), 32, 64, 3, 2)
    for _ in range(3):
        x = g.op("Add", x, block(block(x, 64, 64, 3), 64, 64, 3, relu=False))
    for a, b in ((64, 32), (32, 16)):
        x = block(g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric",
                       nearest_mode="floor"), a, b, 3)
    return g.conv(g.op("Pad", x, g.ints(0, 0, 4, 4, 0, 0, 4, 4), mode="reflect"), 16, 3, 9, pad=0)


def dcgan(g):
    x, n = g.op("Reshape", g.input("z", [1, 100]), g.ints(1, 100, 1, 1)), 100
    for i, m in enumerate((256, 128, 64, 32, 3)):
        p = 0 if i == 0 else 1
        x = g.op("ConvTranspose", x, g.weight(n, m, 4, 4), kernel_shape=[4, 4], strides=[2 if i else 1] * 2, pads=[p] * 4)
        x, n = (g.op("Relu", g.norm_batch(x, m)) if m > 3 else g.op("Tanh", x)), m
    return x


def recurrent(g, kind, batch, length, features, hidden, layers=1, both=True, **more):
    x = g.op("Transpose", g.input("x", [batch, length, features]), perm=[1, 0, 2])
    gates, sides = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if both else 1
    for _ in range(layers):
        w = g.weight(sides, gates * hidden, features)
        r = g.weight(sides, gates * hidden, hidden)
        b = g.const(g.rng.standard_normal((sides, 2 * gates * hidden)) * 0.1)
        h0 = g.const(np.zeros((sides, batch, hidden)))
        inputs = [x, w, r, b, "", h0] + ([h0] if kind == "LSTM" else [])
        y = g.multi(kind, inputs, 1, hidden_size=hidden, direction="bidirectional" if both else "forward", **more)[0]
        x = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(length, batch, sides * hidden))
        features = sides * hidden
    return g.linear(g.op("Gather", x, g.const(-1, np.int64), axis=0), features, 10)


def gru_100(g):
    return recurrent(g, "GRU", 1, 60, 40, 100, 2, linear_before_reset=1)


def gru_batch8(g):
    return recurrent(g, "GRU", 8, 30, 64, 128, 1, both=False, linear_before_reset=1)


def gru_before(g):
    return recurrent(g, "GRU", 1, 40, 32, 64, 1, both=False, linear_before_reset=0)


def lstm_256(g):
    return recurrent(g, "LSTM", 1, 50, 80, 256, 2)


def lstm_batch16(g):
    return recurrent(g, "LSTM", 16, 20, 50, 50)


def lstm_32(g):
    return recurrent(g, "LSTM", 1, 100, 8, 32, 1, both=False)


def lstm_step(g):
    return recurrent(g, "LSTM", 1, 1, 128, 512, 2, both=False)


def rnn_64(g):
    return recurrent(g, "RNN", 1, 50, 32, 64, 1)


def gpt2_step(g, width=384, heads=6, depth=3, past=128):
    ids, at = g.input("ids", [1, 1], INT64), g.input("position", [1, 1], INT64)
    x, outs = g.op("Add", g.op("Gather", g.weight(2000, width), ids), g.op("Gather", g.weight(1024, width), at)), []
    size = width // heads
    for i in range(depth):
        cache = [g.input(f"past_{k}{i}", [1, heads, past, size]) for k in "kv"]
        q, k, v = g.multi("Split", [g.linear(g.norm_layer(x, width), width, 3 * width), g.ints(width, width, width)], 3, axis=2)
        q, k, v = (g.heads(t, 1, 1, heads, width) for t in (q, k, v))
        k, v = (g.op("Concat", c, t, axis=2) for c, t in zip(cache, (k, v)))
        scores = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(np.sqrt(size)))
        allowed = g.const(np.ones((1, 1, 1, past + 1)), bool)
        scores = g.op("Where", allowed, scores, g.const(-3e38))
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(1, 1, width))
        x = g.op("Add", x, g.linear(y, width, width))
        x = g.op("Add", x, g.mlp(g.norm_layer(x, width), width, "gelu_tanh"))
        outs += [k, v]
    return [g.linear(g.norm_layer(x, width), width, 2000, bias=False), *outs]


def gpt2_prompt(g, width=256, heads=4, depth=3, length=64):
    ids = g.input("ids", [1, length], INT64)
    x = g.op("Add", g.op("Gather", g.weight(2000, width), ids), g.weight(1, length, width))
    causal = g.op("Slice", g.const(np.tril(np.ones((1, 1, 128, 128))), bool), g.ints(0, 0), g.ints(length, length), g.ints(2, 3))
    for _ in range(depth):
        y = g.linear(g.norm_layer(x, width), width, 3 * width)
        q, k, v = g.multi("Split", [y, g.ints(width, width, width)], 3, axis=2)
        q, k, v = (g.heads(t, 1, length, heads, width, p) for t, p in zip((q, k, v), ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))))
        scores = g.op("Div", g.op("MatMul", q, k), g.const(np.sqrt(width / heads)))
        scores = g.op("Where", causal, scores, g.const(-1e4))
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(1, length, width))
        x = g.op("Add", x, g.linear(y, width, width))
        x = g.op("Add", x, g.mlp(g.norm_layer(x, width), width, "gelu_tanh"))
    return g.linear(g.norm_layer(x, width), width, 2000, bias=False)


def t5(g, width=256, heads=4, depth=3, length=48):
    ids = g.input("ids", [1, length], INT64)
    x = g.op("Gather", g.weight(2000, width), ids)
    places = np.clip(np.arange(length)[None] - np.arange(length)[:, None], -15, 15) + 15
    bias = g.op("Gather", g.weight(32, heads), g.const(places, np.int64))
    bias = g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.ints(0))
    mask = g.op("Cast", g.op("Unsqueeze", g.input("mask", [1, length], INT64), g.ints(1, 2)), to=FLOAT)
    bias = g.op("Add", bias, g.op("Mul", g.op("Sub", g.const(1), mask), g.const(-1e4)))
    for _ in range(depth):
        n = g.norm_rms(x, width)
        q, k, v = (g.heads(g.linear(n, width, width, False), 1, length, heads, width) for _ in range(3))
        scores = g.op("Add", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), bias)
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(1, length, width))
        x = g.op("Add", x, g.linear(y, width, width, False))
        n = g.norm_rms(x, width)
        y = g.op("Mul", g.act(g.linear(n, width, 2 * width, False), "gelu_tanh"), g.linear(n, width, 2 * width, False))
        x = g.op("Add", x, g.linear(y, 2 * width, width, False))
    return g.norm_rms(x, width)


def llama(g, width=256, heads=8, shared=2, depth=2, length=32):
    """Rotary embedding and grouped queries written out: halves negated and concatenated, keys expanded."""
    x, size = g.op("Gather", g.weight(2000, width), g.input("ids", [1, length], INT64)), width // heads
    angle = np.outer(np.arange(length), 10000.0 ** (-np.arange(0, size, 2) / size))
    angle = np.concatenate([angle, angle], 1)[None, None]
    cos, sin = g.const(np.cos(angle)), g.const(np.sin(angle))
    causal = g.const(np.triu(np.full((1, 1, length, length), -3e38), 1))

    def rotate(t):
        low = g.op("Slice", t, g.ints(0), g.ints(size // 2), g.ints(3))
        high = g.op("Slice", t, g.ints(size // 2), g.ints(2 ** 62), g.ints(3))
        turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
        return g.op("Add", g.op("Mul", t, cos), g.op("Mul", turned, sin))

    def repeat(t):
        t = g.op("Expand", g.op("Unsqueeze", t, g.ints(2)), g.ints(1, shared, heads // shared, length, size))
        return g.op("Reshape", t, g.ints(1, heads, length, size))

    for _ in range(depth):
        n = g.norm_rms(x, width)
        q = rotate(g.heads(g.linear(n, width, width, False), 1, length, heads, width))
        k, v = (g.heads(g.linear(n, width, shared * size, False), 1, length, shared, shared * size) for _ in range(2))
        k, v = repeat(rotate(k)), repeat(v)
        scores = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(np.sqrt(size)))
        y = g.op("MatMul", g.op("Softmax", g.op("Add", scores, causal), axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(1, length, width))
        x = g.op("Add", x, g.linear(y, width, width, False))
        n = g.norm_rms(x, width)
        y = g.op("Mul", g.act(g.linear(n, width, 3 * width, False), "silu"), g.linear(n, width, 3 * width, False))
        x = g.op("Add", x, g.linear(y, 3 * width, width, False))
    return g.linear(g.norm_rms(x, width), width, 2000, False)


def wav2vec(g, width=128):
    x, n = g.input("wave", [1, 1, 8000]), 1
    for i, (k, s) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (2, 2))):
        x = g.conv(x, n, width, k, stride=s, pad=0, dims=1, bias=False)
        if i == 0:  # group normalization with a group per channel, as exported
            x = g.op("Reshape", x, g.ints(0, width, -1))
            x = g.op("InstanceNormalization", x, g.const(np.ones(width)), g.const(np.zeros(width)))
            x = g.op("Add", g.op("Mul", x, g.weight(width, 1)), g.weight(width, 1))
        x, n = g.act(x, "gelu"), width
    length = 99
    x = g.op("Transpose", x, perm=[0, 2, 1])
    y = g.conv(g.op("Transpose", x, perm=[0, 2, 1]), width, width, 64, groups=16, pad=32, dims=1)
    y = g.op("Slice", y, g.ints(0), g.ints(-1), g.ints(2))
    x = g.norm_layer(g.op("Add", x, g.op("Transpose", g.act(y, "gelu"), perm=[0, 2, 1])), width)
    for _ in range(2):
        x = g.norm_layer(g.op("Add", x, g.attention(x, 1, length, 4, width)), width)
        x = g.norm_layer(g.op("Add", x, g.mlp(x, width)), width)
    return g.linear(x, width, 32)


def tcn(g, n=64, batch=1):
    x, a = g.input("x", [batch, 40, 200]), 40
    for i in range(5):
        d = 2 ** i
        y = g.op("Relu", g.op("Slice", g.conv(x, a, n, 3, dilation=d, pad=2 * d, dims=1), g.ints(0), g.ints(-2 * d), g.ints(2)))
        y = g.op("Relu", g.op("Slice", g.conv(y, n, n, 3, dilation=d, pad=2 * d, dims=1), g.ints(0), g.ints(-2 * d), g.ints(2)))
        x, a = g.op("Relu", g.op("Add", y, g.conv(x, a, n, 1, dims=1) if a != n else x)), n
    return g.fc(g.op("Gather", x, g.const(-1, np.int64), axis=2), n, 10)


def wavenet(g, n=32):
    x, skips = g.conv(g.input("x", [1, 1, 2000]), 1, n, 1, dims=1), None
    for i in range(6):
        d = 2 ** i
        padded = g.op("Pad", x, g.ints(0, 0, d, 0, 0, 0))
        y = g.conv(padded, n, 2 * n, 2, dilation=d, pad=0, dims=1)
        left, right = g.multi("Split", [y, g.ints(n, n)], 2, axis=1)
        y = g.op("Mul", g.op("Tanh", left), g.op("Sigmoid", right))
        s = g.conv(y, n, n, 1, dims=1)
        skips = g.op("Add", skips, s) if skips else s
        x = g.op("Add", x, g.conv(y, n, n, 1, dims=1))
    return g.conv(g.op("Relu", skips), n, 64, 1, dims=1)


def audio_m5(g):
    x, a = g.input("wave", [1, 1, 16000]), 1
    for b, k, s in ((32, 80, 16), (32, 3, 1), (64, 3, 1), (64, 3, 1)):
        x = g.op("MaxPool", g.cbr(x, a, b, k, stride=s, pad=0, dims=1), kernel_shape=[4], strides=[4])
        a = b
    return g.head(x, a, 35)


def spectrum(g):  # a Fourier transform as a convolution, then a mel filter bank and 2-D convolutions
    x = g.conv(g.op("Pad", g.input("wave", [1, 1, 16000]), g.ints(0, 0, 200, 0, 0, 200), mode="reflect"), 1, 402, 400,
               stride=160, pad=0, dims=1, bias=False)
    re, im = g.multi("Split", [x, g.ints(201, 201)], 2, axis=1)
    power = g.op("Add", g.op("Pow", re, g.const(2)), g.op("Pow", im, g.const(2)))
    mel = g.op("MatMul", g.const(g.rng.uniform(0, 1, (40, 201))), power)
    x = g.op("Unsqueeze", g.op("Log", g.op("Clip", mel, g.const(1e-6))), g.ints(1))
    x = g.cbr(g.cbr(x, 1, 16, 3, stride=2), 16, 32, 3, stride=2)
    return g.head(x, 32, 12)


def conv3d(g, batch=1):
    x, a = g.input("clip", [batch, 3, 8, 56, 56]), 3
    for b, s in ((16, 1), (32, 2), (64, 2)):
        x = g.cbr(x, a, b, 3, dims=3, stride=s)
        x, a = g.op("Relu", g.op("Add", x, g.norm_batch(g.conv(x, b, b, 3, dims=3), b))), b
    x = g.op("MaxPool", x, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    return g.head(x, a, 100)


def r2plus1d(g):
    x, a = g.input("clip", [1, 3, 8, 56, 56]), 3
    for b in (24, 48):
        x = g.cbr(x, a, b, [1, 3, 3], dims=3, pad=None)
        x = g.cbr(x, b, b, [3, 1, 1], dims=3)
        x, a = g.op("AveragePool", x, kernel_shape=[1, 2, 2], strides=[1, 2, 2]), b
    return g.head(x, a, 100)


def odd(g, batch=1):
    x, a = image(g, 75, batch=batch), 3
    for b, k, s in ((17, 3, 1), (50, 5, 2), (99, 3, 1), (33, 1, 1), (130, 3, 2)):
        x, a = g.op("LeakyRelu", g.conv(x, a, b, k, stride=s), alpha=0.1), b
    return g.head(x, a, 1000)


def odd_batch4(g):
    return odd(g, 4)


def lenet_batch16(g):
    x = g.op("MaxPool", g.op("Relu", g.conv(image(g, 28, 1, 16), 1, 6, 5)), kernel_shape=[2, 2], strides=[2, 2])
    x = g.op("MaxPool", g.op("Relu", g.conv(x, 6, 16, 5, pad=0)), kernel_shape=[2, 2], strides=[2, 2])
    return g.fc(g.op("Relu", g.fc(g.op("Relu", g.fc(g.op("Flatten", x), 400, 120)), 120, 84)), 84, 10)


def mlp_tiny(g):
    return g.op("Softmax", g.fc(g.op("Relu", g.fc(g.input("x", [1, 13]), 13, 32)), 32, 3), axis=-1)


def mlp_wide(g, batch=32):
    x = g.input("x", [batch, 100])
    for a, b in ((100, 512), (512, 256), (256, 128)):
        x = g.op("Relu", g.norm_batch(g.fc(x, a, b), b))
    return g.op("Sigmoid", g.fc(x, 128, 1))


def mixer(g, width=128, n=196, depth=4):
    x = g.conv(image(g), 3, width, 16, stride=16, pad=0)
    x = g.op("Transpose", g.op("Reshape", x, g.ints(1, width, n)), perm=[0, 2, 1])
    for _ in range(depth):
        y = g.op("Transpose", g.norm_layer(x, width), perm=[0, 2, 1])
        y = g.linear(g.act(g.linear(y, n, 256), "gelu"), 256, n)
        x = g.op("Add", x, g.op("Transpose", y, perm=[0, 2, 1]))
        x = g.op("Add", x, g.mlp(g.norm_layer(x, width), width))
    return g.fc(g.op("ReduceMean", g.norm_layer(x, width), axes=[1], keepdims=0), width, 1000)


def swin(g, width=96, side=28, window=7, heads=3, depth=4):
    x = g.conv(image(g, 4 * side), 3, width, 4, stride=4, pad=0)
    x, m, size = g.op("Transpose", g.op("Reshape", x, g.ints(1, width, side * side)), perm=[0, 2, 1]), side // window, window * window

    def roll(t, by):
        for axis in (1, 2):
            a = g.op("Slice", t, g.ints(by), g.ints(2 ** 62), g.ints(axis))
            t = g.op("Concat", a, g.op("Slice", t, g.ints(0), g.ints(by), g.ints(axis)), axis=axis)
        return t

    for i in range(depth):
        y = g.op("Reshape", g.norm_layer(x, width), g.ints(1, side, side, width))
        y = roll(y, window // 2) if i % 2 else y
        y = g.op("Transpose", g.op("Reshape", y, g.ints(1, m, window, m, window, width)), perm=[0, 1, 3, 2, 4, 5])
        y = g.linear(g.op("Reshape", y, g.ints(m * m, size, width)), width, 3 * width)
        y = g.op("Transpose", g.op("Reshape", y, g.ints(m * m, size, 3, heads, width // heads)), perm=[2, 0, 3, 1, 4])
        q, k, v = (g.op("Gather", y, g.const(j, np.int64), axis=0) for j in range(3))
        q = g.op("Mul", q, g.const(np.sqrt(heads / width)))
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Add", scores, g.weight(1, heads, size, size))
        if i % 2:
            mask = g.const(g.rng.choice([0, -100.0], (1, m * m, 1, size, size)))
            scores = g.op("Add", g.op("Reshape", scores, g.ints(1, m * m, heads, size, size)), mask)
            scores = g.op("Reshape", scores, g.ints(-1, heads, size, size))
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = g.linear(g.op("Reshape", y, g.ints(m * m, size, width)), width, width)
        y = g.op("Transpose", g.op("Reshape", y, g.ints(1, m, m, window, window, width)), perm=[0, 1, 3, 2, 4, 5])
        y = g.op("Reshape", y, g.ints(1, side, side, width))
        y = roll(y, side - window // 2) if i % 2 else y
        x = g.op("Add", x, g.op("Reshape", y, g.ints(1, side * side, width)))
        x = g.op("Add", x, g.mlp(g.norm_layer(x, width), width))
    return g.fc(g.op("ReduceMean", x, axes=[1], keepdims=0), width, 100)


def yolo_v5(g):
    def c3(x, a, b, n=1):
        h = b // 2
        y = g.cbr(x, a, h, 1, "silu")
        for _ in range(n):
            y = g.op("Add", y, g.cbr(g.cbr(y, h, h, 1, "silu"), h, h, 3, "silu"))
        return g.cbr(g.op("Concat", y, g.cbr(x, a, h, 1, "silu"), axis=1), b, b, 1, "silu")

    x = g.cbr(image(g, 256), 3, 16, 6, "silu", stride=2, pad=2)
    x = c3(g.cbr(x, 16, 32, 3, "silu", stride=2), 32, 32)
    p3 = c3(g.cbr(x, 32, 64, 3, "silu", stride=2), 64, 64, 2)
    p4 = c3(g.cbr(p3, 64, 128, 3, "silu", stride=2), 128, 128)
    x = g.cbr(g.cbr(p4, 128, 256, 3, "silu", stride=2), 256, 128, 1, "silu")
    pools = [x]
    for _ in range(3):
        pools.append(g.op("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    p5 = g.cbr(g.op("Concat", *pools, axis=1), 512, 128, 1, "silu")
    up = g.op("Resize", p5, "", g.const([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    p4 = c3(g.op("Concat", up, p4, axis=1), 256, 128)
    outs = []
    for p, n, side in ((p3, 64, 32), (p4, 128, 16), (p5, 128, 8)):
        y = g.op("Reshape", g.conv(p, n, 255, 1), g.ints(1, 3, 85, side, side))
        y = g.op("Sigmoid", g.op("Transpose", y, perm=[0, 1, 3, 4, 2]))
        xy, wh, rest = g.multi("Split", [y, g.ints(2, 2, 81)], 3, axis=4)
        xy = g.op("Mul", g.op("Add", g.op("Mul", xy, g.const(2)), g.weight(1, 3, side, side, 2)), g.const(256 / side))
        wh = g.op("Mul", g.op("Pow", g.op("Mul", wh, g.const(2)), g.const(2)), g.weight(1, 3, 1, 1, 2))
        outs.append(g.op("Reshape", g.op("Concat", xy, wh, rest, axis=4), g.ints(1, -1, 85)))
    return g.op("Concat", *outs, axis=1)


def text_cnn(g, batch=1, length=64, width=100):
    x = g.op("Transpose", g.op("Gather", g.weight(5000, width), g.input("ids", [batch, length], INT64)), perm=[0, 2, 1])
    parts = [g.op("ReduceMax", g.op("Relu", g.conv(x, width, 100, k, pad=0, dims=1)), axes=[2], keepdims=0) for k in (3, 4, 5)]
    return g.op("Softmax", g.fc(g.op("Concat", *parts, axis=1), 300, 5), axis=-1)


def crnn(g):
    x, a = g.input("image", [1, 1, 32, 100]), 1
    for b, p in ((32, [2, 2]), (64, [2, 2]), (128, [2, 1]), (128, [2, 1])):
        x, a = g.op("MaxPool", g.cbr(x, a, b, 3), kernel_shape=p, strides=p), b
    x = g.op("ReduceMean", x, axes=[2], keepdims=0)
    x = g.op("Transpose", x, perm=[2, 0, 1])
    w, r = g.weight(2, 256, 128), g.weight(2, 256, 64)
    y = g.multi("LSTM", [x, w, r, g.const(np.zeros((2, 512)))], 1, hidden_size=64, direction="bidirectional")[0]
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(25, 1, 128))
    return g.op("LogSoftmax", g.linear(y, 128, 37), axis=2)


def conformer(g, width=144, length=100, depth=2):
    x = g.input("x", [1, length, width])
    for _ in range(depth):
        for half in (True, False):
            if half:
                x = g.op("Add", x, g.op("Mul", g.mlp(g.norm_layer(x, width), width, "silu"), g.const(0.5)))
                x = g.op("Add", x, g.attention(g.norm_layer(x, width), 1, length, 4, width))
            else:
                y = g.op("Transpose", g.norm_layer(x, width), perm=[0, 2, 1])
                a, b = g.multi("Split", [g.conv(y, width, 2 * width, 1, dims=1), g.ints(width, width)], 2, axis=1)
                y = g.op("Mul", a, g.op("Sigmoid", b))
                y = g.act(g.norm_batch(g.conv(y, width, width, 31, groups=width, dims=1), width), "silu")
                y = g.op("Transpose", g.conv(y, width, width, 1, dims=1), perm=[0, 2, 1])
                x = g.op("Add", x, y)
                x = g.op("Add", x, g.op("Mul", g.mlp(g.norm_layer(x, width), width, "silu"), g.const(0.5)))
        x = g.norm_layer(x, width)
    return g.op("LogSoftmax", g.linear(x, width, 64), axis=-1)


def pointnet(g, points=1024):
    x, a = g.input("points", [1, 3, points]), 3
    for b in (64, 64, 128, 512):
        x, a = g.cbr(x, a, b, 1, dims=1), b
    x = g.op("Reshape", g.op("ReduceMax", x, axes=[2], keepdims=1), g.ints(-1, 512))
    return g.op("LogSoftmax", g.fc(g.op("Relu", g.fc(x, 512, 256)), 256, 40), axis=1)


def keras_cnn(g):
    """As tf2onnx writes channels-last networks: transposes around the convolutions, padding apart."""
    x = g.op("Transpose", g.input("image", [1, 96, 96, 3]), perm=[0, 3, 1, 2])
    a = 3
    for b, s in ((16, 2), (32, 2), (64, 2)):
        x = g.op("Pad", x, g.ints(0, 0, 0, 0, 0, 0, 1, 1), g.const(0))
        x, a = g.op("Clip", g.norm_batch(g.conv(x, a, b, 3, stride=s, pad=0), b), g.const(0), g.const(6)), b
        x = g.cbr(x, b, b, 3, "relu6", groups=b)
    x = g.op("Transpose", x, perm=[0, 2, 3, 1])
    x = g.op("ReduceMean", x, axes=[1, 2], keepdims=0)
    return g.op("Softmax", g.linear(x, a, 1000), axis=-1)


def espcn(g):
    x = g.op("Tanh", g.conv(image(g, 96, 1), 1, 64, 5))
    x = g.op("Tanh", g.conv(x, 64, 32, 3))
    x = g.op("DepthToSpace", g.conv(x, 32, 9, 3), blocksize=3, mode="CRD")
    return g.op("Clip", x, g.const(0), g.const(1))


def segformer(g, width=64, side=32, heads=2):
    """Attention with keys and values of a smaller image, a depthwise convolution in the middle of the MLP."""
    x = g.conv(image(g, 128), 3, width, 7, stride=4)
    n = side * side
    x = g.norm_layer(g.op("Transpose", g.op("Reshape", x, g.ints(1, width, n)), perm=[0, 2, 1]), width)
    for _ in range(2):
        y = g.norm_layer(x, width)
        q = g.heads(g.linear(y, width, width), 1, n, heads, width)
        s = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.ints(1, width, side, side))
        s = g.op("Reshape", g.conv(s, width, width, 4, stride=4, pad=0), g.ints(1, width, n // 16))
        s = g.norm_layer(g.op("Transpose", s, perm=[0, 2, 1]), width)
        k, v = (g.heads(g.linear(s, width, width), 1, n // 16, heads, width) for _ in range(2))
        scores = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(np.sqrt(width / heads)))
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = g.op("Add", x, g.linear(g.op("Reshape", y, g.ints(1, n, width)), width, width))
        y = g.linear(g.norm_layer(x, width), width, 4 * width)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.ints(1, 4 * width, side, side))
        y = g.op("Reshape", g.conv(y, 4 * width, 4 * width, 3, groups=4 * width), g.ints(1, 4 * width, n))
        y = g.act(g.op("Transpose", y, perm=[0, 2, 1]), "gelu")
        x = g.op("Add", x, g.linear(y, 4 * width, width))
    x = g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1]), g.ints(1, width, side, side))
    x = g.op("Resize", g.conv(x, width, 19, 1), "", "", g.ints(1, 19, 128, 128), mode="linear",
             coordinate_transformation_mode="half_pixel")
    return g.op("Cast", g.op("ArgMax", x, axis=1, keepdims=0), to=FLOAT)


def group_norm(g, n=64):
    """A block of a diffusion network: group normalization written out, SiLU, a time embedding, attention."""
    def gn(x, n, side):
        y = g.op("Reshape", x, g.ints(0, 8, -1))
        y = g.op("InstanceNormalization", y, g.const(np.ones(8)), g.const(np.zeros(8)))
        y = g.op("Reshape", y, g.ints(1, n, side, side))
        return g.op("Add", g.op("Mul", y, g.weight(n, 1, 1)), g.weight(n, 1, 1))

    x, t = g.conv(image(g, 32, 4), 4, n, 3), g.input("time", [1, 32])
    wave = g.op("Concat", g.op("Sin", t), g.op("Cos", t), axis=-1)
    t = g.act(g.fc(wave, 64, 128), "silu")
    for _ in range(2):
        y = g.conv(g.act(gn(x, n, 32), "silu"), n, n, 3)
        y = g.op("Add", y, g.op("Unsqueeze", g.op("Unsqueeze", g.fc(t, 128, n), g.ints(2)), g.ints(3)))
        x = g.op("Add", x, g.conv(g.act(gn(y, n, 32), "silu"), n, n, 3))
    y = g.op("Transpose", g.op("Reshape", gn(x, n, 32), g.ints(1, n, 1024)), perm=[0, 2, 1])
    y = g.op("Transpose", g.attention(y, 1, 1024, 2, n), perm=[0, 2, 1])
    x = g.op("Add", x, g.op("Reshape", y, g.ints(1, n, 32, 32)))
    return g.conv(g.act(gn(x, n, 32), "silu"), n, 4, 3)


def lrn(g):
    x, a = image(g, 112), 3
    for b, k, s in ((48, 11, 4), (128, 5, 1), (192, 3, 1)):
        x = g.op("LRN", g.op("Relu", g.conv(x, a, b, k, stride=s, groups=2 if a % 2 == 0 else 1)), size=5, alpha=1e-4, beta=0.75, bias=1.0)
        x, a = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2]), b
    return g.op("Softmax", g.head(x, a, 100), axis=-1)


def torch_transformer(g, batch=4, length=32, width=128, heads=4, depth=3):
    """torch.nn.TransformerEncoder: one product for q, k and v, heads folded into the batch, length first."""
    x = g.op("Transpose", g.input("x", [batch, length, width]), perm=[1, 0, 2])
    size = width // heads
    for _ in range(depth):
        y = g.linear(x, width, 3 * width)
        y = g.op("Reshape", y, g.ints(length, batch, 3, width))
        y = g.op("Squeeze", g.op("Transpose", g.op("Unsqueeze", y, g.ints(0)), perm=[3, 1, 2, 0, 4]), g.ints(3))
        q, k, v = (g.op("Transpose", g.op("Reshape", g.op("Gather", y, g.const(j, np.int64), axis=0),
                                          g.ints(length, batch * heads, size)), perm=[1, 0, 2]) for j in range(3))
        q = g.op("Mul", q, g.const(1 / np.sqrt(size)))
        y = g.op("MatMul", g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1])), axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[1, 0, 2]), g.ints(length * batch, width))
        y = g.op("Reshape", g.fc(y, width, width), g.ints(length, batch, width))
        x = g.norm_layer(g.op("Add", x, y), width)
        x = g.norm_layer(g.op("Add", x, g.mlp(x, width, "Relu")), width)
    return g.op("Transpose", x, perm=[1, 0, 2])


def resnet_batch4(g):
    return resnext(g, 1, 4, 112)


def blazeface(g):
    x, a = image(g, 128), 3
    x = g.op("Relu", g.conv(g.op("Pad", x, g.ints(0, 0, 1, 1, 0, 0, 2, 2)), 3, 24, 5, stride=2, pad=0))
    a = 24
    for b, s in ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1)):
        y, short = x, x
        if s == 2:
            y, short = g.op("Pad", x, g.ints(0, 0, 0, 0, 0, 0, 2, 2)), g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        y = g.conv(g.conv(y, a, a, 3, groups=a, stride=s, pad=0 if s == 2 else None), a, b, 1)
        if b > a:
            short = g.op("Pad", short, g.ints(0, 0, 0, 0, 0, b - a, 0, 0))
        if s == 2:
            y = g.op("Slice", y, g.ints(0, 0), g.ints(16 if b == 48 else 32, 16 if b == 48 else 32), g.ints(2, 3))
        x, a = g.op("Relu", g.op("Add", y, short)), b
    y = g.op("Transpose", g.conv(x, a, 6, 1), perm=[0, 2, 3, 1])
    return g.op("Sigmoid", g.op("Reshape", y, g.ints(1, -1, 1)))


def ghost(g):  # cheap maps by depthwise convolutions concatenated to the others, squeeze and excitation
    x, a = g.cbr(image(g, 112), 3, 16, 3, stride=2), 16

    def module(x, a, b, act):
        y = g.cbr(x, a, b // 2, 1, act)
        return g.op("Concat", y, g.cbr(y, b // 2, b // 2, 3, act, groups=b // 2), axis=1)

    for e, b, s in ((16, 16, 1), (48, 24, 2), (72, 24, 1), (72, 40, 2), (120, 40, 1)):
        y = module(x, a, e, "Relu")
        y = g.cbr(y, e, e, 3, None, groups=e, stride=2) if s == 2 else y
        y = module(excite(g, y, e, e // 4), e, b, None)
        if s == 2 or a != b:
            x = g.cbr(g.cbr(x, a, a, 3, None, groups=a, stride=s), a, b, 1, None)
        x, a = g.op("Add", x, y), b
    return g.head(x, a)


def recommender(g, batch=16):
    ids = g.input("ids", [batch, 8], INT64)
    x = g.op("Gather", g.weight(10000, 16), ids)
    total = g.op("ReduceSum", x, g.ints(1), keepdims=0)
    pairs = g.op("Sub", g.op("Mul", total, total), g.op("ReduceSum", g.op("Mul", x, x), g.ints(1), keepdims=0))
    pairs = g.op("Mul", g.op("ReduceSum", pairs, g.ints(1), keepdims=1), g.const(0.5))
    y = g.op("Flatten", x)
    for a, b in ((128, 64), (64, 32)):
        y = g.op("Relu", g.fc(y, a, b))
    return g.op("Sigmoid", g.op("Add", g.fc(y, 32, 1), pairs))


HELPERS = {"image", "shuffle", "excite", "recurrent"}
NETWORKS = {n: f for n, f in list(globals().items())
            if callable(f) and getattr(f, "__module__", "") == "__main__" and n not in HELPERS and not isinstance(f, type)}


def main():
    if sys.argv[1:] == ["list"]:
        return print("\n".join(NETWORKS))
    if len(sys.argv) != 3 or sys.argv[1] not in [*NETWORKS, "all"]:
        sys.exit(__doc__)
    for name in NETWORKS if sys.argv[1] == "all" else [sys.argv[1]]:
        g = Net()
        outputs = NETWORKS[name](g)
        g.write(os.path.join(sys.argv[2], name + ".onnx"), *(outputs if isinstance(outputs, list) else [outputs]))


if __name__ == "__main__":
    main()
