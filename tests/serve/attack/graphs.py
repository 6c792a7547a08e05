"""ONNX graphs whose sizes, axes, indices and numbers of iterations are inputs that a client sets (python3-onnx).

GRAPHS has them by name; write(folder, names) makes a repository of them.
"""
import os

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OPSET = 18            # of graphs with no other: newer operators say theirs
F, D, I, I32, B, S, U8, F16 = T.FLOAT, T.DOUBLE, T.INT64, T.INT32, T.BOOL, T.STRING, T.UINT8, T.FLOAT16
GRAPHS = {}


def value(name, kind, dims):
    return h.make_tensor_value_info(name, kind, dims)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def add(name, nodes, inputs, outputs, constants=(), opset=OPSET):
    """inputs, outputs: (name, type, dimensions); a dimension that is text is open, dimensions None: any rank."""
    graph = h.make_graph(nodes, name, [value(*i) for i in inputs], [value(*o) for o in outputs],
                         [constant(n, a) for n, a in constants])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8)
    GRAPHS[name] = model.SerializeToString()


def one(name, op, inputs, outputs, opset=OPSET, constants=(), **attributes):
    """A graph of one node; an input that is not listed is a constant, and an empty one is left out."""
    names = [i if isinstance(i, str) else i[0] for i in inputs]
    node = h.make_node(op, names, [o[0] for o in outputs], **attributes)
    add(name, [node], [i for i in inputs if not isinstance(i, str)], outputs, constants, opset)


def body(nodes, inputs, outputs, constants=()):
    return h.make_graph(nodes, "body", [value(*i) for i in inputs], [value(*o) for o in outputs],
                        [constant(n, a) for n, a in constants])


def loop(name, step, carried, kind, dims, extra_inputs=(), constants=()):
    """Loop of m iterations while `go`, over one carried value; step: nodes that make `next` of `x`."""
    inner = body(step + [h.make_node("Identity", ["go_in"], ["go_out"])],
                 [("i", I, []), ("go_in", B, []), ("x", kind, dims)], [("go_out", B, []), ("next", kind, dims)], constants)
    add(name, [h.make_node("Loop", ["m", "go", carried], ["y"], body=inner)],
        [("m", I, []), ("go", B, []), (carried, kind, dims), *extra_inputs], [("y", kind, dims)])


# Sizes that are values of inputs.
one("tile", "Tile", [("x", F, ["n"]), ("r", I, [1])], [("y", F, ["p"])])
one("tile_str", "Tile", [("x", S, ["n"]), ("r", I, [1])], [("y", S, ["p"])])
one("tile2d", "Tile", [("x", F, ["n", "m"]), ("r", I, [2])], [("y", F, ["p", "q"])])
add("tile_tile", [h.make_node("Tile", ["x", "r"], ["t"]), h.make_node("Tile", ["t", "r"], ["y"])],
    [("x", F, ["n"]), ("r", I, [1])], [("y", F, ["p"])])
add("tile_sum", [h.make_node("Tile", ["x", "r"], ["t"]), h.make_node("ReduceSum", ["t"], ["y"], keepdims=0)],
    [("x", F, ["n"]), ("r", I, [1])], [("y", F, [])])
one("range", "Range", [("a", I, []), ("b", I, []), ("d", I, [])], [("y", I, ["n"])])
one("range_f", "Range", [("a", F, []), ("b", F, []), ("d", F, [])], [("y", F, ["n"])])
add("range_expand", [h.make_node("Range", ["a", "b", "d"], ["t"]), h.make_node("Expand", ["t", "s"], ["y"])],
    [("a", I, []), ("b", I, []), ("d", I, []), ("s", I, ["k"])], [("y", I, None)])
one("expand", "Expand", [("x", F, ["n"]), ("s", I, ["k"])], [("y", F, None)])
one("expand_str", "Expand", [("x", S, ["n"]), ("s", I, ["k"])], [("y", S, None)])
one("constant_of_shape", "ConstantOfShape", [("s", I, ["k"])], [("y", F, None)],
    value=h.make_tensor("v", F, [1], [1.5]))
for mode in ("nearest", "linear", "cubic"):
    one("resize_" + mode, "Resize", [("x", F, [1, 1, "h", "w"]), "", ("s", F, ["k"])], [("y", F, None)], mode=mode)
