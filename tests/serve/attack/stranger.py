"""Attacks that the server was not written for: operators, shapes, frames, JSON and calls beside those of attacks.py.

As in neighbour.py the neighbour keeps its target, no response is a failure of the server, and memory comes back.
"""
import contextlib
import gzip
import itertools
import json
import signal
import socket
import struct
import sys
import time
import zlib

import numpy as np

import attacks
import h2
import stranger_graphs  # pylint: disable=unused-import  # adds graphs
import tenants as t
from attacks import YES, Attack, Sink, flood
from client import Connection, document, f32, grpc_request, http_request, i64, post, scalar, strings
from harness import Failed, check
from neighbour import played, run

known = len(attacks.ATTACKS)
GOOD = ("echo_f", {"x": f32(1)})
random = np.random.default_rng(3)


def ones(*shape):
    return np.ones(shape, np.float32)


def box(*corners):
    return np.array([corners], np.float32)


flood(1, "products and sums of any rank", [
    ("scan", {"s": ones(1), "x": ones(3_000_000, 1)}), ("einsum_outer", {"a": ones(40, 40), "b": ones(40, 40), "c": ones(40, 40)}),
    ("einsum_sum", {k: ones(3000) for k in "abcd"}), ("einsum_diagonal", {"a": ones(3, 4)}),
    ("einsum_batch", {"a": ones(1000, 1, 60, 60), "b": ones(1, 1000, 60, 60)}), ("matmul", {"a": ones(5), "b": ones(6)}),
    ("matmul", {"a": ones(2000, 1, 30, 30), "b": ones(1, 2000, 30, 30)}), ("matmul", {"a": ones(1, 1_000_000), "b": ones(1_000_000, 1)}),
    ("add_any", {"a": ones(20000, 1), "b": ones(1, 20000)}), ("where_sum", {"c": np.ones((3000, 1), bool), "x": ones(1, 30000), "z": ones(1)}),
    ("softmax", {"x": ones(3, 0)}), ("log_sum_exp", {"x": ones(0, 5)}), ("arg_max_any", {"x": np.array(1, np.float32)}),
    ("transpose", {"x": ones(8, 8, 8, 8, 8, 8, 8, 4)})], threads=4, good=GOOD)
flood(2, "images and windows", [
    ("roi_align", {"x": ones(1, 1, 4, 4), "rois": box(0, 0, 1e9, 1e9), "b": i64(0)}),
    ("roi_align", {"x": ones(1, 1, 4, 4), "rois": box(-1e30, np.nan, 1e30, np.inf), "b": i64(0)}),
    ("roi_align_large", {"x": ones(1, 1, 4, 4), "rois": np.tile(box(0, 0, 30000, 30000), (50, 1)), "b": np.zeros(50, np.int64)}),
    ("resize_antialias", {"x": ones(1, 1, 2000, 2000), "s": f32(1, 1, 0.0006, 0.0006)}),
    ("resize_antialias", {"x": ones(1, 1, 2000, 2000), "s": f32(1, 1, 1e-30, 1e-30)}),
    ("resize_crop", {"x": ones(1, 1, 100, 100), "r": f32(0, 0, -1e30, 5, 1, 1, 1e30, 9), "s": f32(1, 1, 20, 20)}),
    ("average_pool", {"x": ones(1, 1, 600, 600)}), ("max_pool", {"x": ones(1, 1, 900, 900)}), ("lp_pool", {"x": ones(1, 1, 500, 500)}),
    ("local_norm", {"x": ones(1, 400, 100, 100)}), ("conv", {"x": ones(1, 1, 1000, 1000), "w": ones(1, 1, 200, 200)}),
    ("conv", {"x": ones(1, 1, 3000, 3), "w": ones(3000, 1, 1, 1)}), ("conv_transpose", {"x": ones(1, 1, 1000, 1000), "w": ones(1, 1, 1, 1)}),
    ("grid_cubic", {"x": ones(1, 8, 64, 64), "g": random.standard_normal((1, 700, 700, 2)).astype(np.float32)}),
    ("grid_cubic", {"x": ones(1, 1, 3, 3), "g": np.full((1, 5, 5, 2), 1e30, np.float32)})], threads=4, good=GOOD)
