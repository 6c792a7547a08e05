"""Attacks of one tenant's clients on a server, each in a process of its own with several threads.

ATTACKS has them in the order of classes: sizes from values (1), work without end (2), strings (4), unread responses (5),
decoding and encoding (6), large batches (7), mistakes (8), unfinished requests (9), closed windows (10).
The neighbour suite plays them in classes, the benchmark one by one.
"""
import contextlib
import gzip
import itertools
import json
import os
import socket
import struct
import threading
import time
import types

import numpy as np

import h2
from client import Connection, Gone, f32, grpc_request, http_request, i64, post, scalar, strings
from wire import bomb

YES = np.array(True)
ATTACKS = []
HUGE = (200_000_000, 2_000_000_000, 2**31, 2**40, 2**62, 2**63 - 1)


class Attack:
    """good: (model, inputs) that must be answered afterwards; make: called before the attack, for what run() needs.

    fresh: the neighbour opens a connection for each request. long: not in `make test`.
    """

    def __init__(self, row, name, run, threads, good, make=None, fresh=False, long=False):
        self.row, self.name, self.run, self.threads, self.good, self.make = row, name, run, threads, good, make
        self.fresh, self.long = fresh, long
        ATTACKS.append(self)


class Player:
    """Runs in the attacker's process: the server's ports, the end of the attack, and statuses seen."""

    def __init__(self, server, seconds):
        self.server, self.until, self.seen, self.lock = server, time.monotonic() + seconds, {}, threading.Lock()

    def over(self):
        return time.monotonic() >= self.until

    def note(self, what, text=b""):
        with self.lock:
            one = self.seen.setdefault(str(what), [0, ""])
            one[0] += 1
            if not one[1]:
                one[1] = text[:200].decode(errors="replace")


class Attackers:
    """A process that plays an attack; end() gives {status: [times, the first such text]}."""

    def __init__(self, server, attack, seconds):
        if attack.make:
            attack.make()
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                os.close(read)
                self.child(server, attack, seconds, write)
            os._exit(0)
        os.close(write)
        self.read = read

    @staticmethod
    def child(server, attack, seconds, write):
        os.setsid()  # the attackers are other machines: they do not compete for the server's cores
        os.nice(5)
        player = Player(server, seconds)

        def loop(k):
            while not player.over():
                try:
                    attack.run(player, k)
                except (Gone, OSError) as e:
                    player.note("gone", repr(e).encode())
                    time.sleep(0.02)

        for k in range(attack.threads):
            threading.Thread(target=loop, args=(k,), daemon=True).start()
        parent = os.getppid()
        while not player.over() and os.getppid() == parent:
            time.sleep(0.01)
        with player.lock:
            os.write(write, json.dumps(player.seen).encode()[:60000])

    def end(self):
        data = b""
        while part := os.read(self.read, 65536):
            data += part
        os.close(self.read)
        os.waitpid(self.pid, 0)
        return json.loads(data or b"{}")


def flood(row, name, requests, threads=8, good=None, long=False):
    """Closed loops over requests: (model, inputs), bytes, or functions that make them. Responses are thrown away."""
    made, turn = [], itertools.count()

    def make():
        made[:] = made or [r if isinstance(r, bytes) else r() if callable(r) else http_request(*r) for r in requests]

    def run(player, _):
        with Connection(player.server) as c:
            while not player.over():
                status, _, body = c.ask(made[next(turn) % len(made)], keep=400)
                player.note(status, body)

    Attack(row, name, run, threads, good or next(r for r in GOOD if r[0] == requests[0][0]), make, long=long)


GOOD = [
    ("tile", {"x": f32(1, 2), "r": i64(2)}), ("expand", {"x": f32(1), "s": i64(3)}),
    ("resize_linear", {"x": np.ones((1, 1, 2, 2), np.float32), "s": f32(1, 1, 2, 2)}),
    ("tile_tile", {"x": f32(1), "r": i64(2)}), ("wide_sum", {"x": np.ones((2, 1), np.float32), "z": np.ones((1, 2), np.float32)}),
    ("loop_add", {"m": scalar(3), "go": YES, "v": f32(1)}), ("einsum", {"a": np.ones((2, 2), np.float32), "b": np.ones((2, 2), np.float32)}),
    ("echo_f", {"x": f32(1)}), ("rows", {"x": np.ones((1, 512), np.float32)}), ("reshape", {"x": f32(1, 2), "s": i64(2, 1)}),
    ("concat_str", {"x": strings("a"), "z": strings("b")}),
]
ONE_PIXEL = np.ones((1, 1, 4, 4), np.float32)

