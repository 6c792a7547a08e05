"""Tiny models: requests answered per second by default against hand-set numbers of cores, alone and beside CPU hogs.

usage: tiny_models.py [--rounds N] [--seconds S] [--hogs N...] [--least SHARE], with the program in COTENANT, as `make bench-tiny` calls it.
A network of 16-64-4 is asked in a closed loop of 8. All servers run; trials of the settings alternate. A figure is the
median of the rounds, the share is the default's over the best hand-set one's. Exits with 6 when a share is below --least.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

from write_model import mlp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/serve/attack"))
from harness import COTENANT, Failed, Server, check  # noqa: E402

SETTINGS = {"default": [], "max_cores=1": ["mlp.max_cores=1"], "max_cores=2": ["mlp.max_cores=2", "mlp.min_cores=2"]}


def rate(server, seconds):
    done = subprocess.run([COTENANT, "bench", f"http://127.0.0.1:{server.ports['http']}", "--models", "mlp", "--closed", "8", "--warmup",
                           "0.3s", "--duration", f"{seconds}s", "--json"], capture_output=True, text=True, timeout=20 * seconds + 60)
    check(done.returncode == 0, f"bench ended with {done.returncode}: {done.stderr[-500:]}")
    told = json.loads(done.stdout)
    return told["all"]["ok"] / told["seconds"]


@contextlib.contextmanager
def hogs(n):
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for p in running:
            p.kill()
            p.wait()


def trials(servers, o):
    """{setting: [answers per second, by round]}"""
    got = {name: [] for name in servers}
    for i in range(o.rounds):
        for name in list(servers)[::1 if i % 2 == 0 else -1]:
            got[name].append(rate(servers[name], o.seconds))
    return got


def compare(model, on_miss, o):
    """Rows of one setting of on_miss; the least share."""
    least = float("inf")
    with contextlib.ExitStack() as stack:
        servers = {}
        for name, settings in SETTINGS.items():
            flags = [f for s in [*settings, f"mlp.on_miss={on_miss}"] for f in ("--set", s)]
            servers[name] = stack.enter_context(Server("mlp=" + model, flags=flags))
        for n in o.hogs:
            with hogs(n):
                got = trials(servers, o)
            default, *by_hand = rates = [statistics.median(v) for v in got.values()]
            share = default / max(by_hand)
            least = min(least, share)
            print(f"{on_miss:12} {n:5} " + " ".join(f"{r:12.0f}" for r in rates) + f" {share:7.2f}", flush=True)
    return least


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=1.5)
    p.add_argument("--least", type=float, default=0)
    p.add_argument("--hogs", type=int, nargs="*", default=[0, os.cpu_count()])
    o = p.parse_args()
    print(f"{'on_miss':12} {'hogs':>5} " + " ".join(f"{name:>12}" for name in SETTINGS) + f" {'share':>7}   answers per second")
    with tempfile.TemporaryDirectory(prefix="cotenant-tiny-") as folder:
        model = os.path.join(folder, "mlp.onnx")
        mlp(model)
        least = min(compare(model, on_miss, o) for on_miss in ("serve_late", "reject"))
    sys.exit(6 if least < o.least else 0)


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit(f"tiny_models: {e}")