one("resize_sizes", "Resize", [("x", F, [1, 1, "h", "w"]), "", "", ("s", I, ["k"])], [("y", F, None)], mode="linear")
one("upsample", "Upsample", [("x", F, [1, 1, "h", "w"]), ("s", F, ["k"])], [("y", F, None)], opset=9)
one("pad", "Pad", [("x", F, ["n"]), ("p", I, ["k"]), ("v", F, [])], [("y", F, ["m"])])
one("pad_edge", "Pad", [("x", F, ["n", "m"]), ("p", I, ["k"])], [("y", F, ["p", "q"])], mode="edge")
one("pad_reflect", "Pad", [("x", F, ["n"]), ("p", I, ["k"])], [("y", F, ["m"])], mode="reflect")
one("one_hot", "OneHot", [("i", I, ["n"]), ("depth", I, []), ("v", F, [2])], [("y", F, None)])
one("top_k", "TopK", [("x", F, ["n"]), ("k", I, [1])], [("v", F, ["m"]), ("at", I, ["m"])])
one("slice", "Slice", [("x", F, ["n", "m"]), ("a", I, ["k"]), ("b", I, ["k"]), ("axes", I, ["k"]), ("d", I, ["k"])],
    [("y", F, None)])
one("reshape", "Reshape", [("x", F, ["n"]), ("s", I, ["k"])], [("y", F, None)])
one("reshape_zero", "Reshape", [("x", F, ["n"]), ("s", I, ["k"])], [("y", F, None)], allowzero=1)
one("squeeze", "Squeeze", [("x", F, ["n", 1, 1]), ("a", I, ["k"])], [("y", F, None)])
one("unsqueeze", "Unsqueeze", [("x", F, ["n"]), ("a", I, ["k"])], [("y", F, None)])
one("split", "Split", [("x", F, ["n"]), ("s", I, ["k"])], [("y", F, ["p"]), ("z", F, ["q"])])
one("cum_sum", "CumSum", [("x", F, ["n", "m"]), ("a", I, [])], [("y", F, ["n", "m"])])
one("reduce_sum", "ReduceSum", [("x", F, ["n", "m"]), ("a", I, ["k"])], [("y", F, None)])
one("reduce_max", "ReduceMax", [("x", F, ["n", "m"]), ("a", I, ["k"])], [("y", F, None)])
one("gather", "Gather", [("x", F, ["n", "m"]), ("i", I, ["k"])], [("y", F, ["k", "m"])])
one("gather_str", "Gather", [("x", S, ["n"]), ("i", I, ["k"])], [("y", S, ["k"])])
one("gather_elements", "GatherElements", [("x", F, ["n", "m"]), ("i", I, ["p", "q"])], [("y", F, ["p", "q"])])
one("gather_nd", "GatherND", [("x", F, ["n", "m"]), ("i", I, ["p", "q"])], [("y", F, None)])
one("scatter_elements", "ScatterElements", [("x", F, ["n", "m"]), ("i", I, ["p", "q"]), ("u", F, ["p", "q"])],
    [("y", F, ["n", "m"])], axis=0)
one("scatter_nd", "ScatterND", [("x", F, ["n", "m"]), ("i", I, ["p", "q"]), ("u", F, None)], [("y", F, ["n", "m"])])
one("where", "Where", [("c", B, ["n", "m"]), ("x", F, ["p", "q"]), ("z", F, ["r", "s"])], [("y", F, None)])
one("non_zero", "NonZero", [("x", F, ["n", "m"])], [("y", I, [2, "k"])])
one("compress", "Compress", [("x", F, ["n", "m"]), ("c", B, ["k"])], [("y", F, None)], axis=0)
one("unique", "Unique", [("x", F, ["n"])], [("y", F, ["k"]), ("a", I, ["k"]), ("b", I, ["n"]), ("c", I, ["k"])])
one("nms", "NonMaxSuppression", [("boxes", F, [1, "n", 4]), ("scores", F, [1, "c", "n"]), ("most", I, [1]),
                                 ("iou", F, [1]), ("least", F, [1])], [("y", I, ["k", 3])])
one("roi_align", "RoiAlign", [("x", F, [1, 1, "h", "w"]), ("rois", F, ["n", 4]), ("b", I, ["n"])],
    [("y", F, ["n", 1, 2, 2])], output_height=2, output_width=2)
