"""Small quantised networks, one per layer. Usage: quantized_models.py FOLDER. Writes FOLDER/exact/*.onnx, whose
compiled answers equal the reference kernels' exactly, and FOLDER/qdq/*.onnx, whose bytes may differ by one."""
import os
import sys

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper, save

RANDOM = np.random.default_rng(7)
TYPES = {np.dtype(np.uint8): T.UINT8, np.dtype(np.int8): T.INT8, np.dtype(np.float32): T.FLOAT}


class Net:
    """Nodes and constants of a network whose input is float x, quantised to `dtype`."""

    def __init__(self, shape, dtype=np.uint8):
        self.nodes, self.constants, self.shape, self.dtype = [], [], shape, np.dtype(dtype)
        self.zero = 113 if self.dtype == np.uint8 else -9
        self.node('QuantizeLinear', ['x', self.constant(np.float32(0.013)), self.zero_point(self.zero)], 'q')

    def constant(self, value, dtype=None):
        name = 'c%d' % len(self.constants)
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def zero_point(self, value):
        return self.constant(value, self.dtype)

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def bytes(self, shape, dtype=np.int8):
        info = np.iinfo(dtype)
        return self.constant(RANDOM.integers(info.min, info.max + 1, shape), dtype)

    def save(self, path, output='y', kind=None):
        graph = helper.make_graph(
            self.nodes, 'g', [helper.make_tensor_value_info('x', T.FLOAT, self.shape)],
            [helper.make_tensor_value_info(output, kind or TYPES[self.dtype], None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)])
        model.ir_version = 8
        save(model, path)