flood(2, "strings, sequences, integers", [
    ("strings_32", {"x": strings("a" * 3_000_000)}), ("strings_32", {"x": strings(*["ab"] * 200_000)}),
    ("split_letters", {"x": strings("a" * 2_000_000)}), ("split_letters", {"x": strings("a" * 200_000, *["b"] * 20_000)}),
    ("split_every", {"x": ones(2_000_000), "s": scalar(1)}), ("seq_at", {"x": ones(200_000), "s": np.ones(200_000, np.int64), "p": scalar(-1)}),
    ("lstm", {"x": ones(1_000_000, 1, 2)}), ("scatter_product", {"x": ones(4), "i": np.zeros((3_000_000, 1), np.int64), "u": ones(3_000_000)}),
    ("unique_rows", {"x": random.integers(0, 2, (100_000, 20)).astype(np.float32)}), ("div_i64", {"x": i64(-2**63), "z": i64(-1)}),
    ("mod_i64", {"x": i64(-2**63), "z": i64(-1)}), ("mod_i32", {"x": np.array([-2**31], np.int32), "z": np.array([-1], np.int32)}),
    ("pow_i64", {"x": np.full(1_000_000, 3), "z": np.full(1_000_000, 2**62)}), ("mod_f", {"x": f32(1e38), "z": f32(1e-45)})],
    threads=4, good=GOOD)


def shapes(player, k):
    """Each request has shapes that no other had."""
    count = itertools.count(k * 100_003 + 1)
    with Connection(player.server) as c:
        while not player.over():
            n = next(count)
            asks = (("conv", {"x": ones(1, 1, 20 + n % 300, 20 + n % 301), "w": ones(1, 1, 1 + n % 7, 1 + n % 5)}),
                    ("add_any", {"a": ones(*(1 + (n >> 2 * d) % 4 for d in range(1 + n % 8))), "b": ones(1)}),
                    ("rows", {"x": ones(n % 3000 + 1, 512)}))
            status, _, text = c.ask(http_request(*asks[n % 3]), keep=400)
            player.note(status, text)


Attack(7, "shapes without end", shapes, 6, GOOD)

VALUES = 15_000_000
HEAD = json.dumps({"inputs": [{"name": "x", "shape": [VALUES], "datatype": "FP32", "parameters": {"binary_data_size": 4 * VALUES}}]}).encode()


def packed(name):
    data = HEAD + bytes(4 * VALUES)
    body = gzip.compress(data, 1) if name == "gzip" else zlib.compress(data, 1)
    return post("echo_f", body, [f"Inference-Header-Content-Length: {len(HEAD)}", f"Content-Encoding: {name}", "Accept-Encoding: gzip"])


