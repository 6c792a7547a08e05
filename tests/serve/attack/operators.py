"""Operators whose sizes, axes, indices and values a client draws, against a live server: REST binary, REST JSON, gRPC.

usage: operators.py [--seed S] [--requests N] [--only MODEL]
Each request has a number from which it is made anew: `operators.py --seed S --only-request K` sends that one alone.
No request may end the server, give a status other than 200, 4xx, 503 or 504, put a model into quarantine or take more
memory than the budget; of those that succeed, a sample is compared with `cotenant run`.
"""
import argparse
import base64
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

import graphs
import h2
from client import Connection, Gone, f32, grpc_request, http_request, i64, outputs_of, scalar, strings
from harness import COTENANT, SANE, Failed, Server, check
from tenants import BUFFERED_MB, REQUEST_MB, Memory, answered, takes

LONG = bool(os.environ.get("COTENANT_LONG"))
COMPARED_BYTES = 8 << 20  # a larger answer of short texts is many times as large in this process
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 100, 1000, 65536, 10**6, 10**8, 2 * 10**9, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**40,
         2**61, 2**62, 2**63 - 1, -1, -2, -3, -9, -2**31, -2**31 - 1, -2**62, -2**63, -2**63 + 1)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1e-3, 1e-30, 1e-45, 100.0, 1e4, 1e9, 1e30, 3.4e38, -1e30, np.nan, np.inf, -np.inf, 255.5,
         2147483648.0, 9.3e18)
TEXTS = (b"", b"a", b"1", b"-1.5", b"1e400", b"nan", b"0x10", b" 7 ", "été".encode(), b"a b  c", b"x" * 300, b"\xff\xfe", b"9" * 40, b"inf", b"\0")
ROUTES = ("binary", "json", "grpc")
SLACK = 256 << 20
TIMEOUT_MS = 2000 if SANE else 400     # of a request: work without end is stopped then
MOST_S = 30 if SANE else 5             # until the response: far beyond, as other programs share the machine
KINDS = {1: "float32", 11: "float64", 7: "int64", 6: "int32", 9: "bool", 8: "object", 2: "uint8", 13: "uint64", 10: "float16"}


class Input:
    def __init__(self, info):
        t = info.type.tensor_type
        self.name, self.kind = info.name, KINDS[t.elem_type]
        self.dims = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in t.shape.dim] if t.HasField("shape") else None


class Graph:
    def __init__(self, name):
        self.name = name
        graph = onnx.load_from_string(graphs.GRAPHS[name]).graph
        self.inputs = [Input(i) for i in graph.input]
        self.operators = {n.op_type for n in graph.node}


def dimension(r):
    """Mostly small; sometimes nothing, sometimes what fills a body."""
    pick = r.random()
    return int(r.integers(1, 5)) if pick < 0.8 else 0 if pick < 0.86 else int(r.integers(5, 40)) if pick < 0.97 else int(r.integers(40, 3000))


def shape_of(r, one, bound):
    """The shape of an input: equal names have equal sizes most of the time."""
    if one.dims is None:
        return [dimension(r) for _ in range(r.integers(0, 4))]
    out = []
    for d in one.dims:
        if isinstance(d, int) and d > 0:
            out.append(d)
            continue
        if d not in bound or r.random() < 0.03:
            bound[d] = dimension(r)
        out.append(bound[d])
    while np.prod(out, dtype=float) > 50_000 and max(out) > 1:
        out[int(np.argmax(out))] = 1
    return out


