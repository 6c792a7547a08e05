"""Overload: requests answered in time at three times the capacity of a server.

usage: overload.py [--seconds S] [--step S] [--models A,B] [--times T] [--target-x X] [--policy P] [--on-miss reject,serve_late]
with the program in COTENANT, as `make bench-overload` calls it. Exits with 6 when goodput falls below --least of its peak.
"""
import argparse
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/serve/attack"))
from harness import COTENANT, Failed, Server, check  # noqa: E402

BOUND = 600 << 20                            # bytes: bodies of requests that wait, buffered_mb at most, and answers
SHARES = (0.5, 0.65, 0.8, 0.9, 1.0, 1.15)   # of what it answers when two or more always wait


class Memory(threading.Thread):
    """Peak and initial memory of a server."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.over = server, threading.Event()
        self.first = self.most = server.rss()

    def run(self):
        while not self.over.wait(0.05):
            self.most = max(self.most, self.server.rss())

    def end(self):
        self.over.set()
        self.join()
        return self.most


def bench(server, o, *arguments, seconds):
    where = f"grpc://127.0.0.1:{server.ports['grpc']}" if o.protocol == "grpc" else f"http://127.0.0.1:{server.ports['http']}"
    command = [COTENANT, "bench", where, "--models", o.models, "--protocol", o.protocol, "--duration", f"{seconds}s", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * seconds + 120)
    check(done.returncode in (0, 6), f"bench ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def goodput(told):
    return told["all"]["met"] / told["seconds"]


def row(name, rate, told, memory=None):
    a, s = told["all"], told["seconds"]
    print(f"  {name:16} {rate:9.1f} {a['sent'] / s:9.1f} {a['ok'] / s:9.1f} {goodput(told):9.1f} {a['rejected'] / s:9.1f} "
          f"{a['expired'] / s:9.1f} {a['failed'] / s:8.1f} {a['p50_ms'] or 0:9.1f} {a['p99_ms'] or 0:9.1f}"
          + (f" {memory / 2**20:9.1f}" if memory else ""), flush=True)


def capacity_of(o):
    """Answers per second, late ones included, with a queue that is never empty."""
    with Server(*[f"zoo:{n}" for n in o.models.split(",")], flags=["--policy", o.policy]) as s:
        told = bench(s, o, "--closed", str(o.closed), seconds=o.step)
        print(f"{o.closed} at once of {o.models}: {told['all']['ok'] / told['seconds']:.1f} answers/s\n", flush=True)
        check(told["all"]["ok"] > 0, "it answers nothing")
        return told["all"]["ok"] / told["seconds"]


def play(o, on_miss, capacity):
    names = o.models.split(",")
    flags = ["--policy", o.policy, "--set", f"on_miss={on_miss}", "--set", f"target_x_isolated={o.target_x}"]
    with Server(*[f"zoo:{n}" for n in names], flags=flags) as s:
        print(f"policy {o.policy}, on_miss {on_miss}, {o.models}, {o.protocol}: requests/s, latency in ms, memory in MiB")
        print(f"  {'':16} {'asked for':>9} {'sent':>9} {'answered':>9} {'in time':>9} {'rejected':>9} {'expired':>9} "
              f"{'failed':>8} {'p50':>9} {'p99':>9} {'rss':>9}")
        peak = 0.0
        for share in SHARES:
            told = bench(s, o, "--rate", f"{share * capacity:.3f}", seconds=o.step)
            row(f"{share:.2f} x", share * capacity, told)
            peak = max(peak, goodput(told))
        memory = Memory(s)
        memory.start()
        told = bench(s, o, "--rate", f"{o.times * capacity:.3f}", "--give-up", "10s", seconds=o.seconds)
        most = memory.end()
        row(f"{o.times:.2f} x", o.times * capacity, told, most)
        check(s.alive(), "the server ended")
        share = goodput(told) / peak if peak > 0 else 0
        print(f"  goodput {goodput(told):.1f}/s of {peak:.1f}/s at its peak: {100 * share:.1f} %; "
              f"memory {memory.first / 2**20:.0f} -> {most / 2**20:.0f} MiB, at most {BOUND / 2**20:.0f} more\n", flush=True)
        return 100 * share >= o.least and most <= memory.first + BOUND


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=60, help="of overload")
    p.add_argument("--step", type=float, default=8, help="of each rate below that")
    p.add_argument("--models", default="squeezenet1_1,mobilenet_v2")
    p.add_argument("--times", type=float, default=3)
    p.add_argument("--closed", type=int, default=4)
    p.add_argument("--policy", default="slack")
    p.add_argument("--protocol", default="rest")
    p.add_argument("--on-miss", default="reject,serve_late")
    p.add_argument("--target-x", type=float, default=5, help="target, times what a model takes alone on one core")
    p.add_argument("--least", type=float, default=90, help="percent of the peak")
    o = p.parse_args()
    capacity = capacity_of(o)
    good = [play(o, way, capacity) for way in o.on_miss.split(",")]
    return 0 if all(good) else 6


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        print(e)
        sys.exit(1)
