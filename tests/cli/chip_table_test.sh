#!/bin/sh
# chip --table: a table of the model's own costs changes nothing, another one does, wrong tables name their line.
. "$SRC/tests/cli/expect.sh"
head=network,layer,unit,cycles,bytes,energy_pj
table() { printf '%s\n' "$@" >"$dir/t.csv"; }

# What the cost model says of mobilenet_v2, as CSV, with columns in another order and one that is not read.
for u in simba eyeriss; do expect 0 chip cost mobilenet_v2 --unit $u --json; cp "$dir/out" "$dir/$u.json"; done
python3 - "$dir" <<'EOF'
import csv, json, sys
rows, names = [["unit", "note", "network", "layer", "energy_pj", "cycles", "bytes"]], [[]]
for unit in "simba", "eyeriss":
    for i, l in enumerate(json.load(open(f"{sys.argv[1]}/{unit}.json"))["layers"]):
        costs = ["", "-", ""] if l["cycles"] is None else \
            [l["energy_pj"], l["cycles"], l["dram_read_bytes"] + l["dram_write_bytes"]]
        rows.append([unit, "x", "MobileNet-v2", l["name"], *costs])
for name, scale, layer in ("same", 1, None), ("half", 0.5, None), ("numbers", 1, "#"):
    with open(f"{sys.argv[1]}/{name}.csv", "w") as f:
        for i, row in enumerate(rows):
            if i and scale != 1 and row[5] != "-":
                row = row[:5] + [row[5] * scale] + row[6:]
            if i and layer:
                row = row[:3] + [f"#{(i - 1) % 53}"] + row[4:]
            csv.writer(f).writerow(row)
EOF
run="chip simulate --mix mobilenet_v2 --load 0.9 --requests 200 --seed 3"
expect 0 $run --json; cp "$dir/out" "$dir/model.json"
for t in same numbers; do
    expect 0 $run --json --table "$dir/$t.csv"
    cmp "$dir/out" "$dir/model.json" || fail "a table of the model's costs ($t) gives another run"
done
expect 0 $run --json --table "$dir/half.csv"
python3 -c "
import json,sys
a, b = (json.load(open(x))['tenants'][0]['best_ms'] for x in sys.argv[1:])
sys.exit(not abs(2 * b / a - 1) < 1e-6)" "$dir/model.json" "$dir/out" || fail "half the cycles are not half the time"
expect 0 chip compare --mix mobilenet_v2 --load 0.9 --policies fcfs,edf --traces 2 --requests 40 --table "$dir/same.csv" --json
cp "$dir/out" "$dir/table.json"
expect 0 chip compare --mix mobilenet_v2 --load 0.9 --policies fcfs,edf --traces 2 --requests 40 --json
cmp "$dir/out" "$dir/table.json" || fail "a table of the model's costs gives another comparison"
expect 0 chip cost mobilenet_v2 --table "$dir/same.csv"; cp "$dir/out" "$dir/table.txt"
expect 0 chip cost mobilenet_v2; cmp "$dir/out" "$dir/table.txt" || fail "chip cost --table differs from the same costs"
expect 0 chip cost mobilenet_v2 --unit simba --table "$dir/half.csv" --json
python3 - "$dir/simba.json" "$dir/out" <<'EOF' || fail "half the cycles are not half"
import json, sys
a, b = (json.load(open(x))["total"] for x in sys.argv[1:])
assert b["cycles"] * 2 == a["cycles"] and b["energy_pj"] == a["energy_pj"]
assert b["dram_read_bytes"] + b["dram_write_bytes"] == a["dram_read_bytes"] + a["dram_write_bytes"]
EOF

# Missing rows: an error, unless the model is asked for.
grep -v '/features/3/' "$dir/same.csv" >"$dir/t.csv"
expect 3 $run --table "$dir/t.csv"; says "no row for layer '/features/3/"; says "table-fill"; quiet
expect 0 $run --table "$dir/t.csv" --table-fill --json
cmp "$dir/out" "$dir/model.json" || fail "missing rows are not the model's"
expect 3 chip simulate --mix resnet50 --table "$dir/same.csv"; says "of resnet50 on simba"; quiet

# Errors with file, line and a suggestion.
cost="chip cost mobilenet_v2 --unit simba --table $dir/t.csv --table-fill"
wrong() { expect 1 $cost; says "t.csv:$1"; says "$2"; quiet; }
expect 1 chip cost mobilenet_v2 --table "$dir/absent.csv"; says "absent.csv"; quiet
table network,layer,unit,cycle,bytes,energy_pj; wrong 1 "did you mean cycle?"
table $head; wrong "" "a header and no costs"
table $head mobilenet_v2,/features/0/0,simbaa,1,2,3; wrong 2 "did you mean simba?"
table $head mobilenet_v3,/features/0/0,simba,1,2,3; wrong 2 "did you mean mobilenet_v"
table $head mobilenet_v2,/features/0/0,simba,1,2,3 mobilenet_v2,/feature/0/0,simba,1,2,3; wrong 3 "did you mean /features/0/0?"
table $head mobilenet_v2,/features/0/0,simba,1,2,3 mobilenet_v2,/features/0/0,simba,1,2,3; wrong 3 "has a row already, line 2"
table $head mobilenet_v2,/features/0/0,simba,0,2,3; wrong 2 "cycles '0'"
table $head mobilenet_v2,/features/0/0,simba,1,nan,3; wrong 2 "bytes 'nan'"
table $head mobilenet_v2,/features/0/0,simba,1,2; wrong 2 "no energy_pj"
table $head ,/features/0/0,simba,1,2,3; wrong 2 "network is empty"
table $head 'mobilenet_v2,"/features/0/0,simba,1,2,3'; wrong 2 "not closed"
# Rows of other shipped networks and units are left alone.
table $head resnet50,nothing,simba,1,2,3 mobilenet_v2,nothing,shidiannao,1,2,3 mobilenet_v2,/features/0/0,simba,7777,2,3
expect 0 $cost; prints "7.8"; prints "table"