def values(r, kind, shape):
    """Small values half of the time, so that much succeeds; then any."""
    n, mild = int(np.prod(shape)), r.random() < 0.55
    if kind == "object":
        flat = [TEXTS[i] for i in r.integers(0, len(TEXTS), n)]
        out = np.empty(n, object)
        out[:] = flat
        return out.reshape(shape)
    if kind == "bool":
        return (r.random(shape) < 0.7) if shape else np.array(r.random() < 0.7)
    if np.dtype(kind).kind == "f":
        flat = r.integers(0, 9, n) / 2 if mild else np.array(REALS)[r.integers(0, len(REALS), n)]
        with np.errstate(over="ignore"):
            return flat.astype(kind).reshape(shape)
    if mild or n > 64:
        flat = r.integers(0 if r.random() < 0.7 else -3, 5, n)
        return np.clip(flat, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind).reshape(shape)
    flat = [SIZES[i] for i in r.integers(0, len(SIZES), n)]
    if r.random() < 0.6 and n > 1:  # one large among small ones
        flat = [int(v) for v in r.integers(0, 4, n)]
        flat[int(r.integers(0, n))] = SIZES[int(r.integers(0, len(SIZES)))]
    info = np.iinfo(kind)
    return np.array([min(max(v, info.min), info.max) for v in flat], kind).reshape(shape)


SQUARE, IMAGE, YES = np.arange(4, dtype=np.float32).reshape(2, 2), np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.array(True)
ZERO = scalar(0, np.float32)
VALID = {  # requests that succeed, of models that drawn inputs seldom fit: bent in one place
    "affine_grid": {"t": np.ones((1, 2, 3), np.float32), "s": i64(1, 1, 3, 3)}, "cast_str_f": {"x": strings("1", "2.5")},
    "center_crop_pad": {"x": SQUARE, "s": i64(3, 1)},
    "col2im": {"x": np.ones((1, 4, 4), np.float32), "image": i64(3, 3), "block": i64(2, 2)},
    "compress": {"x": SQUARE, "c": np.array([True, False])}, "cum_sum": {"x": SQUARE, "a": scalar(1)}, "det": {"x": SQUARE},
    "dft": {"x": np.ones((1, 8, 1), np.float32), "n_dft": scalar(8)}, "expand": {"x": f32(1), "s": i64(2, 3)},
    "expand_str": {"x": strings("a"), "s": i64(2, 2)}, "gather": {"x": SQUARE, "i": i64(1, 0)},
    "gather_elements": {"x": SQUARE, "i": np.array([[0, 1], [1, 0]])}, "gather_nd": {"x": SQUARE, "i": np.array([[0, 1], [1, 0]])},
    "gather_str": {"x": strings("a", "b"), "i": i64(1, 0)},
    "grid_sample": {"x": IMAGE, "g": np.zeros((1, 2, 2, 2), np.float32)}, "hann": {"n": scalar(8)},
    "lstm_lens": {"x": np.ones((3, 2, 2), np.float32), "l": np.array([3, 1], np.int32)},
    "loop_sequence": {"m": scalar(3), "go": YES, "v": f32(1, 2)},
    "max_unpool": {"x": SQUARE.reshape(1, 1, 2, 2), "i": np.array([0, 2, 8, 10]).reshape(1, 1, 2, 2), "s": i64(1, 1, 4, 4)},
    "mel": {"bins": scalar(4), "dft": scalar(16), "rate": scalar(8000), "low": ZERO, "high": scalar(4000, np.float32)},
    "nms": {"boxes": np.arange(12, dtype=np.float32).reshape(1, 3, 4), "scores": np.ones((1, 1, 3), np.float32), "most": i64(2),
            "iou": f32(0.5), "least": f32(0)},
    "one_hot": {"i": i64(0, 1), "depth": scalar(3), "v": f32(0, 1)}, "pad": {"x": f32(1, 2), "p": i64(1, 1), "v": ZERO},
    "pad_edge": {"x": SQUARE, "p": i64(1, 1, 1, 1)}, "pad_reflect": {"x": f32(1, 2, 3), "p": i64(1, 2)},
    "range_expand": {"a": scalar(0), "b": scalar(3), "d": scalar(1), "s": i64(2, 3)},
    "reduce_max": {"x": SQUARE, "a": i64(1)}, "reduce_sum": {"x": SQUARE, "a": i64(0)}, "reshape": {"x": SQUARE.ravel(), "s": i64(2, -1)},
    "reshape_zero": {"x": SQUARE.ravel(), "s": i64(1, 4)}, "reverse_sequence": {"x": SQUARE, "l": i64(1, 2)},
    "roi_align": {"x": IMAGE, "rois": np.array([[0, 0, 2, 2]], np.float32), "b": i64(0)},
    "scatter_elements": {"x": SQUARE, "i": np.array([[0, 1]]), "u": np.array([[5, 6]], np.float32)},
    "scatter_nd": {"x": SQUARE, "i": np.array([[0, 1]]), "u": f32(7)}, "seq_at": {"x": f32(1, 2, 3), "s": i64(1, 2), "p": scalar(1)},
    "slice": {"x": SQUARE, "a": i64(0), "b": i64(1), "axes": i64(0), "d": i64(1)}, "split": {"x": f32(1, 2, 3), "s": i64(1, 2)},
    "split_every": {"x": f32(1, 2, 3), "s": scalar(2)}, "squeeze": {"x": np.ones((2, 1, 1), np.float32), "a": i64(1)},
    "stft": {"x": np.ones((1, 32, 1), np.float32), "step": scalar(4), "w": np.ones(8, np.float32), "len": scalar(8)},
    "unsqueeze": {"x": f32(1, 2), "a": i64(0, 2)}, "upsample": {"x": IMAGE, "s": f32(1, 1, 2, 2)},
    "where": {"c": np.array([[True, False]]), "x": SQUARE, "z": SQUARE},
    **{"resize_" + mode: {"x": IMAGE, "s": f32(1, 1, 1.5, 2)} for mode in ("nearest", "linear", "cubic")},
    "resize_sizes": {"x": IMAGE, "s": i64(1, 1, 3, 5)},
}