one("reverse_sequence", "ReverseSequence", [("x", F, ["n", "m"]), ("l", I, ["k"])], [("y", F, ["n", "m"])])
one("trilu", "Trilu", [("x", F, ["n", "m"]), ("k", I, [])], [("y", F, ["n", "m"])])
one("eye_like", "EyeLike", [("x", F, ["n", "m"])], [("y", F, ["n", "m"])])
one("center_crop_pad", "CenterCropPad", [("x", F, ["n", "m"]), ("s", I, ["k"])], [("y", F, None)])
one("col2im", "Col2Im", [("x", F, [1, "c", "l"]), ("image", I, [2]), ("block", I, [2])], [("y", F, None)])
one("max_unpool", "MaxUnpool", [("x", F, [1, 1, "h", "w"]), ("i", I, [1, 1, "h", "w"]), ("s", I, [4])], [("y", F, None)],
    kernel_shape=[2, 2], strides=[2, 2])
one("grid_sample", "GridSample", [("x", F, [1, 1, "h", "w"]), ("g", F, [1, "p", "q", 2])], [("y", F, [1, 1, "p", "q"])])
one("affine_grid", "AffineGrid", [("t", F, ["n", 2, 3]), ("s", I, [4])], [("y", F, None)], opset=20)
one("hann", "HannWindow", [("n", I, [])], [("y", F, ["m"])])
one("mel", "MelWeightMatrix", [("bins", I, []), ("dft", I, []), ("rate", I, []), ("low", F, []), ("high", F, [])],
    [("y", F, None)])
one("dft", "DFT", [("x", F, [1, "n", 1]), ("n_dft", I, [])], [("y", F, None)], axis=1)
one("stft", "STFT", [("x", F, [1, "n", 1]), ("step", I, []), ("w", F, ["k"]), ("len", I, [])], [("y", F, None)])
one("einsum", "Einsum", [("a", F, ["i", "j"]), ("b", F, ["k", "l"])], [("y", F, None)], equation="ij,kl->jl")
one("outer", "Einsum", [("a", F, ["i"]), ("b", F, ["j"])], [("y", F, ["i", "j"])], equation="i,j->ij")
one("matmul_i64", "MatMul", [("a", I, ["n", "k"]), ("b", I, ["k", "m"])], [("y", I, ["n", "m"])])
one("det", "Det", [("x", F, ["n", "n2"])], [("y", F, [])])
one("bit_shift", "BitShift", [("x", T.UINT64, ["n"]), ("s", T.UINT64, ["m"])], [("y", T.UINT64, None)], direction="LEFT")
one("div_i64", "Div", [("x", I, ["n"]), ("z", I, ["m"])], [("y", I, None)])
one("mod_i32", "Mod", [("x", I32, ["n"]), ("z", I32, ["m"])], [("y", I32, None)])
one("pow_f", "Pow", [("x", F, ["n"]), ("z", F, ["m"])], [("y", F, None)])
one("cast_str_f", "Cast", [("x", S, ["n"])], [("y", F, ["n"])], to=F)
one("cast_str_i", "Cast", [("x", S, ["n"])], [("y", I, ["n"])], to=I)
one("cast_f_str", "Cast", [("x", F, ["n"])], [("y", S, ["n"])], to=S)
one("cast_f_i", "Cast", [("x", F, ["n"])], [("y", I32, ["n"])], to=I32)
one("cast_f_u8", "Cast", [("x", F, ["n"])], [("y", U8, ["n"])], to=U8)
one("clip", "Clip", [("x", F, ["n"]), ("a", F, []), ("b", F, [])], [("y", F, ["n"])])
one("lstm_lens", "GRU", [("x", F, ["t", "b", 2]), "w", "r", "", ("l", I32, ["k"])], [("y", F, None)], hidden_size=2,
    constants=[("w", np.ones((1, 6, 2), np.float32)), ("r", np.ones((1, 6, 2), np.float32))])
one("concat_str", "StringConcat", [("x", S, ["n"]), ("z", S, ["m"])], [("y", S, None)], opset=20)
one("split_str", "StringSplit", [("x", S, ["n"])], [("y", S, ["n", "k"]), ("z", I, ["n"])], opset=20, delimiter=" ")
one("identity_str", "Identity", [("x", S, ["n"])], [("y", S, ["n"])])
one("normalize_str", "StringNormalizer", [("x", S, ["n"])], [("y", S, ["k"])], case_change_action="UPPER",
    stopwords=["A", "b"])
