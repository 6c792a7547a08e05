#!/bin/sh
# ONNX's own checker accepts what the zoo writes, and its shape inference finds our shapes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for net in resnet50 squeezenet1_1 mobilenet_v3_large lstm_kws dlrm; do
    "$COTENANT" zoo write "$net" "$dir/$net.onnx" 2>"$dir/log"
    "$COTENANT" model show "$dir/$net.onnx" --json >"$dir/$net.json"
    /usr/bin/python3 - "$dir/$net" <<'P'
import json, sys
import onnx
path = sys.argv[1]
model = onnx.load(path + ".onnx")
onnx.checker.check_model(model, full_check=True)
model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
          for v in list(model.graph.value_info) + list(model.graph.output)}
ours = {l["name"]: l["output"] for l in json.load(open(path + ".json"))["layers"]}
seen = 0
for node in model.graph.node:
    if node.name in ours and node.output[0] in shapes:
        assert ours[node.name] == shapes[node.output[0]], (node.name, ours[node.name], shapes[node.output[0]])
        seen += 1
assert seen >= len(ours) // 2, (seen, len(ours))
print(path.split("/")[-1], "accepted,", seen, "shapes agree")
P
done
