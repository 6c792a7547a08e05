#!/bin/sh
# cluster explain: usage, what it says of a job and in JSON, records, and that it says what is so.
. "$SRC/tests/cli/expect.sh"
json() { # FILE EXPRESSION: of the parsed document d, in Python
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$1: not so: $2"
}

expect 0 cluster explain --help; prints "examples:"; prints "usage: cotenant cluster explain"
expect 2 cluster explain; says "give --trace FILE, or --records FILE"; quiet
expect 2 cluster explain --trace philly_small --records x; says "give --trace FILE, or"; quiet
expect 2 cluster explain nobody --trace philly_small; says "no job nobody"; quiet
expect 2 cluster explain 1 2 --trace philly_small; quiet
expect 1 cluster explain 1 --records "$dir/absent.jsonl"; says "absent.jsonl"; quiet
printf '{"run":"node"}\n' >"$dir/node.jsonl"
expect 1 cluster explain 1 --records "$dir/node.jsonl"; says "records of a node"; quiet
printf 'nothing\n' >"$dir/none.jsonl"
expect 1 cluster explain 1 --records "$dir/none.jsonl"; quiet

# The one that waited longest: shares are whole, and the engine agrees.
run="--trace philly_small --nodes 6 --policy fifo"
expect 0 cluster explain $run --json; cp "$dir/out" "$dir/a.json"
json "$dir/a.json" "abs(sum(r['share'] for r in d['reasons']) - 1) < 1e-9"
json "$dir/a.json" "abs(sum(r['s'] for r in d['reasons']) - d['waited_s']) < 1e-6"
json "$dir/a.json" "d['reason'] == d['reasons'][0]['reason'] and d['about']"
json "$dir/a.json" "[e['what'] for e in d['timeline']] == ['came', 'start', 'end']"
json "$dir/a.json" "d['changes'][0]['waited_s'] == d['waited_s']"
expect 0 cluster explain $run; prints "^why it waited: "; prints "^what would help: "
job=$(python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['job'])" "$dir/a.json")
expect 0 cluster simulate $run --jobs-out "$dir/jobs.csv" --records "$dir/run.jsonl"
python3 - "$dir/a.json" "$dir/jobs.csv" <<'END' || fail "explain and simulate disagree"
import csv, json, sys
d, rows = json.load(open(sys.argv[1])), {r["job"]: r for r in csv.DictReader(open(sys.argv[2]))}
r = rows[d["job"]]
assert float(r["start_s"]) == d["start_s"] and float(r["finish_s"]) == d["finish_s"]
assert d["waited_s"] == max(float(x["start_s"]) - float(x["submit_s"]) for x in rows.values())
END

# What a change promises is what a run with it gives.
expect 0 cluster simulate --trace philly_small --nodes 7 --policy fifo --jobs-out "$dir/more.csv"
expect 0 cluster simulate --trace philly_small --nodes 6 --policy srtf --jobs-out "$dir/srtf.csv"
python3 - "$dir/a.json" "$dir/more.csv" "$dir/srtf.csv" <<'END' || fail "a change gives something else"
import csv, json, sys
d = json.load(open(sys.argv[1]))
for path, text in ((sys.argv[2], "1 more server (8 GPUs)"), (sys.argv[3], "policy srtf")):
    row = next(r for r in csv.DictReader(open(path)) if r["job"] == d["job"])
    change = next(c for c in d["changes"] if c["change"] == text)
    assert float(row["start_s"]) - d["submit_s"] == change["start_s"], (text, row, change)
END

# Records are the run again, to the byte; changed ones are refused.
expect 0 cluster explain "$job" --records "$dir/run.jsonl" --json; cmp -s "$dir/out" "$dir/a.json" || fail "records tell another story"
head -n 1 "$dir/run.jsonl" | grep -q '"run":"cluster"' || fail "the head of the records"
python3 -c "import json,sys; [json.loads(l) for l in open(sys.argv[1])]" "$dir/run.jsonl" || fail "records are JSON lines"
sed 's/"kind":"start"/"kind":"begin"/' "$dir/run.jsonl" >"$dir/other.jsonl"
expect 2 cluster explain "$job" --records "$dir/other.jsonl"; says "give another run now"; quiet

# Preemption, and one that did not wait.
expect 0 cluster explain 199 --trace philly_small --nodes 4 --policy srtf --brief --json
json "$dir/out" "any(r['reason'] == 'stopped' for r in d['reasons']) and len(d['changes']) == 1"
expect 0 cluster explain 0 --trace philly_small --nodes 6; prints "it waited 0.0 s"
