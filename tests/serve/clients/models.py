# Writes a repository with the models of NVIDIA's client examples, and echoes of every type. Usage: models.py FOLDER
import os
import sys
from onnx import TensorProto as T, helper, save

node = helper.make_node
TYPES = {"BOOL": T.BOOL, "INT8": T.INT8, "INT16": T.INT16, "INT32": T.INT32, "INT64": T.INT64, "UINT8": T.UINT8,
         "UINT16": T.UINT16, "UINT32": T.UINT32, "UINT64": T.UINT64, "FP16": T.FLOAT16, "FP32": T.FLOAT,
         "FP64": T.DOUBLE, "BF16": T.BFLOAT16, "BYTES": T.STRING}


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def write(name, nodes, inputs, outputs, constants=(), config="max_batch_size: 8\n"):
    folder = f"{sys.argv[1]}/{name}/1"
    os.makedirs(folder)
    graph = helper.make_graph(nodes, name, inputs, outputs, list(constants))
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), f"{folder}/model.onnx")
    with open(f"{sys.argv[1]}/{name}/config.pbtxt", "w") as f:
        f.write(config)


def pair(kind, inputs, outputs):
    return [value(n, kind, ["b", 16]) for n in inputs], [value(n, kind, ["b", 16]) for n in outputs]


INPUTS, OUTPUTS = ["INPUT0", "INPUT1"], ["OUTPUT0", "OUTPUT1"]
for name, kind in [("simple", T.INT32), ("simple_int8", T.INT8)]:
    write(name, [node("Add", INPUTS, ["OUTPUT0"]), node("Sub", INPUTS, ["OUTPUT1"])], *pair(kind, INPUTS, OUTPUTS))
write("simple_string", [node("Cast", [i], [i + "n"], to=T.INT32) for i in INPUTS] +
      [node("Add", ["INPUT0n", "INPUT1n"], ["s"]), node("Sub", ["INPUT0n", "INPUT1n"], ["d"]),
       node("Cast", ["s"], ["OUTPUT0"], to=T.STRING), node("Cast", ["d"], ["OUTPUT1"], to=T.STRING)],
      *pair(T.STRING, INPUTS, OUTPUTS))
write("simple_identity", [node("Identity", ["INPUT0"], ["OUTPUT0"])], *pair(T.STRING, ["INPUT0"], ["OUTPUT0"]))
write("images", [node("Flatten", ["x"], ["y"])], [value("x", T.FLOAT, ["b", 1, 2, 2])], [value("y", T.FLOAT, ["b", 4])],
      config='max_batch_size: 8\ninput { name: "x" format: FORMAT_NCHW }\n'
             'output { name: "y" label_filename: "labels.txt" }\n')
with open(f"{sys.argv[1]}/images/labels.txt", "w") as f:
    f.write("cat\ndog\r\nbird\nfish\n")
write("constant", [node("Identity", ["c"], ["y"])], [], [value("y", T.FLOAT, [3])],
      [helper.make_tensor("c", T.FLOAT, [3], [1, 2, 3])], config="")
for name, kind in TYPES.items():
    write(f"echo_{name}", [node("Identity", ["in"], ["out"])], [value("in", kind, [6])], [value("out", kind, [6])],
          config="")
