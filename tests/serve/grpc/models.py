# Writes small models for tests of servers. Usage: models.py FOLDER
import sys
from onnx import TensorProto as T, checker, helper, save

types = [("BOOL", T.BOOL), ("INT8", T.INT8), ("INT16", T.INT16), ("INT32", T.INT32), ("INT64", T.INT64),
         ("UINT8", T.UINT8), ("UINT16", T.UINT16), ("UINT32", T.UINT32), ("UINT64", T.UINT64),
         ("FP16", T.FLOAT16), ("FP32", T.FLOAT), ("FP64", T.DOUBLE), ("BYTES", T.STRING)]


def write(name, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    checker.check_model(model)
    save(model, f"{sys.argv[1]}/{name}.onnx")


def value(name, type, shape):
    return helper.make_tensor_value_info(name, type, shape)


# Every type there and back
write("echo", [helper.make_node("Identity", ["in_" + n], ["out_" + n]) for n, _ in types],
      [value("in_" + n, t, [2, 3]) for n, t in types], [value("out_" + n, t, [2, 3]) for n, t in types])

for n, t in types:
    write("echo_" + n, [helper.make_node("Identity", ["in"], ["out"])], [value("in", t, [2, 3])],
          [value("out", t, [2, 3])])

# A batch of rows: y = relu(x w + b), and the sum of y's elements
weights = helper.make_tensor("w", T.FLOAT, [4, 3], [((7 * i) % 11 - 5) / 8 for i in range(12)])
bias = helper.make_tensor("b", T.FLOAT, [3], [0.5, -0.25, 0.125])
write("rows", [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]),
               helper.make_node("Relu", ["a"], ["y"]),
               helper.make_node("ReduceSum", ["y"], ["sum"], keepdims=0)],
      [value("x", T.FLOAT, ["batch", 4])], [value("y", T.FLOAT, ["batch", 3]), value("sum", T.FLOAT, [])],
      [weights, bias])
