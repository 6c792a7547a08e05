"""Small quantised networks, one per layer. Usage: quantized_models.py FOLDER. Writes FOLDER/exact/*.onnx, whose
compiled answers equal the reference kernels' exactly, and FOLDER/qdq/*.onnx, whose bytes may differ by one."""
import os
import sys

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper, save

RANDOM = np.random.default_rng(7)
MS = 'com.microsoft'
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
        sets = [helper.make_opsetid('', 13), helper.make_opsetid(MS, 1)]
        model = helper.make_model(graph, opset_imports=sets)
        model.ir_version = 8
        save(model, path)


def qlinear_conv(net, ic, oc, k, groups=1, per_channel=True, w_dtype=np.int8, output='y', **attributes):
    n = oc if per_channel else 1
    zeros = np.zeros(n) if w_dtype == np.int8 else np.full(n, 121)
    scale = RANDOM.uniform(0.001, 0.004, n)
    net.node('QLinearConv', [
        'q', net.constant(np.float32(0.013)), net.zero_point(net.zero), net.bytes((oc, ic // groups, k, k), w_dtype),
        net.constant(scale if per_channel else scale[0], np.float32),
        net.constant(zeros if per_channel else zeros[0], w_dtype), net.constant(np.float32(0.02)), net.zero_point(5),
        net.constant(RANDOM.integers(-9000, 9000, oc), np.int32)], output, group=groups, **attributes)


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


def qlinear(net, op, operands, output, scale, zero, **attributes):
    """An operator of com.microsoft. operands: (value, scale, zero point); Concat has the output's scale first."""
    to = [net.constant(np.float32(scale)), net.zero_point(zero)]
    inputs = [x for value, s, z in operands for x in (value, net.constant(np.float32(s)), net.zero_point(z))]
    inputs = to + inputs if op == 'QLinearConcat' else inputs + to
    return net.node(op, inputs, output, domain=MS, **attributes)


SECOND = ('b', 0.02, 3)  # another operand: x in another scale
EXACT = (('QLinearAdd', [SECOND], {}), ('QLinearMul', [SECOND], {}), ('QLinearLeakyRelu', [], dict(alpha=0.1)),
         ('QLinearConcat', [SECOND, SECOND], dict(axis=1)))
ROUNDED = (('QLinearSigmoid', [], {}), ('QLinearSoftmax', [], dict(axis=1, opset=13)), ('QLinearGlobalAveragePool', [], {}),
           ('QLinearAveragePool', [], dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])))


def operators(folder, rows):
    """Operators that ONNX Runtime's static quantiser writes in its operator-oriented format."""
    for dtype in (np.uint8, np.int8):
        for op, more, options in rows:
            net = Net([2, 20, 9, 8], dtype)
            net.node('QuantizeLinear', ['x', net.constant(np.float32(0.02)), net.zero_point(3)], 'b')
            scale = 0.004 if op in ('QLinearSigmoid', 'QLinearSoftmax', 'QLinearGlobalAveragePool') else 0.016
            qlinear(net, op, [('q', 0.013, net.zero), *more], 'y', scale, 5, **options)
            net.save('%s/%s_%s.onnx' % (folder, op, net.dtype.name))