flood(1, "tile", [("tile", {"x": f32(1), "r": i64(r)}) for r in HUGE] + [("tile", {"x": f32(1), "r": i64(60_000_000)})])
flood(1, "tile once", [("tile", {"x": f32(1), "r": i64(2_000_000_000)})], threads=1, long=True)
flood(1, "expand, range, constant", [
    ("expand", {"x": f32(1), "s": i64(200_000_000)}), ("expand", {"x": f32(1), "s": i64(2**20, 2**11)}),
    ("expand", {"x": f32(1), "s": i64(2**62, 2)}), ("expand_str", {"x": strings("ab"), "s": i64(100_000_000)}),
    ("constant_of_shape", {"s": i64(2_000_000_000)}), ("constant_of_shape", {"s": i64(2**40)}),
    ("constant_of_shape", {"s": i64(2**32, 2**32)}), ("constant_of_shape", {"s": i64(30000, 30000)}),
    ("range", {"a": scalar(0), "b": scalar(2_000_000_000), "d": scalar(1)}),
    ("range", {"a": scalar(0), "b": scalar(2**62), "d": scalar(1)}),
    ("range", {"a": scalar(-2**63), "b": scalar(2**63 - 1), "d": scalar(1)}),
    ("range_f", {"a": scalar(0, np.float32), "b": scalar(1e30, np.float32), "d": scalar(1, np.float32)}),
    ("range_f", {"a": scalar(0, np.float32), "b": scalar(4e8, np.float32), "d": scalar(1, np.float32)})])
flood(1, "resize, pad, one-hot, windows", [
    ("resize_linear", {"x": ONE_PIXEL, "s": f32(1, 1, 5000, 5000)}), ("resize_nearest", {"x": ONE_PIXEL, "s": f32(1, 1, 5000, 5000)}),
    ("resize_cubic", {"x": ONE_PIXEL, "s": f32(1, 1, 1900, 1900)}), ("resize_sizes", {"x": ONE_PIXEL, "s": i64(1, 1, 2**20, 2**20)}),
    ("resize_sizes", {"x": ONE_PIXEL, "s": i64(1, 1, 7900, 7900)}), ("upsample", {"x": ONE_PIXEL, "s": f32(1, 1, 1e4, 1e4)}),
    ("pad", {"x": f32(1), "p": i64(2_000_000_000, 0), "v": scalar(0, np.float32)}),
    ("pad", {"x": f32(1), "p": i64(2**62, 2**62), "v": scalar(0, np.float32)}),
    ("pad_edge", {"x": np.ones((2, 2), np.float32), "p": i64(20000, 10000, 20000, 10000)}),
    ("one_hot", {"i": i64(1), "depth": scalar(2_000_000_000), "v": f32(0, 1)}),
    ("one_hot", {"i": i64(*range(64)), "depth": scalar(4_000_000), "v": f32(0, 1)}),
    ("one_hot", {"i": i64(1), "depth": scalar(2**62), "v": f32(0, 1)}),
    ("top_k", {"x": f32(1), "k": i64(2**62)}), ("center_crop_pad", {"x": np.ones((2, 2), np.float32), "s": i64(30000, 30000)}),
    ("hann", {"n": scalar(2_000_000_000)}), ("hann", {"n": scalar(50_000_000)}),
    ("mel", {"bins": scalar(20000), "dft": scalar(60000), "rate": scalar(8000), "low": scalar(0, np.float32), "high": scalar(4000, np.float32)}),
    ("max_unpool", {"x": ONE_PIXEL, "i": np.zeros((1, 1, 4, 4), np.int64), "s": i64(1, 1, 30000, 30000)}),
    ("col2im", {"x": np.ones((1, 4, 4), np.float32), "image": i64(40000, 40000), "block": i64(2, 2)}),
    ("affine_grid", {"t": np.ones((1, 2, 3), np.float32), "s": i64(1, 1, 20000, 20000)}),
    ("dft", {"x": np.ones((1, 4, 1), np.float32), "n_dft": scalar(2_000_000_000)})])