def bend(inputs, r):
    """Some elements of one input become others, or the input gets another shape; sometimes all stays."""
    out = {k: v.copy() for k, v in inputs.items()}
    name = list(out)[int(r.integers(0, len(out)))]
    old, pick = out[name], r.random()
    if pick < 0.2 or old.size == 0:
        return out
    if pick < 0.75:
        at = tuple(int(r.integers(0, d)) for d in old.shape)
        old[at] = values(r, old.dtype.name, [1])[0]
        return out
    shape = list(old.shape)
    if shape:
        shape[int(r.integers(0, len(shape)))] = dimension(r)
    out[name] = values(r, old.dtype.name, shape)
    return out


def draw(graph, r):
    if graph.name in VALID and r.random() < 0.6:
        return bend(VALID[graph.name], r)
    bound = {}
    return {i.name: values(r, i.kind, shape_of(r, i, bound)) for i in graph.inputs}


def send(server, connection, route, model, inputs):
    """(status as HTTP has it, text or outputs)"""
    if route == "grpc":
        with h2.H2(server) as c:
            got = c.answer(c.call("ModelInfer", grpc_request(model, inputs), extra=(("grpc-timeout", f"{TIMEOUT_MS}m"),)))
        codes = {0: 200, 3: 400, 4: 504, 5: 404, 8: 413, 13: 500, 14: 503, 1: 499, 2: 500, 11: 400, 9: 400, None: 0}
        return codes.get(got["grpc"], 500), b""
    answer = connection.ask(http_request(model, inputs, binary=route == "binary", outputs=route == "binary",
                                         headers=(f"x-request-timeout-ms: {TIMEOUT_MS}",)), keep=1 << 30)
    return answer[0], answer


def told(graph, inputs, route, seed, number):
    """What is needed to send it again."""
    saved = {k: {"shape": v.shape, "datatype": v.dtype.name,
                 "data": [x.decode("latin-1") for x in v.ravel()] if v.dtype == object else base64.b64encode(v.tobytes()).decode()}
             for k, v in inputs.items()}
    text = json.dumps(saved)
    print(f"     operators.py --seed {seed} --only-request {number}: {graph.name} by {route}")
    print(f"     inputs: {text if len(text) < 4000 else text[:4000] + '...'}")
    model = base64.b64encode(graphs.GRAPHS[graph.name]).decode()
    print(f"     model: {model if len(model) < 4000 else 'graphs.py writes it'}", flush=True)


