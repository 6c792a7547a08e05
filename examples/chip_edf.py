#!/usr/bin/env python3
"""The policy edf outside of cotenant: the decisions of src/policy/chip/edf.c, through `cotenant chip env`.

usage: chip_edf.py [--bench] [OPTION OF cotenant chip env]...   e.g. chip_edf.py --mix light --seed 7 --records run.jsonl
"""
import array, json, os, subprocess, sys, time

SAFETY, PATIENCE, NONE = 3.8, 8.0, (float("inf"), float("inf"), -1, 0)  # NONE: end, ns, unit, wait
cell = array.array("f", [0])


def single(x):  # rounded to a float of 32 bits, in which edf computes
    cell[0] = x
    return cell[0]


def hopeless(now, tenant, task):
    rest, most = tenant["rest_ns"], 0.9 * float(task[4] - task[3]) / tenant["rest_ns"][0]
    return float(task[4] - now) - (SAFETY if SAFETY < most else max(most, 1.0)) * rest[task[5]] < 0


def first_to_end(at, kinds, ns):  # (unit, wait) where the layer ends first; a busy unit only if that is worth waiting
    free = busy = NONE
    for units, c in zip(kinds, ns):
        unit = min(units, key=at.__getitem__)
        wait, end = at[unit], NONE[0] if c is None else single(at[unit] + c)
        if wait > 0 and end < busy[0]:
            busy = (end, c, unit, wait)
        elif wait == 0 and end < free[0]:
            free = (end, c, unit, wait)
    return busy if free[2] < 0 or busy[0] < single(PATIENCE * free[1]) else free


def decide(hello, kinds, seen):
    now, tasks, tenants = seen["now"], seen["tasks"], hello["tenants"]
    late = {i for i in seen["waiting"] if hopeless(now, tenants[tasks[i][1]], tasks[i])}
    actions, n_free = [["drop", i] for i in seen["waiting"] if i in late], len(seen["free"])
    if n_free == 0:
        return actions
    at = [0.0 if u[0] < 0 else single(max(u[1] - now, 1)) for u in seen["units"]]  # time until the unit is free
    for i in sorted((i for i in seen["waiting"] if i not in late), key=lambda i: tasks[i][4]):
        _, ns, unit, wait = first_to_end(at, kinds, tenants[tasks[i][1]]["ns"][tasks[i][5]])
        actions += [["start", i, unit]] if wait == 0 else []
        n_free -= wait == 0
        at[unit] = single(at[unit] + max(ns, 1.0))  # busy to the tasks after it, also if it has to wait
        if n_free == 0:
            break
    return actions


bench, options = "--bench" in sys.argv, [x for x in sys.argv[1:] if x != "--bench"]
env = subprocess.Popen([os.environ.get("COTENANT", "cotenant"), "chip", "env", *options], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE)
hello, message, start = json.loads(env.stdout.readline()), {"reset": {}}, time.perf_counter()
by_kind = [[u for u, k in enumerate(hello["kind_of"]) if k == kind] for kind in range(len(hello["kinds"]))]
seen = {"type": "observation"}
while seen["type"] == "observation":
    env.stdin.write(json.dumps(message).encode() + b"\n")
    env.stdin.flush()
    seen = json.loads(env.stdout.readline())
    if seen["type"] == "observation":
        message = {"actions": decide(hello, by_kind, seen)}
print(json.dumps(seen["summary"] if seen["type"] == "done" else seen))
if bench:
    print(f"{seen['decisions'] / (time.perf_counter() - start):.0f} decisions/s, {seen['decisions']} decisions")
env.stdin.close()
sys.exit(env.wait() or seen["type"] != "done")