def tiny_chunks():
    body, n = document({"x": ones(20_000)})
    head = ("POST /v2/models/echo_f/infer HTTP/1.1\r\nHost: localhost\r\n"
            f"Inference-Header-Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
    return head + b"".join(b"1\r\n" + body[i:i + 1] + b"\r\n" for i in range(len(body))) + b"0\r\n\r\n"


flood(6, "packed tensors, chunks of one byte", [lambda: packed("gzip"), lambda: packed("deflate"), tiny_chunks], threads=4, good=GOOD)


def extensions(player, _):
    with Connection(player.server) as c:
        c.send(b"POST /v2/models/echo_f/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not player.over():
            c.send((b"1;" + b"e" * 4000 + b"\r\n \r\n") * 16)
        player.note("bytes")


def frames():
    """Frames that cost their sender little: functions of a connection."""
    small = grpc_request("echo_f", {"x": ones(4)})
    reset = struct.pack(">I", h2.CANCEL)

    def opened(c, data=None):
        stream, head = c.headers(h2.SERVICE + "ModelInfer")
        return head + (h2.frame(h2.DATA, h2.END_STREAM, stream, data) if data else b"") + h2.frame(h2.RST, 0, stream, reset)

    def continued(c):
        stream, head = c.headers(h2.SERVICE + "ModelInfer", flags=0)
        return head + h2.frame(h2.CONTINUATION, 0, stream, h2.literal("a", "b" * 100)) * 500

    def empty(c):
        stream, head = c.headers(h2.SERVICE + "ModelInfer")
        return head + h2.frame(h2.DATA, 0, stream, b"") * 5000

    return [lambda c: h2.frame(h2.PING, 0, 0, bytes(8)) * 2000, lambda c: h2.frame(h2.SETTINGS, 0, 0, struct.pack(">HI", 4, 65535) * 10) * 500,
            lambda c: b"".join(h2.frame(h2.PRIORITY, 0, 2 * i + 1, struct.pack(">IB", 0, 5)) for i in range(2000)),
            lambda c: h2.frame(h2.WINDOW, 0, 0, struct.pack(">I", 1)) * 4000, lambda c: b"".join(opened(c) for _ in range(200)),
            lambda c: b"".join(opened(c, small) for _ in range(100)), continued, empty, lambda c: h2.frame(0x55, 0, 0, b"x" * 16) * 3000]


turn = itertools.count()


def flood_frames(player, _):
    kinds = frames()
    make = kinds[next(turn) % len(kinds)]
    with h2.H2(player.server, timeout=2) as c:
        player.note("opened")
        for _ in range(20):
            if player.over() or not c.send(make(c)):
                break
            c.s.settimeout(0.01)
            while c.read() is not None:
                pass
            c.s.settimeout(2)
            if c.closed or c.goaway is not None:
                break
    player.note("closed")


def patient(player, _):
    ask = grpc_request("loop_add", {"m": scalar(2**62), "go": YES, "v": f32(1)})
    with h2.H2(player.server) as c:
        for _ in range(100):
            c.call("ModelInfer", ask, extra=(("grpc-timeout", "99999999H"),))
        player.note("calls")
        while not player.over():
            time.sleep(0.05)


def compressed(player, _):
    data = gzip.compress(grpc_request("echo_f", {"x": np.zeros(VALUES, np.float32)})[5:], 1)
    while not player.over():
        with Sink(player.server) as c:
            stream = c.call("ModelInfer", b"\1" + struct.pack(">I", len(data)) + data, extra=(("grpc-encoding", "gzip"),))
            player.note(f"grpc {c.answer(stream)['grpc']}")


def unread_stream(player, k):
    """Thousands of requests on a stream, or some with large responses, and nothing is read."""
    ask = grpc_request("echo_f", {"x": ones(2000)}) if k % 2 else grpc_request("constant_of_shape", {"s": i64(3_000_000)})
    with h2.H2(player.server, timeout=2) as c:
        stream, head = c.headers(h2.SERVICE + "ModelStreamInfer")
        c.send(head)
        c.s.settimeout(0.2)
        while not player.over() and not c.closed:
            try:
                c.s.sendall(h2.frame(h2.DATA, 0, stream, ask) * 4)
            except socket.timeout:
                time.sleep(0.05)
        player.note("calls")


Attack(6, "chunk extensions", extensions, 2, GOOD)
Attack(9, "frames of HTTP/2", flood_frames, 6, GOOD)
Attack(2, "streams with huge timeouts", patient, 4, GOOD)
Attack(6, "compressed messages, gRPC", compressed, 4, GOOD)
Attack(5, "streams never read", unread_stream, 6, GOOD)

PATHS = [("POST", "/v2/trace/setting", b'{"trace_rate":"1"}'), ("POST", "/v2/logging", b'{"log_verbose_level":9}'), ("GET", "/v2/logging", b""),
         ("POST", "/v2/systemsharedmemory/region/r/register", b'{"key":"/x","offset":0,"byte_size":100}'),
         ("GET", "/v2/systemsharedmemory/status", b""), ("POST", "/v2/cudasharedmemory/region/r/register", b"{}"),
         ("POST", "/v2/repository/index", b""), ("POST", "/v2/repository/models/echo_f/unload", b""), ("GET", "/v2/models/stats", b""),
         ("GET", "/v2/models", b""), ("GET", "/v2/models/" + "x" * 3000, b""), ("GET", "/v2/models/%2e%2e/config", b""), ("GET", "/metrics", b"")]


def paths(player, _):
    asks = [f"{m} {p} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(b)}\r\n\r\n".encode() + b for m, p, b in PATHS]
    with Connection(player.server) as c:
        for ask in itertools.cycle(asks):
            if player.over():
                return
            status, _, text = c.ask(ask, keep=200)
            player.note("400" if status in (403, 404, 405) else status, text)


def flap(player, k):
    """One model is unloaded and loaded while others ask for it."""
    while k == 0 and not player.over():
        for what in ("unload", "load"):
            status, text = player.server.admin_call("POST", f"/v2/repository/models/rows/{what}")
            player.note(status, text)
    with Connection(player.server) as c:
        while not player.over():
            status, _, text = c.ask(http_request("rows", {"x": ones(64 * k, 512)}), keep=200)
            player.note("400" if status == 404 else status, text)


Attack(9, "paths beside inference", paths, 8, GOOD)
Attack(8, "loads and unloads", flap, 5, GOOD)


def one_input(x="1", n="1", rest="", before=""):
    text = '{%s"inputs":[{"name":"x","shape":[%s],"datatype":"FP32","data":[%s]}]%s}' % (before, n, x, rest)
    return post("echo_f", text.encode())


PARAMETERS = ['"priority":"x"', '"priority":-1', '"priority":1e300', '"priority":18446744073709551615', '"timeout":-1', '"timeout":"x"',
              '"timeout":9223372036854775807', '"sequence_id":"a"', '"sequence_id":18446744073709551616', '"sequence_start":5',
              '"binary_data_output":"yes"', '"binary_data_output":{}', '"a":{"b":{"c":[1]}}', '"classification":-1']
OUTPUTS = ["[]", "[1]", "{}", '[{"name":"nope"}]', '[{"name":"y","parameters":{"classification":9223372036854775807}}]',
           '[{"name":"y","parameters":{"binary_data":5}}]', '[{"name":"y"},{"name":"y"}]',
           '[{"name":"y","parameters":{"shared_memory_region":"a","shared_memory_byte_size":5}}]']
ODD = [*(one_input(x) for x in ("1e400", "-1e400", "1" * 100_000, "0." + "1" * 100_000, "1e" + "9" * 1000, "NaN", "0x10", "01", "+1", '"1"',
                                "null", "true", "[1]", "[[[[1]]]]")),
       *(one_input(n=n) for n in ("9223372036854775808", "-1", "0", "1.5", '"1"', "9223372036854775807,2", "0,9223372036854775807")),
       *(one_input(before='"parameters":{%s},' % p) for p in PARAMETERS), *(one_input(before='"outputs":%s,' % o) for o in OUTPUTS),
       one_input(before='"id":5,'), one_input(before='"id":"%s",' % ("i" * 100_000)), one_input(before='"parameters":[],'),
       post("echo_f", b"[" * 20_000), post("echo_f", b'{"a":' * 5000), post("echo_f", b'{"inputs":[{"name":"\xff","shape":[1]}]}'),
       *(post("echo_f", b'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":%s}}]}1234' % s,
              [f"Inference-Header-Content-Length: {85 + len(s)}"]) for s in (b"4", b"-4", b"5", b"9223372036854775807", b"4.0", b'"4"')),
       post("echo_f", b"{}", ["Inference-Header-Content-Length: 99999999999999999999"])]
flood(8, "odd JSON", ODD, threads=4, good=GOOD)


flood(1, "operators over shapes that are inputs", [
    ("eye_of_shape", {"s": i64(9000, 9000)}), ("eye_of_shape", {"s": i64(30000, 30000)}),
    ("trilu_of_shape", {"s": i64(5000, 5000), "d": scalar(2**62)}), ("trilu_of_shape", {"s": i64(5000, 5000), "d": scalar(-2**63)}),
    ("unique_of_shape", {"s": i64(20_000_000)}), ("text_of_shape", {"s": i64(2_000_000)}), ("text_of_shape", {"s": i64(10_000_000)}),
    ("dft_of_shape", {"s": i64(1, 4_194_301, 1)}), ("det_of_shape", {"s": i64(1500, 1500)}),
    ("gather_str", {"x": strings("a" * 1_000_000), "i": np.zeros(100_000, np.int64)}),
    ("gather_str", {"x": strings("a" * 1_000_000), "i": np.zeros(150, np.int64)}),
    ("loops_and_scan", {"m": scalar(2**62), "go": YES, "v": ones(4), "rows": ones(1000, 4), "c": YES})], threads=6, good=GOOD)


def cache(batch, new, past, lengths, total):
    return "caches", {**{n: ones(batch, new, 64) for n in "qkv"}, **{n: ones(batch, 4, past, 16) for n in ("pk", "pv")},
                      "len": np.array(lengths, np.int32), "total": np.array(total, np.int32)}


flood(8, "lengths of caches", [
    cache(1, 1, 8, [-1], 9), cache(1, 1, 8, [-2**31], 0), cache(1, 1, 8, [8], 2**31 - 1), cache(2, 1, 8, [3, 99999], 9), cache(1, 4, 0, [3], 4),
    cache(1, 1, 8, [7, 7], 8), cache(1, 1, 8, [7], -5), cache(1, 1, 8, [2**31 - 1], 9), cache(1, 1000, 16, [999], 1000), cache(2, 1, 20000, [20000] * 2, 20001)],
    threads=4, good=GOOD)


def many_models(player, k):
    asks = [http_request(f"small_{i}", {"x": ones(1 + i % 3, 16)}) for i in range(30)]
    with Connection(player.server) as c:
        for n in itertools.count(k):
            if player.over():
                return
            status, _, text = c.ask(asks[n % 30], keep=300)
            player.note(status, text)


def table_references(player, _):
    """Heads of one entry of the table and 3,000 references to it."""
    block = b"\x40\x01a\x7f" + h2.varint(4000 - 127) + b"b" * 4000 + b"\xbe" * 3000
    with h2.H2(player.server, timeout=2, settings=((1, 4096),)) as c:
        player.note("opened")
        for stream in range(1, 400, 2):
            if player.over() or not c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block)) or c.closed or c.goaway is not None:
                break
            c.s.settimeout(0.005)
            while c.read() is not None:
                pass
    player.note("closed")


