"""Writes models in float16 and bfloat16, and checks outputs: half_precision.py write|check FOLDER.

Layers of such models compute in float and round where the graph has 16 bits, so the compiled outputs may differ from
those of the reference kernels, which sum in double, by a rounding here and there."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(3)
MS = 'com.microsoft'
KINDS = {'float16': TensorProto.FLOAT16, 'bfloat16': TensorProto.BFLOAT16}


def constant(name, x, kind):
    x = x.astype(np.float32)
    if kind == TensorProto.FLOAT16:
        return numpy_helper.from_array(x.astype(np.float16), name)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)  # cut off: any bfloat16 will do as a weight
    return helper.make_tensor(name, kind, x.shape, bits.tobytes(), raw=True)


def save(folder, name, kind, nodes, inputs, outputs, weights, integers={}):
    """Inputs and outputs are float32: Cast nodes lead into and out of 16 bits."""
    info = lambda n, s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    into = [helper.make_node('Cast', [n], [n + '_half'], to=kind) for n in inputs]
    out = [helper.make_node('Cast', [n + '_half'], [n], to=TensorProto.FLOAT) for n in outputs]
    graph = helper.make_graph(into + nodes + out, name, [info(n, s) for n, s in inputs.items()],
                              [info(n, s) for n, s in outputs.items()], [constant(n, w, kind) for n, w in weights.items()]
                              + [numpy_helper.from_array(w, n) for n, w in integers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid(MS, 1)])
    model.ir_version = 8
    onnx.save(model, os.path.join(folder, name + '.onnx'))


def write(folder):
    node = helper.make_node
    normal = lambda *s: rng.standard_normal(s)
    for word, kind in KINDS.items():
        for rows in (1, 3, 40):  # products of few rows widen weights in registers
            save(folder, f'mlp{rows}_{word}', kind,
                 [node('MatMul', ['x_half', 'w1'], ['a']), node('Add', ['a', 'b1'], ['b']), node('Relu', ['b'], ['c']),
                  node('Gemm', ['c', 'w2', 'b2'], ['d'], transB=1), node('Sigmoid', ['d'], ['e']),
                  node('Mul', ['d', 'e'], ['f']), node('Softmax', ['f'], ['y_half'], axis=-1),
                  node('Identity', ['f'], ['z_half'])],
                 {'x': [rows, 70]}, {'y': [rows, 33], 'z': [rows, 33]},
                 {'w1': normal(70, 50) / 8, 'b1': normal(50), 'w2': normal(33, 50) / 8, 'b2': normal(33)})
        save(folder, f'conv_{word}', kind,
             [node('Conv', ['x_half', 'k', 'b'], ['a'], pads=[1, 1, 1, 1]), node('Relu', ['a'], ['r']),
              node('MaxPool', ['r'], ['p'], kernel_shape=[2, 2], strides=[2, 2]),
              node('Transpose', ['p'], ['t'], perm=[0, 2, 3, 1]), node('Sin', ['t'], ['s']),
              node('Concat', ['t', 's'], ['y_half'], axis=3)],
             {'x': [1, 3, 10, 12]}, {'y': [1, 5, 6, 14]}, {'k': normal(7, 3, 3, 3) / 5, 'b': normal(7)})
        save(folder, f'norm_{word}', kind,
             [node('LayerNormalization', ['x_half', 'g', 'b'], ['n'], axis=-1), node('Exp', ['n'], ['e']),
              node('CumSum', ['e', 'axis'], ['y_half'])],
             {'x': [4, 24]}, {'y': [4, 24]}, {'g': normal(24), 'b': normal(24)}, {'axis': np.array(1, np.int64)})
        # A layer of a decoder: 4 heads of 8, 2 of keys and values, 6 positions in the caches, 2 new ones.
        save(folder, f'decoder_{word}', kind,
             [node('MatMulNBits', ['x_half', 'q4', 's4'], ['qkv'], domain=MS, K=32, N=64, bits=4, block_size=16),
              node('GroupQueryAttention', ['qkv', '', '', 'k_half', 'v_half', 'last', 'total', 'cos', 'sin'],
                   ['a', 'pk_half', 'pv_half'], domain=MS, num_heads=4, kv_num_heads=2, do_rotary=1),
              node('SkipSimplifiedLayerNormalization', ['x_half', 'a', 'g'], ['y_half', '', '', 'z_half'], domain=MS,
                   epsilon=1e-5)],
             {'x': [1, 2, 32], 'k': [1, 2, 6, 8], 'v': [1, 2, 6, 8]},
             {'y': [1, 2, 32], 'z': [1, 2, 32], 'pk': [1, 2, 8, 8], 'pv': [1, 2, 8, 8]},
             {'s4': rng.uniform(0.02, 0.05, (64, 2)), 'g': normal(32), 'cos': np.cos(normal(9, 4)),
              'sin': np.sin(normal(9, 4))},
             {'q4': rng.integers(0, 256, (64, 2, 8)).astype(np.uint8), 'last': np.array([7], np.int32),
              'total': np.array([8], np.int32)})


def check(folder):
    step = {'float16': 2.0 ** -10, 'bfloat16': 2.0 ** -7}
    for name in sorted(os.listdir(os.path.join(folder, 'want'))):
        want = os.path.join(folder, 'want', name)
        for out in os.listdir(want):
            a, b = np.load(os.path.join(want, out)), np.load(os.path.join(folder, 'got', name, out))
            off = np.abs(a - b).max() / np.abs(a).max()
            print(name, out, a.shape, off)
            assert np.isfinite(a).all() and a.std() > 0
            assert off <= 2 * step[name.split('_')[1]], (name, out, off)
            # Rounded: float32 numbers that 16 bits hold.
            bits = np.ascontiguousarray(b).view(np.uint32)
            assert (bits & (0x1fff if 'float16' == name.split('_')[1] else 0xffff) == 0).all(), (name, out)


{'write': write, 'check': check}[sys.argv[1]](sys.argv[2])