def reference(folder, graph, inputs):
    """{output: array} by `cotenant run`; None where that fails."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    command = [COTENANT, "run", os.path.join(folder, graph.name, "1", "model.onnx"), "--output", out, "--max-mb", "1000"]
    for name, array in inputs.items():
        path = os.path.join(out, name + ".pb")
        with open(path, "wb") as f:
            f.write(numpy_helper.from_array(array, name).SerializeToString())
        command += ["--input", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return None
    files = {f[:-4]: os.path.join(out, f) for f in os.listdir(out) if f.endswith(".npy")}
    return {k: np.load(v, allow_pickle=False) for k, v in files.items()}


def equal(got, want):
    if got.dtype == object:  # a .npy file keeps neither zeros at the end nor what is no UTF-8
        text = [g.decode("utf-8", "replace").rstrip("\0") for g in got.ravel()]
        return got.shape == want.shape and text == [str(w).rstrip("\0") for w in want.ravel()]
    return got.shape == want.shape and got.dtype == want.dtype and np.array_equal(
        got, want, equal_nan=got.dtype.kind == "f") or (got.shape == want.shape and got.dtype.kind == "f" and np.allclose(
            got, want, rtol=1e-5, atol=1e-6, equal_nan=True))


def comparable(graph, inputs):
    """Random numbers differ, and the server's workers take denormal numbers for zero."""
    tiny = any(v.dtype.kind == "f" and ((v != 0) & (np.abs(v) < np.finfo(v.dtype).tiny)).any() for v in inputs.values())
    return graph.name != "multinomial" and not tiny


