#!/bin/sh
# The ONNX conformance suite: no failure, no missing case, unsupported cases are named.
set -eu
json=$("$COTENANT" conformance --json 2>/dev/null)
echo "$json" | /usr/bin/python3 -c '
import json, sys
suites = {s["name"]: s for s in json.load(sys.stdin)["suites"]}
least = {"node": 920, "simple": 21, "pytorch-operator": 35, "pytorch-converted": 82}
size = {"node": 932, "simple": 23, "pytorch-operator": 35, "pytorch-converted": 82}
for name, s in suites.items():
    print(name, s["passed"], "passed", s["refused"], "refused", s["failed"], "failed", s["failures"])
assert set(suites) == set(least)
for name, s in suites.items():
    assert s["failed"] == 0, s["failures"]
    assert s["passed"] >= least[name], (name, s["passed"])
    assert s["passed"] + s["refused"] == size[name], name
'
