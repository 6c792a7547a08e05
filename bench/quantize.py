#!/usr/bin/python3
"""Quantises an ONNX network to INT8, or converts it to float16.

Usage: quantize.py static|dynamic|half FILE.onnx OUT.onnx [COTENANT]

static: QuantizeLinear and DequantizeLinear around every layer (QDQ): activations uint8 with the range seen on random
inputs, weights int8 with one scale per output channel, biases int32. COTENANT (default build/cotenant) computes the
ranges: it runs the network once with all values as outputs.
dynamic: MatMul with constant weights becomes DynamicQuantizeLinear and MatMulInteger.
half: inputs, outputs and constants of float32 become float16.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Layers between which values are bytes; others stay in float32.
LAYERS = {'Conv', 'Gemm', 'MatMul', 'Add', 'MaxPool', 'AveragePool', 'GlobalAveragePool', 'Concat', 'Flatten', 'Reshape',
          'Relu', 'Clip'}
CALIBRATION_RUNS = 2


class Network:
    """A graph with its constants by name and the readers of each value."""

    def __init__(self, model):
        self.model = model
        self.graph = model.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        self.index()

    def index(self):
        self.readers = {}
        for n in self.graph.node:
            for x in n.input:
                self.readers.setdefault(x, []).append(n)
        self.outputs = {o.name for o in self.graph.output}

    def only_reader(self, value):
        readers = self.readers.get(value, [])
        return readers[0] if len(readers) == 1 and value not in self.outputs else None

    def save(self, path):
        used = {x for n in self.graph.node for x in n.input}
        del self.graph.initializer[:]
        self.graph.initializer.extend(
            numpy_helper.from_array(np.asarray(v, order="C"), k) for k, v in self.constants.items() if k in used)
        onnx.save(self.model, path)


def fold_batch_norms(net):
    """Scale and shift of a BatchNormalization go into the convolution before it."""
    nodes = list(net.graph.node)
    for conv in nodes:
        norm = net.only_reader(conv.output[0]) if conv.op_type == 'Conv' else None
        if norm is None or norm.op_type != 'BatchNormalization':
            continue
        scale, shift, mean, var = (net.constants[x] for x in norm.input[1:5])
        epsilon = next((a.f for a in norm.attribute if a.name == 'epsilon'), 1e-5)
        factor = scale / np.sqrt(var + epsilon)
        weight = net.constants[conv.input[1]]
        bias = net.constants[conv.input[2]] if len(conv.input) > 2 else np.zeros(len(factor), np.float32)
        names = conv.output[0] + '.weight.folded', conv.output[0] + '.bias.folded'
        net.constants[names[0]] = (weight * factor.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
        net.constants[names[1]] = ((bias - mean) * factor + shift).astype(np.float32)
        x = conv.input[0]
        del conv.input[:]
        conv.input.extend([x, *names])
        conv.output[0] = norm.output[0]
        net.graph.node.remove(norm)
    net.index()


def value_ranges(net, cotenant):
    """Smallest and largest element of every float value, over a few random inputs."""
    ranges = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'all.onnx')
        full = onnx.ModelProto()
        full.CopyFrom(net.model)
        inputs = [i.name for i in full.graph.input]
        del full.graph.output[:]
        values = [o for n in full.graph.node for o in n.output]
        full.graph.output.extend(helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in values)
        copy = Network(full)
        copy.constants = net.constants
        copy.save(path)
        for seed in range(1, CALIBRATION_RUNS + 1):
            out = os.path.join(folder, str(seed))
            subprocess.run([cotenant, 'run', path, '--output', out, '--seed', str(seed)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for v in values:
                x = np.load(os.path.join(out, v + '.npy'))
                low, high = ranges.get(v, (0.0, 0.0))
                ranges[v] = min(low, float(x.min())), max(high, float(x.max()))
    for v in inputs:  # as `cotenant run` draws them
        ranges[v] = -1.0, 1.0
    return ranges


class StaticQuantizer:
    def __init__(self, net, ranges):
        self.net, self.ranges, self.nodes, self.scales = net, ranges, [], {}

    def constant(self, name, value):
        self.net.constants[name] = value
        return name

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))

    def scale(self, value):
        low, high = self.ranges[value]
        scale = np.float32(max(high - low, 1e-6) / 255)
        return scale, np.uint8(np.clip(np.rint(-low / scale), 0, 255))

    def activation(self, value, reader):
        """The name of the value after QuantizeLinear (once) and DequantizeLinear (once per reader)."""
        if value not in self.scales:
            scale, zero = self.scale(value)
            self.scales[value] = (self.constant(value + '.scale', scale), self.constant(value + '.zero', zero))
            self.add('QuantizeLinear', [value, *self.scales[value]], value + '.bytes')
        name = value + '.float.' + reader
        self.add('DequantizeLinear', [value + '.bytes', *self.scales[value]], name)
        return name

    def weight(self, name, axis, reader):
        w = self.net.constants[name]
        others = tuple(i for i in range(w.ndim) if i != axis)
        scale = np.maximum(np.abs(w).max(axis=others), 1e-8).astype(np.float32) / np.float32(127)
        shape = [-1 if i == axis else 1 for i in range(w.ndim)]
        q = np.clip(np.rint(w / scale.reshape(shape)), -127, 127).astype(np.int8)
        out = name + '.float.' + reader
        self.add('DequantizeLinear', [self.constant(out + '.bytes', q), self.constant(out + '.scale', scale),
                                      self.constant(out + '.zero', np.zeros(len(scale), np.int8))], out, axis=axis)
        return out, scale

    def bias(self, name, scale, reader):
        q = np.clip(np.rint(self.net.constants[name].astype(np.float64) / scale), -2**30, 2**30).astype(np.int32)
        out = name + '.float.' + reader
        self.add('DequantizeLinear', [self.constant(out + '.int', q),
                                      self.constant(out + '.scale', scale.astype(np.float32)),
                                      self.constant(out + '.zero', np.zeros(len(scale), np.int32))], out, axis=0)
        return out

    def is_clip_of_sum(self, n):
        """Relu and Clip after a layer with weights or an addition belong to that layer."""
        made = {o: m for m in self.net.graph.node for o in m.output}
        before = made.get(n.input[0]) if n.op_type in ('Relu', 'Clip') else None
        return before is not None and before.op_type in ('Conv', 'Gemm', 'Add') and \
            self.net.only_reader(n.input[0]) is n

    def quantize(self, n):
        new = onnx.NodeProto()
        new.CopyFrom(n)
        del new.input[:]
        weights = n.op_type in ('Conv', 'Gemm') or (n.op_type == 'MatMul' and n.input[1] in self.net.constants)
        for i, x in enumerate(n.input):
            if not x or (x in self.net.constants and not (weights and i in (1, 2))):
                new.input.append(x)
            elif x not in self.net.constants:
                new.input.append(self.activation(x, n.output[0]) if x in self.ranges else x)
            elif i == 1:
                transposed = n.op_type == 'Gemm' and any(a.name == 'transB' and a.i for a in n.attribute)
                name, w_scale = self.weight(x, 0 if n.op_type == 'Conv' or transposed else 1, n.output[0])
                new.input.append(name)
            else:
                x_scale = self.net.constants[n.input[0] + '.scale']
                new.input.append(self.bias(x, x_scale.astype(np.float64) * w_scale, n.output[0]))
        self.nodes.append(new)

    def run(self):
        for n in self.net.graph.node:
            if n.op_type in LAYERS and not self.is_clip_of_sum(n):
                self.quantize(n)
            else:
                self.nodes.append(n)
        nodes = [onnx.NodeProto() for _ in self.nodes]
        for to, n in zip(nodes, self.nodes):
            to.CopyFrom(n)
        for o in self.net.graph.output:  # the results are bytes, too
            scale, zero = self.scale(o.name)
            names = self.constant(o.name + '.out.scale', scale), self.constant(o.name + '.out.zero', zero)
            last = next(n for n in nodes if o.name in n.output)
            last.output[list(last.output).index(o.name)] = o.name + '.raw'
            for n in nodes:
                for i, x in enumerate(n.input):
                    if x == o.name:
                        n.input[i] = o.name + '.raw'
            nodes.append(helper.make_node('QuantizeLinear', [o.name + '.raw', *names], [o.name + '.out.bytes']))
            nodes.append(helper.make_node('DequantizeLinear', [o.name + '.out.bytes', *names], [o.name]))
        del self.net.graph.node[:]
        self.net.graph.node.extend(nodes)


def quantize_dynamic(net):
    nodes = []
    quantized = {}
    for n in net.graph.node:
        w = net.constants.get(n.input[1]) if n.op_type == 'MatMul' else None
        if w is None or w.ndim != 2:
            nodes.append(n)
            continue
        x, y = n.input[0], n.output[0]
        scale = (np.maximum(np.abs(w).max(axis=0), 1e-8) / 127).astype(np.float32)
        net.constants[y + '.weight'] = np.clip(np.rint(w / scale), -127, 127).astype(np.int8)
        net.constants[y + '.weight.zero'] = np.int8(0)
        net.constants[y + '.weight.scale'] = scale
        if x not in quantized:
            quantized[x] = [x + '.bytes', x + '.scale', x + '.zero']
            nodes.append(helper.make_node('DynamicQuantizeLinear', [x], quantized[x]))
        bytes_, x_scale, zero = quantized[x]
        nodes.append(helper.make_node('MatMulInteger', [bytes_, y + '.weight', zero, y + '.weight.zero'], [y + '.sums']))
        nodes.append(helper.make_node('Cast', [y + '.sums'], [y + '.cast'], to=TensorProto.FLOAT))
        nodes.append(helper.make_node('Mul', [x_scale, y + '.weight.scale'], [y + '.both']))
        nodes.append(helper.make_node('Mul', [y + '.cast', y + '.both'], [y]))
    del net.graph.node[:]
    net.graph.node.extend(nodes)


def convert_to_half(net):
    exact = {x for n in net.graph.node if n.op_type in ('Resize', 'Upsample') for x in n.input[1:]}  # scales are float32
    for name, value in net.constants.items():
        if value.dtype == np.float32 and name not in exact:
            net.constants[name] = value.astype(np.float16)
    for v in [*net.graph.input, *net.graph.output]:
        if v.type.tensor_type.elem_type == TensorProto.FLOAT:
            v.type.tensor_type.elem_type = TensorProto.FLOAT16
    for n in net.graph.node:
        for a in n.attribute:
            if n.op_type == 'Cast' and a.i == TensorProto.FLOAT:
                a.i = TensorProto.FLOAT16
            if n.op_type in ('Constant', 'ConstantOfShape') and a.t.data_type == TensorProto.FLOAT:
                a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t).astype(np.float16)))
    del net.graph.value_info[:]


def main():
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in ('static', 'dynamic', 'half'):
        sys.exit(__doc__)
    net = Network(onnx.load(sys.argv[2]))
    if sys.argv[1] == 'dynamic':
        quantize_dynamic(net)
    elif sys.argv[1] == 'half':
        convert_to_half(net)
    else:
        fold_batch_norms(net)
        StaticQuantizer(net, value_ranges(net, sys.argv[4] if len(sys.argv) == 5 else 'build/cotenant')).run()
    net.save(sys.argv[3])


if __name__ == '__main__':
    main()