def qlinear_conv(net, ic, oc, k, groups=1, per_channel=True, w_dtype=np.int8, **attributes):
    n = oc if per_channel else 1
    zeros = np.zeros(n) if w_dtype == np.int8 else np.full(n, 121)
    scale = RANDOM.uniform(0.001, 0.004, n)
    net.node('QLinearConv', [
        'q', net.constant(np.float32(0.013)), net.zero_point(net.zero), net.bytes((oc, ic // groups, k, k), w_dtype),
        net.constant(scale if per_channel else scale[0], np.float32),
        net.constant(zeros if per_channel else zeros[0], w_dtype), net.constant(np.float32(0.02)), net.zero_point(5),
        net.constant(RANDOM.integers(-9000, 9000, oc), np.int32)], 'y', group=groups, **attributes)


def exact(folder):
    convolutions = {
        'first': (3, 16, 3, dict(strides=[2, 2], pads=[1, 1, 1, 1])),
        'point': (24, 40, 1, {}),
        'square': (16, 20, 3, dict(pads=[1, 1, 1, 1])),
        'dilated': (8, 9, 3, dict(dilations=[2, 2])),
        'grouped': (24, 12, 3, dict(groups=3)),
        'depthwise': (40, 40, 3, dict(groups=40, pads=[1, 1, 1, 1], strides=[2, 2])),
        'deep': (64, 64, 5, dict(groups=64, pads=[2, 2, 2, 2])),
        'few': (4, 4, 3, dict(groups=4)),
        'asymmetric': (16, 8, 3, dict(w_dtype=np.uint8, per_channel=False)),
    }
    for name, (ic, oc, k, options) in convolutions.items():
        for dtype in (np.uint8, np.int8):
            net = Net([2, ic, 13, 12], dtype)
            qlinear_conv(net, ic, oc, k, **options)
            net.save('%s/conv_%s_%s.onnx' % (folder, name, np.dtype(dtype).name))
    for dtype in (np.uint8, np.int8):
        for k in (64, 37):
            net = Net([3, 5, k], dtype)
            net.node('QLinearMatMul', ['q', net.constant(np.float32(0.013)), net.zero_point(net.zero), net.bytes((k, 29)),
                                       net.constant(RANDOM.uniform(0.001, 0.004, 29), np.float32),
                                       net.constant(np.zeros(29), np.int8), net.constant(np.float32(0.03)),
                                       net.zero_point(7)], 'y')
            net.save('%s/product_%d_%s.onnx' % (folder, k, net.dtype.name))
            net = Net([7, k], dtype)
            net.node('MatMulInteger', ['q', net.bytes((k, 40)), net.zero_point(net.zero)], 'y')
            net.save('%s/sums_%d_%s.onnx' % (folder, k, net.dtype.name), kind=T.INT32)
        net = Net([7, 64], dtype)  # a computed zero point
        net.node('QuantizeLinear', [net.node('ReduceMax', ['x'], 'most', keepdims=0), net.constant(np.float32(0.05)),
                                    net.zero_point(3)], 'z')
        net.node('MatMulInteger', ['q', net.bytes((64, 40)), 'z'], 'y')
        net.save('%s/sums_computed_%s.onnx' % (folder, net.dtype.name), kind=T.INT32)
        net = Net([2, 12, 9, 9], dtype)
        net.node('ConvInteger', ['q', net.bytes((10, 12, 3, 3), np.uint8), net.zero_point(net.zero),
                                 net.constant(131, np.uint8)], 'y', pads=[1, 1, 1, 1])
        net.save('%s/conv_sums_%s.onnx' % (folder, net.dtype.name), kind=T.INT32)
    net = Net([6, 50])
    net.nodes[0] = helper.make_node('DynamicQuantizeLinear', ['x'], ['q', 's', 'z'])
    net.node('MatMulInteger', ['q', net.bytes((50, 33)), 'z'], 'y')
    net.save(folder + '/dynamic.onnx', kind=T.INT32)


class QdqNet(Net):
    def real(self, scale=0.013):
        out = 'f%d' % len(self.nodes)
        return self.node('DequantizeLinear', ['q', self.constant(np.float32(scale)), self.zero_point(self.zero)], out)

    def weight(self, shape, axis):
        scale = RANDOM.uniform(0.001, 0.004, shape[axis]).astype(np.float32)
        return self.node('DequantizeLinear', [self.bytes(shape), self.constant(scale),
                                              self.constant(np.zeros(shape[axis]), np.int8)],
                         'w%d' % len(self.nodes), axis=axis)

    def bias(self, n):
        return self.constant(RANDOM.uniform(-1, 1, n), np.float32)

    def again(self, value):
        """The value after another pair of QuantizeLinear and DequantizeLinear."""
        pair = [self.constant(np.float32(0.02)), self.zero_point(5)]
        q = self.node('QuantizeLinear', [value, *pair], value + '.bytes')
        return self.node('DequantizeLinear', [q, *pair], value + '.again')

    def finish(self, path, value, scale=0.02):
        self.node('QuantizeLinear', [value, self.constant(np.float32(scale)), self.zero_point(5)], 'y')
        self.save(path)


def qdq(folder):
    for dtype in (np.uint8, np.int8):
        name = folder + '/%s_' + np.dtype(dtype).name + '.onnx'
        for clip in ('none', 'relu', 'clip'):
            net = QdqNet([1, 16, 11, 10], dtype)
            y = net.node('Conv', [net.real(), net.weight((24, 16, 3, 3), 0), net.bias(24)], 'conv', pads=[1, 1, 1, 1])
            if clip == 'relu':
                y = net.node('Relu', [y], 'clipped')
            if clip == 'clip':
                y = net.node('Clip', [y, net.constant(np.float32(0)), net.constant(np.float32(1.5))], 'clipped')
            net.finish(name % ('conv_' + clip), y)
        net = QdqNet([1, 32, 11, 10], dtype)
        y = net.node('Conv', [net.real(), net.weight((32, 1, 3, 3), 0), net.bias(32)], 'conv', group=32)
        net.finish(name % 'depthwise', y)
        net = QdqNet([9, 48], dtype)
        net.finish(name % 'gemm', net.node('Gemm', [net.real(), net.weight((20, 48), 0), net.bias(20)], 'gemm', transB=1))
        net = QdqNet([9, 48], dtype)
        net.finish(name % 'matmul', net.node('MatMul', [net.real(), net.weight((48, 20), 1)], 'product'))
        for op, options in (('MaxPool', dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
                            ('AveragePool', dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])), ('GlobalAveragePool', {})):
            net = QdqNet([2, 20, 9, 9], dtype)
            net.finish(name % op, net.node(op, [net.real()], 'pooled', **options))
        net = QdqNet([1, 20, 6, 7], dtype)
        y = net.node('Relu', [net.node('Add', [net.real(), net.real(0.017)], 'sum')], 'clipped')
        net.finish(name % 'add', y)
        net = QdqNet([1, 20, 6, 7], dtype)
        net.finish(name % 'concat', net.node('Concat', [net.real(), net.real(0.02), net.real()], 'all', axis=1))
        net = QdqNet([2, 16, 5, 5], dtype)  # pixels, a concatenation of them, a reshape, then a matrix
        y = net.node('Conv', [net.real(), net.weight((12, 16, 1, 1), 0), net.bias(12)], 'conv')
        y = net.node('Concat', [net.again(y), net.real()], 'all', axis=1)
        y = net.node('Flatten', [net.again(y)], 'flat')
        net.finish(name % 'mixed', net.again(y))


def main():
    for kind, write in (('exact', exact), ('qdq', qdq)):
        folder = os.path.join(sys.argv[1], kind)
        os.makedirs(folder)
        write(folder)


if __name__ == '__main__':
    main()