flood(1, "chains", [
    ("tile_tile", {"x": f32(1), "r": i64(20000)}), ("tile_sum", {"x": f32(1), "r": i64(100_000_000)}),
    ("range_expand", {"a": scalar(0), "b": scalar(20000), "d": scalar(1), "s": i64(20000, 20000)}),
    ("loop_concat", {"m": scalar(62), "go": YES, "v": f32(1)}), ("loop_tile", {"m": scalar(62), "go": YES, "v": f32(1)}),
    ("loop_sequence", {"m": scalar(2**40), "go": YES, "v": np.ones(16384, np.float32)}),
    ("loop_scan", {"m": scalar(2**40), "go": YES, "v": np.ones(16384, np.float32)}),
    ("loop_str", {"m": scalar(62), "go": YES, "v": strings("ab")}),
    ("tile_str", {"x": strings("ab"), "r": i64(100_000_000)}),
    ("if_tile", {"c": YES, "x": f32(1), "r": i64(200_000_000)}), ("if_tile", {"c": np.array(False), "x": f32(1), "r": i64(200_000_000)})])
flood(1, "products of small inputs", [
    ("wide_sum", {"x": np.ones((30000, 1), np.float32), "z": np.ones((1, 30000), np.float32)}),
    ("outer", {"a": np.ones(30000, np.float32), "b": np.ones(30000, np.float32)}),
    ("outer", {"a": np.ones(7000, np.float32), "b": np.ones(7000, np.float32)}),
    ("gather", {"x": np.ones((1, 65536), np.float32), "i": np.zeros(4096, np.int64)})], good=GOOD[4])

flood(2, "endless loop", [("loop_add", {"m": scalar(2**62), "go": YES, "v": f32(1)})], threads=4, long=True)
flood(2, "loops", [
    ("loop_add", {"m": scalar(2**62), "go": YES, "v": np.ones(4096, np.float32)}),
    ("loop_nested", {"m": scalar(2**31), "go": YES, "v": f32(1)}), ("loop_add", {"m": scalar(2**62), "go": YES, "v": f32(1)}),
    ("loop_scan", {"m": scalar(2**40), "go": YES, "v": f32(1)})], threads=6, good=GOOD[5])
random = np.random.default_rng(7)
WAVE = random.standard_normal((1, 200003, 1)).astype(np.float32)
BOXES = np.repeat(random.random((1, 20000, 1), np.float32), 4, 2) + f32(0, 0, 1e-5, 1e-5)
SLOW = {
    "einsum": ("einsum", {"a": np.ones((300, 300), np.float32), "b": np.ones((300, 300), np.float32)}),
    "matmul of INT64": ("matmul_i64", {"a": np.ones((1000, 1000), np.int64), "b": np.ones((1000, 1000), np.int64)}),
    "determinant": ("det", {"x": random.standard_normal((1200, 1200)).astype(np.float32)}),
    "unique": ("unique", {"x": random.standard_normal(2_000_000).astype(np.float32)}),
    "boxes": ("nms", {"boxes": BOXES, "scores": random.random((1, 1, 20000), np.float32), "most": i64(20000), "iou": f32(0.5), "least": f32(0)}),
    "dft of a prime": ("dft", {"x": WAVE, "n_dft": scalar(200003)}),
    "stft": ("stft", {"x": WAVE[:, :100000], "step": scalar(1), "w": np.ones(512, np.float32), "len": scalar(512)}),
    "grid of samples": ("grid_sample", {"x": ONE_PIXEL, "g": random.random((1, 2000, 1000, 2), np.float32)}),
    "top k": ("top_k", {"x": random.standard_normal(2_000_000).astype(np.float32), "k": i64(2_000_000)}),
    "non-zero": ("non_zero", {"x": np.ones((2000, 2000), np.float32)}),
    "running sums": ("cum_sum", {"x": np.ones((2000, 2000), np.float32), "a": scalar(0)}),
}
flood(2, "slow kernels", list(SLOW.values()), threads=5)


