#!/bin/sh
# chip cost: table and JSON.
. "$SRC/tests/cli/expect.sh"

expect 0 chip list
prints '^simba  *weight_stationary'
prints '^4+4  *4 simba, 4 eyeriss'
expect 0 chip list --json

expect 0 chip cost resnet50 --unit simba
prints '^/conv1  *Conv  *118.01  *614.7'
prints '^total  *54 layers  *4089.18'
expect 0 chip cost mobilenet_v2 --unit Eyeriss
prints '^/features/1/conv/0/0  *Conv  *3.61  *-'
prints '17 layers that it does not support'
expect 0 chip cost mobilenet_v2
prints '4 simba, 4 eyeriss'
expect 0 chip cost alexnet_2012 --batch 4 --unit eyeriss_chip

expect 0 chip cost mobilenet_v2 --unit eyeriss --json
python3 - "$dir/out" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
rows = d["layers"]
assert len(rows) == 53 and sum(r["macs"] for r in rows) == 300774272
keys = ["name", "op", "macs", "cycles", "dram_read_bytes", "dram_write_bytes", "bytes_per_cycle", "energy_pj", "utilization"]
assert all(k in r for r in rows for k in keys)
can = [r for r in rows if r["cycles"] is not None]
assert len(can) == 36 and d["total"]["cannot_compute"] == 17
assert abs(sum(r["cycles"] for r in can) - d["total"]["cycles"]) < 1
for r in can:
    assert r["cycles"] >= r["macs"] / 168 - 1e-6
    moved = r["dram_read_bytes"] + r["dram_write_bytes"]
    assert abs(r["bytes_per_cycle"] * r["cycles"] - moved) < 1e-6 * moved
P
expect 0 chip cost bert_base --sequence 16 --chip 2+2 --json
expect 0 zoo write squeezenet1_1 "$dir/s.onnx"
expect 0 chip cost "$dir/s.onnx" --unit shidiannao
prints '^total  *26 layers'

expect 2 chip cost resnet50 --unit simbaa
says 'did you mean simba'
expect 2 chip cost resnet50 --chip 5+5
expect 2 chip cost resnet50 --unit simba --chip 4+4
expect 2 chip cost resnet51 --unit simba
expect 2 chip cost
sed 's/^rows:.*/rows: 0/' "$SRC/data/chips/simba.yaml" > "$dir/bad.yaml"
expect 3 chip cost resnet50 --unit "$dir/bad.yaml"
says 'bad.yaml:6: rows'
sed 's/^port:.*/port: 1/' "$SRC/data/chips/simba.yaml" > "$dir/slow.yaml"
sed "s/^units:.*/units: 2 slow.yaml, 1 eyeriss/" "$SRC/data/chips/2+2.yaml" > "$dir/own.yaml"
expect 0 chip cost resnet50 --chip "$dir/own.yaml"
prints '2 slow.yaml, 1 eyeriss'
sed 's/^units:.*/units: 2 simba, 2 slow.yaml/' "$SRC/data/chips/2+2.yaml" > "$dir/own.yaml"
expect 3 chip cost resnet50 --chip "$dir/own.yaml"
says 'own.yaml:4: units: .* twice'
