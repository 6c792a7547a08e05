"""Writes conformance cases of the operators of exported decoders: decoder_operators.py FOLDER.

Expected values come from plain NumPy in float64, written from the operators' documentation. Each case exists in
float32, which vector kernels compute, and in float64, which reference kernels compute."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS = 'com.microsoft'
rng = np.random.default_rng(17)


def write(name, op, domain, inputs, outputs, attrs, constants=()):
    """inputs: list of arrays or None; constants: positions of inputs that are initializers."""
    for kind in (np.float32, np.float64):
        cast = [x.astype(kind) if x is not None and x.dtype == np.float64 else x for x in inputs]
        want = [y.astype(kind) for y in outputs]
        names = ['' if x is None else f'in{i}' for i, x in enumerate(cast)]
        node = helper.make_node(op, names, [f'out{i}' for i in range(len(want))], domain=domain, **attrs)
        info = lambda n, x: helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(x.dtype) if hasattr(helper, 'np_dtype_to_tensor_dtype')
            else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[x.dtype], x.shape)
        given = [i for i, x in enumerate(cast) if x is not None and i not in constants]
        graph = helper.make_graph(
            [node], name, [info(names[i], cast[i]) for i in given], [info(f'out{i}', y) for i, y in enumerate(want)],
            [numpy_helper.from_array(cast[i], names[i]) for i in constants
             if i < len(cast) and cast[i] is not None])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 23), helper.make_opsetid(MS, 1)])
        model.ir_version = 8
        folder = os.path.join(sys.argv[1], 'node', f'test_{name}_{np.dtype(kind).name}')
        os.makedirs(os.path.join(folder, 'test_data_set_0'))
        onnx.save(model, os.path.join(folder, 'model.onnx'))
        for what, tensors in (('input', [cast[i] for i in given]), ('output', want)):
            for i, t in enumerate(tensors):
                with open(os.path.join(folder, 'test_data_set_0', f'{what}_{i}.pb'), 'wb') as f:
                    f.write(numpy_helper.from_array(t).SerializeToString())


def rotate(x, cosines, sines, ids, interleaved):
    """x [batch, length, heads, size], ids [batch, length], caches [positions, half]."""
    half = cosines.shape[1]
    y = x.copy()
    c, s = cosines[ids][:, :, None, :], sines[ids][:, :, None, :]
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    a, b = x[..., first], x[..., second]
    y[..., first], y[..., second] = a * c - b * s, a * s + b * c
    return y


def attend(q, k, v, scale, softcap, bias):
    """q [queries, size], k and v [keys, size], bias [queries, keys] -> [queries, size]."""
    s = q @ k.T * scale
    if softcap > 0:
        s = softcap * np.tanh(s / softcap)
    s = s + bias
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ v


def numbers(*shape):
    return rng.uniform(-1, 1, shape)


def values(*shape):  # positive: relative tolerances apply to weighted means of them
    return rng.uniform(0.5, 1.5, shape)


def group(name, batch, length, heads, kv, size, lens, total, past_rows=0, joined=False, half=0, interleaved=0,
          window=-1, softcap=0., ids=None, bias=None, scale=None, causal=True, known=True):
    """lens: keys of each sequence after the call."""
    q, k, v = numbers(batch, length, heads, size), numbers(batch, length, kv, size), values(batch, length, kv, size)
    past_k, past_v = numbers(batch, kv, past_rows, size), values(batch, kv, past_rows, size)
    angles = numbers(max(total, past_rows) + 3, half) * 3
    prompt = length == total
    present = max(past_rows, total)
    out = np.zeros((batch, length, heads * size))
    keys, vals = np.zeros((batch, kv, present, size)), np.zeros((batch, kv, present, size))
    before = [0 if prompt else n - length for n in lens]
    at = np.array([[p + i for i in range(length)] for p in before]) if ids is None else ids
    rq, rk = q, k
    if half:
        rq, rk = (rotate(x, np.cos(angles), np.sin(angles), at, interleaved) for x in (q, k))
    for b in range(batch):
        for n in range(kv):
            keys[b, n, :before[b]] = past_k[b, n, :before[b]]
            vals[b, n, :before[b]] = past_v[b, n, :before[b]]
            keys[b, n, before[b]:before[b] + length] = rk[b, :, n]
            vals[b, n, before[b]:before[b] + length] = v[b, :, n]
        for h in range(heads):
            hidden = np.zeros((length, lens[b]))
            for i in range(length):
                end = min(before[b] + i + 1, lens[b]) if causal else lens[b]
                hidden[i, end:] = -np.inf
                if window > 0:
                    hidden[i, :max(0, end - window)] = -np.inf
                if bias is not None:
                    hidden[i] += np.broadcast_to(bias, (batch, heads, length, total))[b, h, i, :lens[b]]
            n = h // (heads // kv)
            out[b, :, h * size:(h + 1) * size] = attend(
                rq[b, :, h], keys[b, n, :lens[b]], vals[b, n, :lens[b]], scale or size ** -0.5, softcap, hidden)
    flat = lambda x: x.reshape(batch, length, -1)
    inputs = [np.concatenate([flat(q), flat(k), flat(v)], axis=2), None, None] if joined else [flat(q), flat(k), flat(v)]
    inputs += [past_k, past_v] if past_rows else [None, None]
    inputs += [np.array(lens, np.int32) - 1, np.array([total], np.int32)]
    inputs += [np.cos(angles), np.sin(angles)] if half else [None, None]
    inputs += [ids, bias]
    attrs = dict(num_heads=heads, kv_num_heads=kv, do_rotary=int(half > 0), rotary_interleaved=interleaved,
                 local_window_size=window, softcap=softcap, causal=int(causal))
    if scale:
        attrs['scale'] = scale
    while inputs[-1] is None:
        inputs.pop()
    write(f'group_{name}', 'GroupQueryAttention', MS, inputs, [out, keys, vals], attrs,
          constants=[6] if known else [])


group('prompt', 1, 7, 8, 2, 16, [7], 7)
group('prompt_rotary', 1, 9, 4, 2, 32, [9], 9, half=16)
group('prompt_interleaved', 2, 5, 4, 4, 16, [5, 5], 5, half=8, interleaved=1)
group('prompt_padded', 2, 6, 4, 1, 24, [6, 3], 6, half=12)
group('partly_rotated', 1, 5, 2, 1, 24, [5], 5, half=4)
group('token', 1, 1, 8, 2, 32, [20], 20, past_rows=19, half=16)
group('token_unknown_total', 1, 1, 4, 2, 8, [7], 7, past_rows=6, half=4, known=False)
group('token_joined', 2, 1, 6, 3, 16, [12, 12], 12, past_rows=11, joined=True, half=8)
group('token_ragged', 3, 1, 4, 2, 16, [9, 4, 17], 17, past_rows=16, half=8)
group('token_capacity', 1, 1, 8, 2, 32, [20], 64, past_rows=64, half=16)
group('prompt_capacity', 1, 6, 4, 2, 16, [6], 40, past_rows=40, half=8)
group('chunk', 1, 5, 4, 2, 16, [18], 18, past_rows=13, half=8)
group('window', 1, 6, 4, 2, 16, [15], 15, past_rows=9, half=8, window=4)
group('window_token', 1, 1, 4, 2, 16, [33], 33, past_rows=32, window=7)
group('window_prompt', 1, 37, 2, 1, 16, [37], 37, window=5)
group('softcap', 1, 4, 4, 2, 16, [9], 9, past_rows=5, softcap=0.5, scale=2.)
group('ids', 1, 4, 4, 2, 16, [9], 9, past_rows=5, half=8, ids=np.array([[3, 1, 0, 7]], np.int64))
group('bias', 2, 3, 4, 2, 16, [8, 8], 8, past_rows=5, bias=numbers(1, 4, 3, 8))
group('bidirectional', 1, 6, 4, 2, 16, [6], 6, causal=False)
group('long', 1, 70, 4, 2, 40, [203], 203, past_rows=133, half=20)
group('odd_size', 1, 3, 6, 2, 5, [10], 10, past_rows=7)


def multi(name, batch, length, fresh, heads, size, v_size, past=0, bias=False, mask=None, add=None, causal=0, apart=False):
    q, k, v = numbers(batch, length, heads, size), numbers(batch, fresh, heads, size), values(batch, fresh, heads, v_size)
    past_k, past_v = numbers(batch, heads, past, size), values(batch, heads, past, v_size)
    b = numbers((2 * size + v_size) * heads)
    keys, total = past + fresh, heads * size
    pq, pk, pv = q, k, v
    if bias:
        pq = q + b[:total].reshape(heads, size)
        pk = k + b[total:2 * total].reshape(heads, size)
        pv = v + b[2 * total:].reshape(heads, v_size) + 1
        b[2 * total:] += 1
    all_k = np.concatenate([past_k, pk.transpose(0, 2, 1, 3)], axis=2)
    all_v = np.concatenate([past_v, pv.transpose(0, 2, 1, 3)], axis=2)
    out = np.zeros((batch, length, heads * v_size))
    for i in range(batch):
        for h in range(heads):
            hidden = np.zeros((length, keys))
            if mask is not None:
                seen = np.arange(keys)[None] < mask[i] if mask.ndim == 1 else mask[i] != 0
                hidden = hidden + np.where(np.broadcast_to(seen, (length, keys)), 0, -10000)
            if add is not None:
                hidden = hidden + np.broadcast_to(add, (batch, heads, length, keys))[i, h]
            if causal:
                hidden = hidden + np.where(np.arange(keys)[None] <= past + np.arange(length)[:, None], 0, -np.inf)
            out[i, :, h * v_size:(h + 1) * v_size] = attend(pq[i, :, h], all_k[i, h], all_v[i, h], size ** -0.5, 0, hidden)
    flat = lambda x: x.transpose(0, 2, 1, 3) if apart else x.reshape(batch, x.shape[1], -1)
    inputs = [q.reshape(batch, length, -1), flat(k), flat(v), b if bias else None, mask, add]
    inputs += [past_k, past_v] if past else [None, None]
    while inputs[-1] is None:
        inputs.pop()
    outputs = [out] if apart else [out, all_k, all_v]
    write(f'multi_{name}', 'MultiHeadAttention', MS, inputs, outputs, dict(num_heads=heads, unidirectional=causal))


multi('plain', 2, 5, 5, 3, 16, 16)
multi('bias', 2, 5, 7, 3, 8, 12, bias=True)
multi('past', 1, 1, 1, 4, 16, 16, past=11)
multi('past_causal', 2, 4, 4, 2, 16, 16, past=6, causal=1)
multi('lengths', 2, 3, 6, 2, 16, 16, mask=np.array([4, 6], np.int32))
multi('mask', 2, 3, 6, 2, 16, 16, mask=np.array([[1, 1, 0, 1, 0, 1], [1, 0, 1, 1, 1, 1]], np.int32))
multi('mask_3d', 1, 2, 3, 2, 16, 16, mask=np.array([[[1, 1, 0], [0, 1, 1]]], np.int32))
multi('add', 2, 4, 9, 2, 16, 16, past=0, add=numbers(1, 2, 4, 9))
multi('apart', 2, 3, 10, 2, 16, 16, apart=True)


def rotary(name, batch, length, heads, size, half, ids, interleaved=0, apart=False, whole=True):
    x = numbers(batch, length, heads, size)
    angles = numbers(32, half) * 3
    at = np.array(ids, np.int64)
    spread = at[0] + np.tile(np.arange(length), (batch, 1)) if at.ndim == 1 else at
    y = rotate(x, np.cos(angles), np.sin(angles), spread, interleaved) + 0
    shape = (lambda t: t.transpose(0, 2, 1, 3)) if apart else (lambda t: t.reshape(batch, length, -1))
    attrs = dict(interleaved=interleaved)
    if not whole:
        attrs.update(rotary_embedding_dim=2 * half, num_heads=heads)
    write(f'rotary_ms_{name}', 'RotaryEmbedding', MS, [shape(x), at, np.cos(angles), np.sin(angles)], [shape(y)], attrs)


rotary('first', 2, 5, 3, 16, 8, [4])
rotary('ids', 2, 3, 2, 32, 16, [[5, 1, 30], [0, 2, 9]])
rotary('interleaved', 1, 4, 3, 10, 5, [0], interleaved=1)
rotary('apart', 2, 3, 2, 16, 8, [7], apart=True)
rotary('part', 1, 3, 2, 20, 6, [2], whole=False)


def quantised(rows, columns, block, bits, zeros):
    """Integers [rows, blocks * block], scales, zero points; and the real matrix [rows, columns]."""
    blocks = -(-columns // block)
    w = rng.integers(0, 1 << bits, (rows, blocks, block))
    scales = rng.uniform(0.01, 0.02, (rows, blocks))
    zero = np.full((rows, blocks), 1 << (bits - 1), float)
    if zeros == 'packed':
        zero = rng.integers(0, 1 << bits, (rows, blocks)).astype(float)
    if zeros == 'float':
        zero = rng.uniform(0, 1 << bits, (rows, blocks))
    real = ((w - zero[:, :, None]) * scales[:, :, None]).reshape(rows, -1)[:, :columns]
    return w, scales, zero, real


def pack(x, bits):
    """[..., n] integers to bytes along the last axis, the first in the low bits."""
    per = 8 // bits
    pad = -x.shape[-1] % per
    x = np.concatenate([x, np.zeros(x.shape[:-1] + (pad,), x.dtype)], axis=-1).astype(np.uint8)
    x = x.reshape(x.shape[:-1] + (-1, per))
    return np.bitwise_or.reduce(x << (np.arange(per, dtype=np.uint8) * bits), axis=-1).astype(np.uint8)


def nbits(name, shape, n, block, bits=4, zeros=None, bias=False):
    w, scales, zero, real = quantised(n, shape[-1], block, bits, zeros)
    a = values(*shape)
    b = numbers(n) * 100 if bias else None
    y = a @ real.T + (b if bias else 0)
    z = {None: None, 'packed': pack(zero.astype(int), bits), 'float': zero}[zeros]
    inputs = [a, pack(w, bits), scales, z, None, b]
    while inputs[-1] is None:
        inputs.pop()
    attrs = dict(K=shape[-1], N=n, bits=bits, block_size=block)
    for constant in (True, False):
        write(f'nbits_{name}{"" if constant else "_computed"}', 'MatMulNBits', MS, inputs, [y], attrs,
              constants=[1, 2, 3, 5] if constant else [])


for block in (16, 32, 64, 128, 256):
    nbits(f'row_block{block}', (1, 256), 48, block)
    nbits(f'rows_block{block}', (5, 200), 33, block, zeros='packed')
nbits('float_zeros', (2, 3, 96), 20, 32, zeros='float')
nbits('bias', (1, 1, 72), 17, 16, bias=True)
nbits('many_rows', (70, 160), 100, 32, zeros='packed', bias=True)
nbits('8bit', (1, 100), 40, 32, bits=8)
nbits('8bit_zeros', (9, 64), 19, 16, bits=8, zeros='packed')
nbits('2bit', (3, 64), 19, 16, bits=2, zeros='packed')


def gather(name, count, columns, block, index, bits=4, zeros=False):
    w, scales, zero, real = quantised(count, columns, block, bits, 'packed' if zeros else None)
    w = w.reshape(count, -1)[:, :columns]
    at = np.array(index, np.int64)
    inside = (at >= -count) & (at < count)
    y = np.where(inside[..., None], real[np.where(inside, at, 0)], 0)
    inputs = [pack(w, bits), at, scales] + ([pack(zero.astype(int), bits)] if zeros else [])
    write(f'gather_{name}', 'GatherBlockQuantized', MS, inputs, [y],
          dict(bits=bits, block_size=block, gather_axis=0, quantize_axis=1), constants=[0, 2, 3][:len(inputs) - 1])


gather('plain', 30, 64, 16, [[3, 29, -1], [0, 7, 7]])
gather('zeros', 12, 96, 32, [4, 1], zeros=True)
gather('outside', 5, 32, 16, [1, 9, -6])
gather('8bit', 9, 40, 16, [[8]], bits=8, zeros=True)