def unread(model, inputs, connections, trickle):
    """Connections that ask for large responses and read nothing, or a little now and then."""
    ask = http_request(model, inputs)

    def run(player, _):
        with contextlib.ExitStack() as stack:
            held = []
            for _ in range(connections):
                c = stack.enter_context(Connection(player.server, timeout=0.2, receive=4096))
                c.send(ask)
                held.append(c)
            while not player.over():
                time.sleep(0.1)
                for c in held if trickle else []:
                    with contextlib.suppress(OSError):
                        player.note("bytes" if c.s.recv(1) else "closed")
                    if player.over():
                        return
            for c in held if not trickle else []:
                with contextlib.suppress(OSError):
                    c.s.setblocking(False)
                    player.note(c.s.recv(12)[9:].decode() or "closed")
    return run


Attack(5, "40 x 60 MB unread", unread("constant_of_shape", {"s": i64(15_000_000)}, 40, False), 1, GOOD[0])
Attack(5, "40 x 60 MB trickled", unread("constant_of_shape", {"s": i64(15_000_000)}, 40, True), 1, GOOD[0], long=True)
Attack(5, "40 x 200 MB unread", unread("constant_of_shape", {"s": i64(50_000_000)}, 40, False), 1, GOOD[0], long=True)
Attack(5, "40 x 200 MB trickled", unread("constant_of_shape", {"s": i64(50_000_000)}, 40, True), 1, GOOD[0], long=True)


def closed_window(streams, connections, size, window):
    """Streams of HTTP/2 whose windows stay at `window` bytes; the responses have 4 x size bytes each."""
    ask = grpc_request("constant_of_shape", {"s": i64(size)})

    def run(player, _):
        with contextlib.ExitStack() as stack:
            for _ in range(connections):
                c = stack.enter_context(h2.H2(player.server, settings=((1, 0), (4, window))))
                for _ in range(streams):
                    c.call("ModelInfer", ask)
                player.note("calls")
            while not player.over():
                time.sleep(0.05)
    return run


Attack(5, "40 x 60 MB unread, HTTP/2", closed_window(20, 2, 15_000_000, 1 << 20), 1, GOOD[0])
Attack(10, "zero window, 100 x 32 MB", closed_window(100, 1, 8_000_000, 0), 1, GOOD[0], long=True)
Attack(10, "zero windows, 4 x 100 x 32 MB", closed_window(100, 4, 8_000_000, 0), 1, GOOD[0])
Attack(10, "windows of one byte", closed_window(100, 4, 8_000_000, 1), 1, GOOD[0], long=True)

def blanks():
    return post("echo_f", bomb(60), ["Content-Encoding: gzip"])


def json_of(model, count, data, more=b"}"):
    return post(model, b'{"inputs":[{"name":"x","shape":[%d],"datatype":"FP32","data":[%s]}]%s' % (count, data, more))


def digits(count):
    return lambda: json_of("echo_f", count, b"0.123456789," * (count - 1) + b"0.5")


def odd_json():
    """Nested, long, with many keys, denormal, full of blanks, compressed, escaped: functions that make requests."""
    strings_of = b'{"inputs":[{"name":"x","shape":[%d],"datatype":"BYTES","data":[%s]}]}'
    zeros = b'{"inputs":[{"name":"x","shape":[20000000],"datatype":"FP32","data":[%s0]}]}'
    return [
        lambda: json_of("echo_f", 1, b"[" * 100_000),
        lambda: json_of("echo_f", 1, b"1", b',"x":"' + b"y" * 8_000_000 + b'"}'),
        lambda: json_of("echo_f", 1, b"1", b',"x":{' + b'"k":1,' * 1_000_000 + b'"k":1}}'),
        lambda: json_of("echo_f", 4_000_000, b"1e-310," * 3_999_999 + b"1"),
        lambda: json_of("echo_f", 8_000_000, b" 1,\n" * 7_999_999 + b"1"),
        lambda: post("echo_f", gzip.compress(zeros % (b"0," * 19_999_999), 1), ["Content-Encoding: gzip"]),
        lambda: post("identity_str", strings_of % (1, b'"' + b"\\u00e9" * 1_300_000 + b'"')),
        lambda: post("identity_str", strings_of % (1_000_000, b'"a",' * 999_999 + b'"a"'))]


def typed(count):
    """A gRPC message of FP32 contents, in frames of a stream whose number is still open."""
    contents = np.ones(count, np.float32).tobytes()
    body = h2.blob(1, "echo_f") + h2.tensor("x", [count], "FP32", h2.blob(6, contents))
    return h2.message(body)