def slow_pages(player, _):
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(Connection(player.server, timeout=0.02, receive=2304, port="metrics")) for _ in range(100)]
        for c in held:
            c.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        while not player.over():
            for c in held:
                with contextlib.suppress(OSError):
                    player.note("bytes" if c.s.recv(10) else "closed")
                if player.over():
                    return


def cut_short(player, _):
    ask = http_request("echo_f", {"x": ones(6_000_000)})
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", player.server.ports["http"]), timeout=2) as s:
        s.sendall(ask[:-10])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    player.note("closed")


Attack(7, "30 models, 64 clients", many_models, 64, GOOD)
Attack(9, "references to a table of heads", table_references, 8, GOOD)
Attack(5, "pages of metrics read slowly", slow_pages, 1, GOOD)
Attack(9, "uploads cut short", cut_short, 8, GOOD)


def refusals(outcome):
    """A refusal for want of memory names the setting."""
    for status in ("413", "503"):
        text = outcome.seen.get(status, (0, ""))[1]
        check("`" in text or "memory" not in text and status == "503" or not text, f"{status} names no setting: {text}")


def returned(tenants, attack):
    """Memory of bodies comes back by itself: no request is sent meanwhile."""
    def then(outcome):
        refusals(outcome)
        t.settled(tenants.server, outcome.idle, slack=96 << 20 if attack.name == "uploads cut short" else 128 << 20, seconds=30)
    return played(tenants, attack, then).told()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wanted = sys.argv[1:]
    chosen = [a for a in attacks.ATTACKS[known:] if not wanted or a.name in wanted]
    tenants = t.Tenants()
    failed = [a.name for a in chosen if not run(tenants, a.row, a.name, lambda x, a=a: returned(x, a))]
    said = tenants.server.said()
    try:
        tenants.stop()
        check("ERROR: " not in said and "runtime error" not in said, "sanitizer: " + said[-3000:])
    except Failed as e:
        failed.append(str(e))
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed: {failed}" if failed else f"{len(chosen)} passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
