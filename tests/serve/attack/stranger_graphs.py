"""Graphs of stranger.py alone: operators over shapes that are inputs, small models, caches, loops in loops.

Importing it adds them to GRAPHS.
"""
import numpy as np
from onnx import helper as h

from graphs import B, F, GRAPHS, I, I32, OPSET, S, add, body, value


def of_shape(name, op, more=(), kind=F, inputs=(), **attributes):
    """An operator over a tensor whose shape is an input."""
    ones = h.make_node("ConstantOfShape", ["s"], ["x"], value=h.make_tensor("v", F, [1], [1.0]))
    add(name, [ones, h.make_node(op, ["x", *more], ["y"], **attributes)], [("s", I, ["k"]), *inputs], [("y", kind, None)])


of_shape("eye_of_shape", "EyeLike", k=1)
of_shape("trilu_of_shape", "Trilu", ["d"], inputs=[("d", I, [])])
of_shape("unique_of_shape", "Unique")
of_shape("text_of_shape", "Cast", kind=S, to=S)
of_shape("dft_of_shape", "DFT", axis=1)
of_shape("det_of_shape", "Det")
for i in range(30):
    add(f"small_{i}", [h.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, ["n", 16])], [("y", F, ["n", 16])],
        [("w", np.full((16, 16), i, np.float32))])


def caches():
    """Attention over a cache whose lengths are inputs."""
    inputs = [*((n, F, ["b", "s", 64]) for n in "qkv"), *((n, F, ["b", 4, "p", 16]) for n in ("pk", "pv")),
              ("len", I32, ["b"]), ("total", I32, [])]
    node = h.make_node("GroupQueryAttention", [i[0] for i in inputs], ["y", "nk", "nv"], domain="com.microsoft", num_heads=4, kv_num_heads=4)
    graph = h.make_graph([node], "caches", [value(*i) for i in inputs], [value("y", F, ["b", "s", 64]), value("nk", F, None), value("nv", F, None)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", OPSET), h.make_opsetid("com.microsoft", 1)], ir_version=8)
    GRAPHS["caches"] = model.SerializeToString()


def loops_and_scan():
    """If in Scan in Loop in Loop."""
    yes = body([h.make_node("Add", ["e", "e"], ["z"])], [], [("z", F, ["n"])])
    no = body([h.make_node("Neg", ["e"], ["u"])], [], [("u", F, ["n"])])
    scan = body([h.make_node("If", ["c"], ["o"], then_branch=yes, else_branch=no), h.make_node("Identity", ["a"], ["b"])],
                [("a", F, ["n"]), ("e", F, ["n"])], [("b", F, ["n"]), ("o", F, ["n"])])
    deep = body([h.make_node("Scan", ["f", "rows"], ["last", "all"], num_scan_inputs=1, body=scan), h.make_node("Identity", ["c2"], ["c3"])],
                [("j", I, []), ("c2", B, []), ("f", F, ["n"])], [("c3", B, []), ("last", F, ["n"])])
    inner = body([h.make_node("Loop", ["m", "go_in", "x"], ["next"], body=deep), h.make_node("Identity", ["go_in"], ["go_out"])],
                 [("i", I, []), ("go_in", B, []), ("x", F, ["n"])], [("go_out", B, []), ("next", F, ["n"])])
    add("loops_and_scan", [h.make_node("Loop", ["m", "go", "v"], ["y"], body=inner)],
        [("m", I, []), ("go", B, []), ("v", F, ["n"]), ("rows", F, ["t", "n"]), ("c", B, [])], [("y", F, ["n"])])


caches()
loops_and_scan()