def residuals(folder):
    """Sums of a convolution's bytes and other bytes; `shared`: the convolution's bytes are read twice."""
    for dtype in (np.uint8, np.int8):
        for name, oc, groups, swapped, more in (('odd', 17, 1, False, ''), ('wide', 64, 1, True, ''),
                                                ('grouped', 40, 2, False, ''), ('chained', 24, 1, True, 'again'),
                                                ('both', 32, 1, False, 'both'), ('shared', 32, 1, False, 'shared')):
            net = Net([2, 16, 9, 8], dtype)
            qlinear_conv(net, 16, oc, 3, output='c', groups=groups, pads=[1, 1, 1, 1], strides=[2, 2])
            qlinear_conv(net, 16, oc, 1, output='d', strides=[2, 2])
            net.node('MaxPool', ['d'], 'm', kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            operands = [('c', 0.02, 5), ('d' if more == 'both' else 'm', 0.02, 5)]
            y = qlinear(net, 'QLinearAdd', operands[::-1] if swapped else operands, 's', 0.031, 9)
            if more == 'again':
                y = qlinear(net, 'QLinearAdd', [(y, 0.031, 9), ('d', 0.02, 5)], 't', 0.037, 2)
            if more == 'shared':
                y = net.node('Concat', [y, 'c'], 'j', axis=1)
            net.node('MaxPool', [y], 'y', kernel_shape=[1, 1])
            net.save('%s/residual_%s_%s.onnx' % (folder, name, net.dtype.name))


def products(folder):
    for dtype in (np.uint8, np.int8):
        for transposed in (False, True):
            net = Net([9, 48], dtype)
            qgemm(net, 'q', 0.013, net.zero, 48, 40, transposed, alpha=0.75)
            net.save('%s/gemm_%d_%s.onnx' % (folder, transposed, net.dtype.name))


def blocks(folder):
    for dtype in (np.uint8, np.int8):
        net = Net([1, 16, 9, 8], dtype)  # a block of a residual network: no float between its layers
        qlinear_conv(net, 16, 32, 3, output='c', pads=[1, 1, 1, 1])
        net.node('MaxPool', ['c'], 'm', kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        y = qlinear(net, 'QLinearAdd', [('m', 0.02, 5), ('m', 0.02, 5)], 's', 0.03, 9)
        y = qlinear(net, 'QLinearConcat', [(y, 0.03, 9), ('m', 0.02, 5)], 'j', 0.03, 9, axis=1)
        y = qlinear(net, 'QLinearGlobalAveragePool', [(y, 0.03, 9)], 'p', 0.01, 2)
        net.node('Flatten', [y], 'f')
        qgemm(net, 'f', 0.01, 2, 64, 21, True)
        net.save('%s/block_%s.onnx' % (folder, net.dtype.name))


def qgemm(net, x, scale, zero, k, n, transposed, **attributes):
    net.node('QGemm', [x, net.constant(np.float32(scale)), net.zero_point(zero),
                       net.bytes((n, k) if transposed else (k, n)),
                       net.constant(RANDOM.uniform(0.001, 0.004, n), np.float32), net.constant(np.zeros(n), np.int8),
                       net.constant(RANDOM.integers(-9000, 9000, n), np.int32), net.constant(np.float32(0.02)),
                       net.zero_point(5)], 'y', domain=MS, transB=int(transposed), **attributes)


def floats(folder):
    """Products with float results, then quantised, so that answers are bytes."""
    for bias in (False, True):
        for dynamic in (False, True):
            net = Net([7, 50])
            net.nodes[0] = helper.make_node('DynamicQuantizeLinear', ['x'], ['q', 's', 'z'])
            weights = [net.bytes((50, 33))]
            scale = net.constant(RANDOM.uniform(0.001, 0.004, 33), np.float32)
            zero, add = net.constant(np.full(33, -3), np.int8), net.constant(RANDOM.uniform(-1, 1, 33), np.float32)
            add = [add] if bias else []
            if dynamic:
                net.node('DynamicQuantizeMatMul', ['x', *weights, scale, zero, *add], 'f', domain=MS)
            else:
                net.node('MatMulIntegerToFloat', ['q', *weights, 's', scale, 'z', zero, *add], 'f', domain=MS)
            net.node('QuantizeLinear', ['f', net.constant(np.float32(0.02)), net.zero_point(99)], 'y')
            net.save('%s/floats_%d_%d.onnx' % (folder, bias, dynamic))


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
    for kind, writers, rows in (('exact', (exact, products, residuals), EXACT), ('qdq', (qdq, floats, blocks), ROUNDED)):
        folder = os.path.join(sys.argv[1], kind)
        os.makedirs(folder)
        operators(folder, rows)
        for write in writers:
            write(folder)


if __name__ == '__main__':
    main()
