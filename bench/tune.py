"""Tuning while serving: latency over time of a server that starts with an empty profile store, with and without tuning.

usage: tune.py [--models A,B] [--load SHARE] [--seconds S] [--window S] [--tune-s S]
with the program in COTENANT, as `make bench-tune` calls it. A third server starts with the versions of `compile --tune`: the
figure that the first one is to reach.
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/serve/attack"))
from harness import COTENANT, Failed, Server, check  # noqa: E402


def targets_of(server):
    """Latency targets in ms, as the log says."""
    return {m: float(ms) for m, ms in re.findall(r'msg="model ready" model=(\S+) .*?target_ms=(\S+)', server.said())}


def rates_of(o, server):
    """Requests per second of each model that together take the load, in equal shares: a target is five times the run time."""
    cores = int(re.search(r"msg=starting .*? cores=(\d+)", server.said()).group(1))
    targets = targets_of(server)
    return {m: o.load * cores / len(targets) / (ms / 5e3) for m, ms in targets.items()}


def send(o, server, rates, folder):
    records = os.path.join(folder, "records.csv")
    command = [COTENANT, "bench", f"http://127.0.0.1:{server.ports['http']}", "--models",
               ",".join(f"{m}:{r:.3f}" for m, r in rates.items()), "--rate", f"{sum(rates.values()):.3f}",
               "--duration", f"{o.seconds}s", "--warmup", "0", "--check", "--records", records]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * o.seconds + 120)
    check(done.returncode in (0, 6), f"bench ended with {done.returncode}: {done.stderr[-500:]}")
    with open(records) as f:
        return [(float(r["seconds"]), r["model"], float(r["latency_ms"]), r["end"]) for r in csv.DictReader(f)]


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p / 100 * len(values)))] if values else float("nan")


def tuned_lines(server):
    """Seconds from `ready` to each `model tuned`, with the times that it names."""
    at = dict(re.findall(r"ts=\S+T(\S+)Z level=info msg=(ready) ", server.said()))
    ready = seconds_of(next(iter(at))) if at else 0
    found = re.findall(r'ts=\S+T(\S+)Z level=info msg="model tuned" model=(\S+) .*?before_ms=(\S+) after_ms=(\S+)', server.said())
    return [(model, seconds_of(t) - ready, float(before), float(after)) for t, model, before, after in found]


def seconds_of(clock):
    h, m, s = clock.split(":")
    return int(h) * 3600 + int(m) * 60 + float(s)


def play(o, folder, store, flags, rates):
    with Server(*[f"zoo:{m}" for m in o.models.split(",")], flags=["--store", store, *flags]) as s:
        rates = rates or rates_of(o, s)
        targets = targets_of(s)
        rows = send(o, s, rates, folder)
        url = f"http://127.0.0.1:{s.ports['metrics']}/metrics"
        text = urllib.request.urlopen(url, timeout=10).read().decode()
        handed = sum(int(float(n)) for n in re.findall(r"^cotenant_model_tuned_total\{.*\} (\S+)$", text, re.M))
        return {"rates": rates, "rows": rows, "targets": targets, "tuned": tuned_lines(s), "handed": handed}


def compile_tuned(o, store):
    for m in o.models.split(","):
        done = subprocess.run([COTENANT, "compile", m, "--tune", str(o.tune_s), "--store", store, "--json"], capture_output=True, text=True)
        check(done.returncode == 0, f"compile ended with {done.returncode}: {done.stderr[-500:]}")


def figures(run, model, target, begin, end):
    rows = [r for r in run["rows"] if r[1] == model and begin <= r[0] < end]
    ok = [r[2] for r in rows if r[3] == "ok"]
    met = sum(1 for x in ok if x <= target)
    return f"{percentile(ok, 50):8.1f} {percentile(ok, 99):8.1f} {100 * met / len(rows) if rows else float('nan'):7.1f}"


def table(o, runs):
    names = list(runs)
    for model in o.models.split(","):
        target = runs["background"]["targets"][model]
        print(f"\n{model}: {runs['background']['rates'][model]:.1f} requests/s, target {target:.0f} ms; p50 and p99 in ms, within target in %")
        print(f"  {'seconds':>9}" + "".join(f" | {n:>25}" for n in names))
        print(f"  {'':>9}" + f" | {'p50':>8} {'p99':>8} {'within':>7}" * len(names))
        for begin in range(0, int(o.seconds), int(o.window)):
            print(f"  {begin:4d}-{begin + int(o.window):4d}" + "".join(
                f" | {figures(runs[n], model, target, begin, begin + o.window)}" for n in names))
        print(f"  {'all':>9}" + "".join(f" | {figures(runs[n], model, target, 0, o.seconds)}" for n in names))
        for name, at, before, after in runs["background"]["tuned"]:
            if name == model:
                print(f"  tuned {at:.0f} s after it was ready: {before:.1f} -> {after:.1f} ms alone on one core")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--models", default="mobilenet_v2,resnet50")
    p.add_argument("--load", type=float, default=0.2, help="share of all cores")
    p.add_argument("--seconds", type=float, default=120, help="of load on each server")
    p.add_argument("--window", type=int, default=10, help="seconds of a row")
    p.add_argument("--tune-s", type=int, default=20, help="CPU time of each search")
    o = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="cotenant-tune-") as folder:
        tuned = os.path.join(folder, "tuned")
        compile_tuned(o, tuned)
        runs = {}
        for name, store, flags in (("background", "a", ["--tune", "background", "--tune-s", str(o.tune_s)]),
                                   ("off", "b", ["--tune", "off"]), ("compile --tune", "tuned", ["--tune", "off"])):
            rates = runs["background"]["rates"] if runs else None
            runs[name] = play(o, folder, os.path.join(folder, store), flags, rates)
        table(o, runs)
        print(f"\nmodels whose versions were replaced while serving: {runs['background']['handed']}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        print(e)
        sys.exit(1)