one("unique_str", "Unique", [("x", S, ["n"])], [("y", S, ["k"])])
one("top_k_i", "TopK", [("x", I, ["n"]), ("k", I, [1])], [("v", I, ["m"]), ("at", I, ["m"])], largest=0)
one("arg_max", "ArgMax", [("x", F, ["n", "m"])], [("y", I, None)], axis=1)
one("dequantize", "DequantizeLinear", [("x", U8, ["n"]), ("s", F, []), ("z", U8, [])], [("y", F, ["n"])])
one("quantize", "QuantizeLinear", [("x", F, ["n"]), ("s", F, []), ("z", U8, [])], [("y", U8, ["n"])])
one("multinomial", "Multinomial", [("x", F, ["n", "m"])], [("y", I32, ["n", 4])], sample_size=4)

# Sequences and loops.
add("seq_at", [h.make_node("SplitToSequence", ["x", "s"], ["q"], axis=0), h.make_node("SequenceAt", ["q", "p"], ["y"])],
    [("x", F, ["n"]), ("s", I, ["k"]), ("p", I, [])], [("y", F, None)])
add("split_every", [h.make_node("SplitToSequence", ["x", "s"], ["q"], axis=0),
                    h.make_node("ConcatFromSequence", ["q"], ["y"], axis=0)],
    [("x", F, ["n"]), ("s", I, [])], [("y", F, None)])
loop("loop_add", [h.make_node("Add", ["x", "x"], ["next"])], "v", F, ["n"])
loop("loop_concat", [h.make_node("Concat", ["x", "x"], ["next"], axis=0)], "v", F, ["n"])
loop("loop_tile", [h.make_node("Tile", ["x", "two"], ["next"])], "v", F, ["n"], constants=[("two", np.array([2], np.int64))])


def loop_str():
    """The strings double: `y` is one string of 2^m times its bytes."""
    inner = body([h.make_node("StringConcat", ["x", "x"], ["next"]), h.make_node("Identity", ["go_in"], ["go_out"])],
                 [("i", I, []), ("go_in", B, []), ("x", S, ["n"])], [("go_out", B, []), ("next", S, ["n"])])
    add("loop_str", [h.make_node("Loop", ["m", "go", "v"], ["y"], body=inner)],
        [("m", I, []), ("go", B, []), ("v", S, ["n"])], [("y", S, ["n"])], opset=20)


def loop_nested():
    """m times m iterations of nothing."""
    deep = body([h.make_node("Identity", ["c2"], ["c3"]), h.make_node("Neg", ["a"], ["b"])],
                [("j", I, []), ("c2", B, []), ("a", F, ["n"])], [("c3", B, []), ("b", F, ["n"])])
    inner = body([h.make_node("Loop", ["m", "go_in", "x"], ["next"], body=deep), h.make_node("Identity", ["go_in"], ["go_out"])],
                 [("i", I, []), ("go_in", B, []), ("x", F, ["n"])], [("go_out", B, []), ("next", F, ["n"])])
    add("loop_nested", [h.make_node("Loop", ["m", "go", "v"], ["y"], body=inner)],
        [("m", I, []), ("go", B, []), ("v", F, ["n"])], [("y", F, ["n"])])


def loop_sequence():
    """m tensors put into a sequence, then joined."""
    kind = h.make_sequence_type_proto(h.make_tensor_type_proto(F, None))
    inner = h.make_graph([h.make_node("SequenceInsert", ["q"] + ["v"], ["q2"]), h.make_node("Identity", ["go_in"], ["go_out"])],
                         "body", [value("i", I, []), value("go_in", B, []), h.make_value_info("q", kind)],
                         [value("go_out", B, []), h.make_value_info("q2", kind)])
    add("loop_sequence", [h.make_node("SequenceEmpty", [], ["q0"], dtype=F),
                          h.make_node("Loop", ["m", "go", "q0"], ["qn"], body=inner),
                          h.make_node("ConcatFromSequence", ["qn"], ["y"], axis=0)],
        [("m", I, []), ("go", B, []), ("v", F, ["n"])], [("y", F, None)])


def loop_scan():
    """Loop with a scan output: m rows."""
    inner = body([h.make_node("Identity", ["v"], ["row"]), h.make_node("Identity", ["go_in"], ["go_out"])],
                 [("i", I, []), ("go_in", B, [])], [("go_out", B, []), ("row", F, ["n"])])
    add("loop_scan", [h.make_node("Loop", ["m", "go"], ["y"], body=inner)],
        [("m", I, []), ("go", B, []), ("v", F, ["n"])], [("y", F, ["k", "n"])])


def branch():
    """If over Tile and Expand."""
    yes = body([h.make_node("Tile", ["x", "r"], ["t"])], [], [("t", F, ["p"])])
    no = body([h.make_node("Expand", ["x", "r"], ["e"])], [], [("e", F, ["q"])])
    add("if_tile", [h.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)],
        [("c", B, []), ("x", F, ["n"]), ("r", I, [1])], [("y", F, None)])


