#!/bin/sh
# Machine-readable output: JSON documents with the documented keys, valid .npy files.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$COTENANT" zoo list --json >"$dir/zoo.json"
"$COTENANT" model show resnet50 --json >"$dir/show.json"
"$COTENANT" zoo write squeezenet1_1 "$dir/s.onnx" --seed 3 2>"$dir/log"
"$COTENANT" run "$dir/s.onnx" --seed 5 --output "$dir/a" --json >"$dir/run.json"
"$COTENANT" run "$dir/s.onnx" --seed 5 --output "$dir/b" --json >"$dir/again.json"
/usr/bin/python3 - "$dir" <<'P'
import json, struct, sys, ast, filecmp
d = sys.argv[1]
show = json.load(open(d + "/show.json"))
for key in ("name", "op", "inputs", "output", "macs", "weight_bytes", "in_bytes", "out_bytes"):
    assert all(key in layer for layer in show["layers"]), key
assert sum(layer["macs"] for layer in show["layers"]) == show["total"]["macs"] == 4089184256
assert show["total"]["params"] == 25557032
conv = next(l for l in show["layers"] if l["op"] == "Conv")
assert conv["inputs"][0] == [1, 3, 224, 224] and conv["output"] == [1, 64, 112, 112]
assert any(n["name"] == "bert_base" for n in json.load(open(d + "/zoo.json"))["networks"])
out = json.load(open(d + "/run.json"))["outputs"]
assert len(out) == 1 and out[0]["type"] == "float32" and out[0]["shape"] == [1, 1000]
raw = open(out[0]["file"], "rb").read()
assert raw[:6] == b"\x93NUMPY"
size = struct.unpack("<H", raw[8:10])[0]
head = ast.literal_eval(raw[10:10 + size].decode())
assert head["descr"] == "<f4" and head["shape"] == (1, 1000) and not head["fortran_order"]
values = struct.unpack("<1000f", raw[10 + size:])
assert all(v == v and abs(v) < 1e4 for v in values) and max(values) > min(values)
again = json.load(open(d + "/again.json"))["outputs"]
assert filecmp.cmp(out[0]["file"], again[0]["file"], shallow=False), "same seed, other bytes"
P
