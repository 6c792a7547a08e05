"""Small ONNX models, written field by field, and a repository that holds them while a suite runs."""
import atexit
import os
import shutil
import struct
import tempfile

FLOAT, INT64, STRING, BOOL = 1, 7, 8, 9


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def value(name, kind, *dims):
    """An input or output; a dimension that is a word is open."""
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def weights(name, dims, floats):
    data = struct.pack(f"<{len(floats)}f", *floats)
    return b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) + field(9, data)


def node(op, inputs, outputs, **ints):
    body = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op)
    return body + b"".join(field(5, field(1, k) + field(3, v) + field(20, 2)) for k, v in ints.items())


def branch(name, output, *nodes):
    """An attribute of If: a graph without inputs."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, name) + field(12, field(1, output))
    return field(5, field(1, name) + field(6, graph) + field(20, 5))


def model(nodes, inputs, outputs, constants=()):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, c) for c in constants)
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def chain(layers, width, scale):
    """Matrix products, one after the other, that keep small numbers small."""
    eye = [scale if i == j else 0.0 for i in range(width) for j in range(width)]
    names = ["x"] + [f"t{i}" for i in range(layers - 1)] + ["y"]
    nodes = [node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(layers)]
    return model(nodes, [value("x", FLOAT, "n", width)], [value("y", FLOAT, "n", width)],
                 [weights(f"w{i}", [width, width], eye) for i in range(layers)])


ALL = {
    "echo": model([node("Identity", ["x"], ["y"])], [value("x", FLOAT, "n")], [value("y", FLOAT, "n")]),
    "pair": model([node("Add", ["a", "b"], ["sum"]), node("Sub", ["a", "b"], ["difference"])],
                  [value("a", FLOAT, 2, 3), value("b", FLOAT, 2, 3)],
                  [value("sum", FLOAT, 2, 3), value("difference", FLOAT, 2, 3)]),
    "gather": model([node("Gather", ["table", "at"], ["y"], axis=0)], [value("at", INT64, "n")],
                    [value("y", FLOAT, "n", 4)], [weights("table", [10, 4], list(range(40)))]),
    "wide": model([node("Mul", ["x", "ones"], ["y"])], [value("x", FLOAT, "n", 1)], [value("y", FLOAT, "n", 65536)],
                  [weights("ones", [1, 65536], [1.0] * 65536)]),
    "batch": model([node("Neg", ["x"], ["y"])], [value("x", FLOAT, "n", 3)], [value("y", FLOAT, "n", 3)]),
    "folded": model([node("Neg", ["x"], ["y"])], [value("x", FLOAT, "n", 2, 3)], [value("y", FLOAT, "n", 2, 3)]),
    "found": model([node("NonZero", ["x"], ["y"])], [value("x", FLOAT, 3)], [value("y", INT64, 1, "n")]),
    "forked": model([node("If", ["c"], ["y"]) + branch("then_branch", "t", node("Identity", ["x"], ["t"])) +
                     branch("else_branch", "e", node("Cast", ["x"], ["a"], to=14), node("Cast", ["a"], ["e"], to=1))],
                    [value("c", BOOL), value("x", FLOAT, 2)], [value("y", FLOAT, 2)]),
    "deep": chain(12, 192, 1.0),
}
CONFIG = {"batch": 'name: "batch"\nmax_batch_size: 4\n'
                   'input [{ name: "x" data_type: TYPE_FP32 dims: [3] }]\n'
                   'output [{ name: "y" data_type: TYPE_FP32 dims: [3] }]\n',
          "found": 'name: "found"\ninput [{ name: "x" data_type: TYPE_FP32 dims: [3] }]\n'
                   'output [{ name: "y" data_type: TYPE_INT64 dims: [3] reshape { shape: [1, 3] } }]\n',
          "folded": 'name: "folded"\nmax_batch_size: 4\n'
                    'input [{ name: "x" data_type: TYPE_FP32 dims: [6] reshape { shape: [2, 3] } }]\n'
                    'output [{ name: "y" data_type: TYPE_FP32 dims: [3, 2] reshape { shape: [2, 3] } }]\n'}


def put(folder, name, data, config=None):
    os.makedirs(os.path.join(folder, name, "1"), exist_ok=True)
    with open(os.path.join(folder, name, "1", "model.onnx"), "wb") as f:
        f.write(data)
    if config is not None:
        with open(os.path.join(folder, name, "config.pbtxt"), "w") as f:
            f.write(config)


def repository(*names):
    """A folder with these models, gone when the suite ends."""
    folder = tempfile.mkdtemp(prefix="cotenant-models-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in names:
        put(folder, name, ALL[name], CONFIG.get(name))
    return folder


def adder(add, columns=4):
    """y = x + add, of any number of rows."""
    return model([node("Add", ["x", "a"], ["y"])], [value("x", FLOAT, "n", columns)], [value("y", FLOAT, "n", columns)],
                 [weights("a", [columns], [add] * columns)])