class Run:
    """N drawn requests against one server."""

    def __init__(self, o):
        self.o, self.folder = o, tempfile.mkdtemp(prefix="cotenant-operators-")
        self.graphs = [Graph(n) for n in sorted(graphs.GRAPHS) if not o.only or n == o.only]
        operators = set().union(*(g.operators for g in self.graphs))
        check(o.only or len(operators) >= 40, f"only {len(operators)} operators")
        self.seen = collections.defaultdict(collections.Counter)
        self.failed, self.compared, self.operators, self.most = [], 0, operators, 0
        graphs.write(self.folder, [g.name for g in self.graphs])
        self.start()

    def start(self):
        flags = ["--buffered-mb", str(BUFFERED_MB), "--log-level", "error", "--watchdog-ms", "20000" if SANE else "5000"]
        flags += ["--set", f"request_mb={REQUEST_MB}"] if takes(f"request_mb={REQUEST_MB}") else []
        self.server = Server(self.folder, "zoo:lstm_kws", flags=flags, env={"COTENANT_STORE": os.path.join(self.folder, "store")})
        self.idle, self.connection = self.server.rss(), Connection(self.server, timeout=MOST_S)
        self.memory = Memory(self.server)
        self.memory.start()

    def renew(self):
        """A server that ended or hangs makes room for a new one, so that its next failure is another one's."""
        self.most = max(self.most, self.memory.end())
        self.server.leave()
        self.start()

    def one(self, number):
        r = np.random.default_rng([self.o.seed, number])
        graph = self.graphs[number % len(self.graphs)]
        route, inputs = ROUTES[int(r.integers(0, 3))], draw(graph, r)
        begin = time.monotonic()
        try:
            status, answer = send(self.server, self.connection, route, graph.name, inputs)
        except (Gone, OSError) as e:
            status, answer = 0, repr(e)
            self.connection.close()
        took = time.monotonic() - begin
        self.seen[graph.name][status] += 1
        why = self.wrong(status, answer, took)
        small = status == 200 and route == "binary" and len(answer[2]) <= COMPARED_BYTES
        if why is None and small and r.random() < self.o.compare and comparable(graph, inputs):
            why = self.compare(graph, inputs, answer)
        if why is not None:
            self.failed.append(f"{graph.name}: {why}")
            print(f"FAIL {graph.name}: {why}", flush=True)
            told(graph, inputs, route, self.o.seed, number)
        if not self.server.alive() or took > MOST_S or status == 0:
            self.renew()

    def wrong(self, status, answer, took):
        if not self.server.alive():
            return f"the server ended with {self.server.process.returncode}: {self.server.said()[-3000:]}"
        if SANE and ("ERROR: " in self.server.said() or "runtime error" in self.server.said()):
            return "sanitizer: " + self.server.said()[-3000:]
        text = answer[2][:300] if isinstance(answer, tuple) else answer
        if b"quarantine" in (text if isinstance(text, bytes) else b""):
            return f"in quarantine: {text}"
        if status not in (200, 400, 413, 422, 499, 503, 504):
            return f"{status} {text}"
        if took > MOST_S:
            return f"{status} after {took:.1f} s"
        return None

    def compare(self, graph, inputs, answer):
        want = reference(self.folder, graph, inputs)
        if want is None:
            return "served, but `cotenant run` fails"
        self.compared += 1
        got = outputs_of(answer)
        if set(got) != set(want):
            return f"outputs {sorted(got)}, not {sorted(want)}"
        bad = [k for k in got if not equal(got[k], want[k])]
        return f"output {bad} differs from `cotenant run`: {got[bad[0]].ravel()[:8]}, not {want[bad[0]].ravel()[:8]}" if bad else None

    def play(self):
        numbers = [self.o.only_request] if self.o.only_request is not None else range(self.o.requests)
        for k in numbers:
            self.one(k)
            if len(self.failed) > 20:
                break
        self.most = max(self.most, self.memory.end())
        bound = self.idle + (BUFFERED_MB << 20) + SLACK
        if not SANE and self.most > bound:
            self.failed.append(f"memory {self.idle >> 20} -> {self.most >> 20} MiB, bound {bound >> 20}")
        status = answered(self.server, ("lstm_kws", {"mfcc": np.zeros((1, 49, 10), np.float32)}))[0]
        if status != 200:
            self.failed.append(f"lstm_kws afterwards: {status}")

    def finish(self):
        try:
            self.server.stop()
        except Failed as e:
            self.failed.append(str(e))
        said = self.server.said()
        if SANE and ("ERROR: " in said or "runtime error" in said):
            self.failed.append("sanitizer: " + said[-3000:])
        shutil.rmtree(self.folder, ignore_errors=True)

    def report(self):
        print(f"{'model':20} {'200':>5} {'4xx':>5} {'503':>5} {'504':>5} {'other':>6}")
        for name, seen in sorted(self.seen.items()):
            groups = collections.Counter(s if s in (200, 503, 504) else "4xx" if 400 <= s < 500 else "other" for s in seen.elements())
            print(f"{name:20} " + " ".join(f"{groups[k]:5}" for k in (200, "4xx", 503, 504)) + f" {groups['other']:6}")
        total = collections.Counter()
        for seen in self.seen.values():
            total.update(seen)
        print(f"seed {self.o.seed}, {len(self.operators)} operators, {sum(total.values())} requests: {dict(total)}; "
              f"{self.compared} compared with `cotenant run`; memory {self.idle >> 20} -> {self.most >> 20} MiB")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=int(os.environ.get("COTENANT_SEED", "1")))
    p.add_argument("--requests", type=int, default=40_000 if LONG else 1_500 if SANE else 3_000)
    p.add_argument("--only", default="")
    p.add_argument("--only-request", type=int)
    p.add_argument("--compare", type=float, default=0.1)
    o = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    run = Run(o)
    run.play()
    run.finish()
    run.report()
    for f in run.failed:
        print("FAIL " + f.split("\n", maxsplit=1)[0])
    sys.exit(1 if run.failed else 0)


if __name__ == "__main__":
    main()
