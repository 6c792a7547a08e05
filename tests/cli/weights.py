"""Writes networks, and checks what compile reports and a server computes: weights.py write|report|serve FOLDER ..."""
import json
import os
import sys
import urllib.request

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

K, HIDDEN, N = 300, 512, 40
BITS = {'fp16': 2, 'int8': 1}


def rounded(w, width):
    """w [k][n] as the program keeps it: halves, or bytes with a scale per column and block of at most 128 rows."""
    if width == 'fp16':
        return w.astype(np.float16).astype(np.float32)
    blocks = -(-len(w) // 128)
    size = -(-(-(-len(w) // blocks)) // 4) * 4
    out = w.copy()
    for at in range(0, len(w), size):
        part = w[at:at + size]
        scale = np.abs(part).max(axis=0) / np.float32(127)
        numbers = (part / scale).astype(np.float64)
        out[at:at + size] = np.trunc(numbers + np.copysign(0.5, numbers)) * scale  # halves away from 0
    return out


def save(path, w1, w2, rows):
    node = helper.make_node
    nodes = [node('MatMul', ['x', 'w1'], ['a']), node('Add', ['a', 'b1'], ['b']), node('Relu', ['b'], ['c']),
             node('Gemm', ['c', 'w2', 'b2'], ['y'], transB=1)]
    bias = [np.linspace(-1, 1, n, dtype=np.float32) for n in (HIDDEN, N)]
    weights = [numpy_helper.from_array(w, n) for n, w in
               {'w1': w1, 'w2': np.ascontiguousarray(w2.T), 'b1': bias[0], 'b2': bias[1]}.items()]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, 'mlp', [info('x', TensorProto.FLOAT, [rows, K])],
                              [info('y', TensorProto.FLOAT, [rows, N])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
    model.ir_version = 8
    onnx.save(model, path)


def write(folder):
    rng = np.random.default_rng(3)
    w1, w2 = (rng.standard_normal(s).astype(np.float32) / 16 for s in ((K, HIDDEN), (HIDDEN, N)))
    for rows in (1, 3, 20, 'n'):
        save(f'{folder}/mlp{rows}.onnx', w1, w2, rows)
        for width in BITS:
            save(f'{folder}/{width}_mlp{rows}.onnx', rounded(w1, width), rounded(w2, width), rows)
    for rows in (1, 3, 20):
        np.save(f'{folder}/x{rows}.npy', rng.standard_normal((rows, K)).astype(np.float32))


def near(got, want, what, by=2e-5):
    off = np.abs(got - want).max()
    if not off <= by * np.abs(want).max():
        sys.exit(f'{what}: differs by {off}, of {np.abs(want).max()}')


def check(folder, isa):
    """Programs with narrow weights against the reference kernels on rounded weights."""
    for rows in (1, 3, 20):
        exact = np.load(f'{folder}/fp32_{rows}/y.npy')
        for width in BITS:
            got, want = (np.load(f'{folder}/{kind}_{width}_{rows}/y.npy') for kind in ('got', 'want'))
            near(got, want, f'{rows} rows, {width}, {isa}')
            if np.array_equal(got, exact):
                sys.exit(f'{rows} rows, {width}, {isa}: the weights are not narrow')


def report(path, width):
    with open(path) as f:
        w = json.load(f)['weights']
    products = (K * HIDDEN + HIDDEN * N) * 4
    assert w['weights'] == width and w['narrowed'] == 2 and w['kept'] == 0, w
    assert w['file_bytes'] == products and w['packed_bytes'] < products / 4 * (BITS[width] + 0.15), w
    assert w['program_bytes_before'] - w['program_bytes_after'] > products * 0.45, w
    for layer in w['layers']:
        assert layer['narrowed'] and 0 < layer['rms_error'] < 0.02 and 0 < layer['max_error'] < 0.02, layer
    y = w['outputs'][0]
    assert y['name'] == 'y' and 0 < y['max_abs'] and 0 < y['max_rel'] < 0.05 and 0.999 < y['cosine'] < 1.0000001, y


def ask(address, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(urllib.request.Request(f'http://{address}{path}', data)) as answer:
        return answer.read()


def infer(http, name, x):
    body = {'inputs': [{'name': 'x', 'datatype': 'FP32', 'shape': list(x.shape), 'data': x.ravel().tolist()}]}
    y = json.loads(ask(http, f'/v2/models/{name}/infer', body))['outputs'][0]
    return np.array(y['data'], np.float32).reshape(y['shape'])


def memory(metrics, name):
    for line in ask(metrics, '/metrics').decode().splitlines():
        if line.startswith('cotenant_model_memory_bytes{') and f'"{name}"' in line:
            return float(line.split()[-1])
    sys.exit(f'no memory of {name}')


def serve(folder, http, metrics):
    """Served models against `run`; memory and configuration show the width."""
    x = np.load(f'{folder}/x1.npy')
    for width, name in {'fp32': 'wide', 'fp16': 'half', 'int8': 'narrow'}.items():
        run = 'fp32_1' if width == 'fp32' else f'got_{width}_1'
        near(infer(http, name, x), np.load(f'{folder}/{run}/y.npy'), f'served {width}', 1e-6)
        config = json.loads(ask(http, f'/v2/models/{name}/config'))
        assert config['parameters']['qos.weights'] == {'string_value': width}, config
    for rows in (1, 3, 20):  # a model with an open dimension: shapes share the narrow weights
        near(infer(http, 'open', np.load(f'{folder}/x{rows}.npy')), np.load(f'{folder}/got_int8_{rows}/y.npy'),
             f'served open int8, {rows} rows')
    wide, half, narrow = (memory(metrics, n) for n in ('wide', 'half', 'narrow'))
    products = (K * HIDDEN + HIDDEN * N) * 4
    assert wide - half > products * 0.45 and wide - narrow > products * 0.7, (wide, half, narrow)


{'write': write, 'check': check, 'report': report, 'serve': serve}[sys.argv[1]](*sys.argv[2:])