loop_str()
loop_nested()
loop_sequence()
loop_scan()
branch()

# Sizes that are shapes of inputs: a large product of two small inputs, and a batch.
add("wide_sum", [h.make_node("Add", ["x", "z"], ["t"]), h.make_node("Softmax", ["t"], ["u"], axis=0),
                 h.make_node("ReduceSum", ["u", "axes"], ["y"], keepdims=0)],
    [("x", F, ["n", 1]), ("z", F, [1, "m"])], [("y", F, ["n"])], [("axes", np.array([1], np.int64))])
rng = np.random.default_rng(1)
add("rows", [h.make_node("MatMul", ["x", "w0"], ["t"]), h.make_node("Relu", ["t"], ["u"]), h.make_node("MatMul", ["u", "w1"], ["y"])],
    [("x", F, ["n", 512])], [("y", F, ["n", 16])],
    [("w0", rng.standard_normal((512, 512), np.float32)), ("w1", rng.standard_normal((512, 16), np.float32))])
add("images", [h.make_node("Conv", ["x", "w0"], ["t"], pads=[1, 1, 1, 1]), h.make_node("Relu", ["t"], ["u"]),
               h.make_node("Conv", ["u", "w1"], ["v"], pads=[1, 1, 1, 1]), h.make_node("GlobalAveragePool", ["v"], ["y"])],
    [("x", F, ["n", 3, 64, 64])], [("y", F, ["n", 32, 1, 1])],
    [("w0", rng.standard_normal((32, 3, 3, 3), np.float32)), ("w1", rng.standard_normal((32, 32, 3, 3), np.float32))])
add("widen", [h.make_node("Cast", ["x"], ["y"], to=D)], [("x", F, ["n"])], [("y", D, ["n"])])
add("echo_f", [h.make_node("Identity", ["x"], ["y"])], [("x", F, ["n"])], [("y", F, ["n"])])
add("echo_i", [h.make_node("Identity", ["x"], ["y"])], [("x", I, ["n"])], [("y", I, ["n"])])


# Operators beside those above: any rank where inputs may have one, and shapes of kernels.
one("scan", "Scan", [("s", F, ["n"]), ("x", F, ["t", "n"])], [("last", F, ["n"]), ("y", F, ["t", "n"])], num_scan_inputs=1,
    body=body([h.make_node("Add", ["a", "b"], ["c"]), h.make_node("Mul", ["c", "b"], ["d"])],
              [("a", F, ["n"]), ("b", F, ["n"])], [("c", F, ["n"]), ("d", F, ["n"])]))
one("einsum_outer", "Einsum", [("a", F, ["i", "j"]), ("b", F, ["k", "l"]), ("c", F, ["m", "n"])], [("y", F, None)],
    equation="ij,kl,mn->ijklmn")
one("einsum_sum", "Einsum", [("a", F, ["i"]), ("b", F, ["j"]), ("c", F, ["k"]), ("d", F, ["l"])], [("y", F, None)],
    equation="i,j,k,l->")
one("einsum_diagonal", "Einsum", [("a", F, ["i", "j"])], [("y", F, None)], equation="ii->i")
one("einsum_batch", "Einsum", [("a", F, None), ("b", F, None)], [("y", F, None)], equation="...ij,...jk->...ik")
one("unique_rows", "Unique", [("x", F, ["n", "m"])], [("y", F, None)], axis=0)
one("gather_any", "Gather", [("x", F, ["n", "m"]), ("i", I, None)], [("y", F, None)], axis=0)
one("roi_align_large", "RoiAlign", [("x", F, [1, 1, "h", "w"]), ("rois", F, ["n", 4]), ("b", I, ["n"])], [("y", F, None)],
    output_height=300, output_width=300, sampling_ratio=0)
one("resize_antialias", "Resize", [("x", F, [1, 1, "h", "w"]), "", ("s", F, ["k"])], [("y", F, None)], mode="cubic", antialias=1)
one("resize_crop", "Resize", [("x", F, [1, 1, "h", "w"]), ("r", F, ["q"]), ("s", F, ["k"])], [("y", F, None)], mode="linear",
    coordinate_transformation_mode="tf_crop_and_resize")
