"""Open shapes: latency and memory of an encoder whose sequence length is open, and of a fully convolutional network.

usage: open_shapes.py [--requests N] [--lengths N] [--layers N] PROGRAM...
Each PROGRAM (`cotenant`) serves the same files to one client over a socket. The client sends one length again and again,
then random lengths, in the order of a seed: each for the first time, then again. `make bench-open-shapes` calls it.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from write_model import convolutional, encoder

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/serve/attack"))
import harness  # noqa: E402
from client import Connection, http_request  # noqa: E402

SEED = 7


def tokens(length):
    return {"ids": np.arange(length, dtype=np.int64).reshape(1, -1) % 1000, "mask": np.ones((1, length), np.int64)}


def image(side):
    return {"image": np.ones((1, 3, side, side + 8), np.float32)}


def ask(connection, model, inputs):
    """Milliseconds from the first byte sent to the last one received."""
    data = http_request(model, inputs)
    began = time.perf_counter()
    status, _, body = connection.ask(data, keep=300)
    ms = (time.perf_counter() - began) * 1e3
    harness.check(status == 200, f"{model} answers {status}: {body[:300]!r}")
    return ms


def measure(server, model, make, sizes, usual, requests):
    with Connection(server, timeout=120) as c:
        ask(c, model, make(usual))
        one = [ask(c, model, make(usual)) for _ in range(requests)]
        time.sleep(0.5)
        before = server.rss()
        first = {n: ask(c, model, make(n)) for n in sizes}
        again = {n: min(ask(c, model, make(n)) for _ in range(3)) for n in sizes}
        drawn = random.Random(SEED).choices(sizes, k=requests)
        known = [ask(c, model, make(n)) for n in drawn]
        grown = (server.rss() - before) / 2**20
    p50 = statistics.median
    ratios = sorted(first[n] / again[n] for n in sizes if n != usual)
    print(f"  {model:14} {p50(one):9.2f} {p50(first.values()):10.2f} {p50(known):10.2f} {p50(known) / p50(one):8.2f} "
          f"{p50(ratios):11.2f} {ratios[len(ratios) * 9 // 10]:11.2f} {grown:9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--lengths", type=int, default=128)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--programs", default="", help="build folder with bench_open_shapes")
    parser.add_argument("served", nargs="+")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, n) for n in ("encoder.onnx", "image.onnx")]
        encoder(files[0], o.layers)
        convolutional(files[1])
        lengths, sides = list(range(1, o.lengths + 1)), list(range(32, 160, 4))
        random.Random(SEED).shuffle(lengths)
        random.Random(SEED).shuffle(sides)
        print(f"served to one client; {len(lengths)} lengths, {len(sides)} image sizes; milliseconds")
        print("                  one size   new sizes  any known  any/one   new/known         p90  grew [MB]")
        for program in o.served:
            harness.COTENANT = program
            print(program)
            with harness.Server(*files, wait=300) as s:
                measure(s, "encoder", tokens, lengths, 64, o.requests)
                measure(s, "image", image, sides, 96, o.requests)
        if o.programs:
            print("compiled and run on one thread")
            sys.stdout.flush()
            subprocess.run([os.path.join(o.programs, "bench_open_shapes"), files[0], str(o.lengths)], check=True)


if __name__ == "__main__":
    main()