class Sink(h2.H2):
    """Data of responses is acknowledged and thrown away."""

    def note(self, kind, flags, stream, payload):
        if kind == h2.DATA and payload:
            more = struct.pack(">I", len(payload))
            self.send(h2.frame(h2.WINDOW, 0, 0, more) + h2.frame(h2.WINDOW, 0, stream, more))
            payload = b""
        super().note(kind, flags, stream, payload)


def calls(row, name, threads, body):
    """ModelInfer with one body, each call on a connection of its own: frames are made before the attack."""
    made = []

    def make():
        message = body()
        stream, head = h2.H2.headers(types.SimpleNamespace(next=1), h2.SERVICE + "ModelInfer")
        parts = [message[at:at + 16384] for at in range(0, len(message), 16384)]
        frames = [h2.frame(h2.DATA, 0, stream, p) for p in parts] + [h2.frame(h2.DATA, h2.END_STREAM, stream)]
        made[:] = made or [head + b"".join(frames)]

    def run(player, _):
        with Sink(player.server) as c:
            c.send(made[0])
            player.note(f"grpc {c.answer(1)['grpc']}")

    Attack(row, name, run, threads, GOOD[7], make)


flood(6, "blanks in gzip", [blanks], threads=4, good=GOOD[7], long=True)
flood(6, "blanks in gzip, 16 connections", [blanks], threads=16, good=GOOD[7])
flood(6, "8 MB of JSON", [digits(666_000)], threads=4, good=GOOD[7])
flood(6, "60 MB of JSON", [digits(5_000_000)], threads=4, good=GOOD[7], long=True)
flood(6, "FP64 responses in JSON", [lambda: http_request("widen", {"x": random.standard_normal(300_000).astype(np.float32)}, outputs=False)],
      threads=4, good=GOOD[7])
flood(6, "JSON of other kinds", odd_json(), threads=4, good=GOOD[7])
calls(6, "60 MB of typed contents, gRPC", 4, lambda: typed(15_000_000))
calls(6, "8 MB of raw contents, gRPC", 16, lambda: grpc_request("echo_f", {"x": np.ones(2_000_000, np.float32)}))
flood(6, "60 MB of bytes", [("echo_f", {"x": np.ones(15_000_000, np.float32)})], threads=4, long=True)

flood(7, "two of 30000 x 512", [("rows", {"x": np.ones((30000, 512), np.float32)})], threads=2, long=True)
flood(7, "eight of 30000 x 512", [("rows", {"x": np.ones((30000, 512), np.float32)})], threads=8)
flood(7, "1,500 shapes", [("rows", {"x": np.ones((1 + n % 60, 512), np.float32)}) for n in range(60)]
      + [("echo_f", {"x": np.ones(n, np.float32)}) for n in range(1, 1441)], threads=8)
flood(7, "images", [("images", {"x": np.ones((1000, 3, 64, 64), np.float32)})], threads=4, good=GOOD[8])


def unfinished(connections, data):
    """Requests that never end; a connection that is closed is opened again."""
    def run(player, k):
        held = []
        with contextlib.ExitStack() as stack:
            while not player.over():
                while len(held) < connections and not player.over():
                    s = socket.create_connection(("127.0.0.1", player.server.ports["http"]), timeout=5)
                    stack.callback(s.close)
                    s.setblocking(False)
                    with contextlib.suppress(OSError):
                        s.send(data)
                    held.append(s)
                    player.note("opened")
                open_still = []
                for s in held:
                    with contextlib.suppress(BlockingIOError, OSError):
                        if s.recv(1000) is not None:
                            player.note("closed")
                            s.close()
                            continue
                    open_still.append(s)
                held = open_still
                time.sleep(0.05)
    return run


BODY = post("echo_f", b"{", declared=1000)
Attack(9, "1,500 unfinished bodies", unfinished(1500, BODY), 1, GOOD[7], fresh=True)
Attack(9, "5,000 unfinished bodies", unfinished(5000, BODY), 1, GOOD[7], fresh=True)
Attack(9, "5,000 unfinished heads", unfinished(5000, BODY[:30]), 1, GOOD[7], fresh=True)
Attack(9, "5,000 silent connections", unfinished(5000, b""), 1, GOOD[7], fresh=True, long=True)