one("local_norm", "LRN", [("x", F, [1, "c", "h", "w"])], [("y", F, [1, "c", "h", "w"])], size=101)
one("average_pool", "AveragePool", [("x", F, [1, 1, "h", "w"])], [("y", F, None)], kernel_shape=[301, 301],
    pads=[150, 150, 150, 150], count_include_pad=1)
one("max_pool", "MaxPool", [("x", F, [1, 1, "h", "w"])], [("y", F, None), ("z", I, None)], kernel_shape=[101, 101])
one("lp_pool", "LpPool", [("x", F, [1, 1, "h", "w"])], [("y", F, None)], kernel_shape=[101, 101], p=3)
one("conv", "Conv", [("x", F, [1, 1, "h", "w"]), ("w", F, ["o", 1, "kh", "kw"])], [("y", F, None)])
one("conv_transpose", "ConvTranspose", [("x", F, [1, 1, "h", "w"]), ("w", F, [1, "o", "kh", "kw"])], [("y", F, None)], strides=[50, 50])
one("matmul", "MatMul", [("a", F, None), ("b", F, None)], [("y", F, None)])
one("lstm", "LSTM", [("x", F, ["t", "b", 2]), "w", "r"], [("y", F, None)], hidden_size=2,
    constants=[("w", np.ones((1, 8, 2), np.float32)), ("r", np.ones((1, 8, 2), np.float32))])
one("log_sum_exp", "ReduceLogSumExp", [("x", F, None)], [("y", F, None)])
one("softmax", "Softmax", [("x", F, None)], [("y", F, None)], axis=-1)
one("arg_max_any", "ArgMax", [("x", F, None)], [("y", I, None)], axis=0)
one("transpose", "Transpose", [("x", F, list("abcdefgh"))], [("y", F, None)], perm=[7, 6, 5, 4, 3, 2, 1, 0])
one("add_any", "Add", [("a", F, None), ("b", F, None)], [("y", F, None)])
one("equal_str", "Equal", [("x", S, ["n"]), ("z", S, ["m"])], [("y", B, None)], opset=19)
one("pow_i64", "Pow", [("x", I, ["n"]), ("z", I, ["m"])], [("y", I, None)])
one("mod_f", "Mod", [("x", F, ["n"]), ("z", F, ["m"])], [("y", F, None)], fmod=1)
one("mod_i64", "Mod", [("x", I, ["n"]), ("z", I, ["m"])], [("y", I, None)])
one("scatter_product", "ScatterND", [("x", F, ["n"]), ("i", I, ["p", 1]), ("u", F, ["p"])], [("y", F, ["n"])], reduction="mul")
one("depth_to_space", "DepthToSpace", [("x", F, [1, "c", "h", "w"])], [("y", F, None)], blocksize=64)
one("space_to_depth", "SpaceToDepth", [("x", F, [1, "c", "h", "w"])], [("y", F, None)], blocksize=64)
one("blackman", "BlackmanWindow", [("n", I, [])], [("y", F, ["m"])])
one("non_zero_any", "NonZero", [("x", F, None)], [("y", I, None)])
one("compress_any", "Compress", [("x", F, None), ("c", B, ["k"])], [("y", F, None)])
one("grid_cubic", "GridSample", [("x", F, ["n", "c", "h", "w"]), ("g", F, ["n", "p", "q", 2])], [("y", F, None)], mode="bicubic",
    padding_mode="reflection")
one("dequantize_axis", "DequantizeLinear", [("x", U8, ["n", "m"]), ("s", F, ["k"]), ("z", U8, ["k"])], [("y", F, ["n", "m"])], axis=1)
one("split_letters", "StringSplit", [("x", S, ["n"])], [("y", S, None), ("z", I, ["n"])], opset=20, delimiter="a")
add("where_sum", [h.make_node("Where", ["c", "x", "z"], ["t"]), h.make_node("ReduceSum", ["t"], ["y"], keepdims=0)],
    [("c", B, None), ("x", F, None), ("z", F, None)], [("y", F, [])])
add("strings_32", [h.make_node("StringConcat", [a, a], [b]) for a, b in zip("xabcd", "abcdy")], [("x", S, ["n"])], [("y", S, ["n"])], opset=20)

def write(folder, names=None):
    """FOLDER/NAME/1/model.onnx of each."""
    for name in names or GRAPHS:
        os.makedirs(os.path.join(folder, name, "1"), exist_ok=True)
        with open(os.path.join(folder, name, "1", "model.onnx"), "wb") as f:
            f.write(GRAPHS[name])


if __name__ == "__main__":
    import sys
    write(sys.argv[1], sys.argv[2:])
