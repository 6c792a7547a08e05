"""No byte of another request, of freed memory or of the server's addresses leaves the process.

One tenant's clients fill requests with a token. Another's run every graph, every mistake and malformed requests, by REST
and gRPC; their responses have neither the token, nor the fill pattern of recycled memory (COTENANT_POISON=1), nor a
number that is an address of the server's.
"""
import contextlib
import os
import secrets
import shutil
import signal
import struct
import sys
import tempfile
import time

import numpy as np

import graphs
import h2
from attacks import Attack, Attackers
from client import Connection, Gone, grpc_request, http_request, post
from harness import SANE, Failed, Server, check
from neighbour import MISTAKES, TEXT
from operators import TIMEOUT_MS, Graph, draw
from tenants import BUFFERED_MB, MOST, answered

LONG = bool(os.environ.get("COTENANT_LONG"))
SEED = int(os.environ.get("COTENANT_SEED", "1"))
ROUNDS = 40 if LONG else 4
FILL = b"\xa5"
TOKEN = secrets.token_hex(8).encode()


MARK = b"canary: "    # every echo begins with it: tests/serve/leak_shim.c knows such data by it
ECHOES = ["echo_f", "echo_i", "widen", "identity_str"]


def fill_texts():
    """The fill pattern as JSON writes it, by element type: several of a small type, the first digits of a fraction."""
    yield b'\xc2\xa5' * 4
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        one = str(np.frombuffer(FILL * 8, kind)[0]).encode()
        yield one if np.dtype(kind).itemsize >= 4 else b",".join([one] * 6)
    for kind in ("float32", "float64"):
        yield str(np.frombuffer(FILL * 8, kind)[0]).encode()[:8]
    yield str(float(np.frombuffer(FILL * 8, np.float16)[0])).encode()[:9]


PATTERNS = [TOKEN, FILL * 8, *fill_texts()]


ODD_FLOATS = np.array([0x7f7fffff, 0x7f800000, 0x7fc00000], np.uint64)  # the largest float, infinity, NaN


def mapped(server, address):
    """Is there a page of memory of the server at this address? Much of what is reserved has none."""
    with open(f"/proc/{server.process.pid}/pagemap", "rb") as f:
        try:
            f.seek(address // os.sysconf("SC_PAGESIZE") * 8)
            entry = f.read(8)
        except OSError:
            return False
    return len(entry) == 8 and bool(int.from_bytes(entry, "little") >> 63)


def pointers(data, server):
    """Numbers of 8 bytes at any offset that are addresses of the server's memory.

    Sanitizers put the heap at addresses such as 0x620000000161, which are also text between lengths: not searched there.
    Nor are addresses such as 0x7f8000001000: the system may have put memory there, and floats that are infinite look so.
    """
    if SANE:
        return None
    for shift in range(8):
        words = np.frombuffer(data, "<u8", (len(data) - shift) // 8, shift) if len(data) >= shift + 8 else np.empty(0, "<u8")
        like = (words > 1 << 32) & (words < 1 << 47) & ~np.isin(words >> np.uint64(16), ODD_FLOATS)
        for word in np.unique(words[like])[:64]:
            if mapped(server, int(word)):
                return int(word)
    return None


class Search:
    def __init__(self, server, word="FAIL"):
        self.server, self.word, self.found, self.bytes, self.count = server, word, [], 0, 0

    def look(self, what, data, sent=b"", heads=b""):
        """Patterns of what was sent do not count."""
        self.bytes, self.count = self.bytes + len(data), self.count + 1
        for p in PATTERNS:
            if p in heads + data and p not in sent:
                return self.note(what, heads + data, (heads + data).index(p), repr(p))
        where = pointers(data[-65536:], self.server)
        if where is not None and struct.pack("<Q", where) not in sent:
            tail = data[-65536:]
            return self.note(what, tail, tail.index(struct.pack("<Q", where)), f"the address {where:#x}")
        return None

    def note(self, what, data, at, why):
        self.found.append(f"{what}: {why}")
        print(f"{self.word} {what}: {why} at byte {at} of {len(data)}: {data[max(0, at - 32):at + 48]!r}", flush=True)

    def http(self, what, request):
        with contextlib.suppress(Gone, OSError), Connection(self.server, timeout=30) as c:
            status, fields, body = c.ask(request, keep=1 << 22)
            self.look(f"{what} by REST, {status}", body, request, str(fields).encode())

    def grpc(self, what, model, inputs):
        ask = grpc_request(model, inputs)
        with contextlib.suppress(Gone, OSError), h2.H2(self.server) as c:
            stream = c.call("ModelInfer", ask, extra=(("grpc-timeout", f"{TIMEOUT_MS}m"),))
            heads = b""
            while not c.streams.get(stream, {"ended": False})["ended"] and (got := c.read()) is not None:
                heads += got[3] if got[0] == h2.HEADERS else b""
            told = c.streams.get(stream, {"grpc": None, "data": b""})
            self.look(f"{what} by gRPC, {told['grpc']}", told["data"], ask, heads)

    def both(self, what, model, inputs):
        self.http(what, http_request(model, inputs, headers=(f"x-request-timeout-ms: {TIMEOUT_MS}",)))
        self.http(what + " as JSON", http_request(model, inputs, binary=False, outputs=False,
                                                  headers=(f"x-request-timeout-ms: {TIMEOUT_MS}",)))
        self.grpc(what, model, inputs)


SECRET_MODELS = ["echo_f", "echo_i", "widen", "identity_str", "concat_str", "cast_str_f", "rows", "tile_str"]


def secret_requests():
    """Of the other tenant: the token in numbers, strings, names, ids, paths and headers."""
    floats = np.frombuffer(TOKEN * 4096, np.float32)
    words = np.array([TOKEN * n for n in range(1, 40)], object)
    return [http_request("echo_f", {"x": floats}), http_request("widen", {"x": floats}, outputs=False),
           http_request("identity_str", {"x": words}), http_request("identity_str", {"x": words}, binary=False, outputs=False),
           http_request("concat_str", {"x": words, "z": words}), http_request("echo_f", {TOKEN.decode(): floats}),
           http_request("echo_i", {"x": np.frombuffer(TOKEN * 1000, np.int64)}), http_request("cast_str_f", {"x": words}),
           post(TOKEN.decode(), b"{}"), post("echo_f", b'{"id":"%s","inputs":[{"name":"%s"}]}' % (TOKEN, TOKEN * 100)),
           post("echo_f", TOKEN * 10000), http_request("rows", {"x": np.tile(np.frombuffer(TOKEN, np.float32), 128 * 8).reshape(-1, 512)}),
           post("echo_f", b"{}", [f"x-{TOKEN.decode()}: {TOKEN.decode() * 50}"]), http_request("tile_str", {"x": words, "r": np.array([20])})]


def whisper(player, _):
    requests = secret_requests()
    while not player.over():
        with Connection(player.server, timeout=20) as c:
            for r in requests:
                player.note(c.ask(r, keep=0)[0])
        with h2.H2(player.server) as c:
            c.answer(c.call("ModelInfer", grpc_request("identity_str", {"x": np.array([TOKEN * 9] * 99, object)})))
        time.sleep(0.02)


MALFORMED = [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v2/models HTTP/1.1\r\nHost: localhost\r\n\r\n", post("echo_f", b"{"), post("echo_f", b"[]"),
    b"GET /v2/models/stats HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v2/models/echo_f/config HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v2/models/echo_f HTTP/1.1\r\nHost: localhost\r\n\r\n", b"FOO /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\0\r\n\r\n",
    post("echo_f", b'{"inputs":[{"name":"x","shape":[4],"datatype":"FP32","data":[1,2,3]}]}'), post("nobody", b"{}"),
    post("identity_str", b'{"inputs":[{"name":"x","shape":[1],"datatype":"BYTES","data":["\\ud800"]}]}'),
    post("echo_f", b'{"inputs":[{"name":"x","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}]}1234',
         ["Inference-Header-Content-Length: 84"])]


def echoes():
    """(model, inputs) whose responses have the bytes that were sent, of several sizes."""
    for n in (64, 1000, 20000):
        data = MARK * n
        yield "echo_f", {"x": np.frombuffer(data, np.float32)}
        yield "echo_i", {"x": np.frombuffer(data, np.int64)}
        yield "widen", {"x": np.frombuffer(data, np.float32)}
        yield "identity_str", {"x": np.array([MARK * 20, data, b"", data[:100]], object)}


def play_round(search, names, round_):
    for model, inputs in echoes():
        search.both(model, model, inputs)
    for model, inputs, *_ in TEXT + MISTAKES:
        if model in names:
            search.both(model, model, inputs)
    for k, name in enumerate(names):
        r = np.random.default_rng([SEED, round_, k])
        search.both(name, name, draw(Graph(name), r))
    for request in MALFORMED:
        search.http(request[:40].decode("latin-1"), request)
    with contextlib.suppress(OSError):
        search.look("/metrics", search.server.call("GET", "/metrics", port="metrics")[2])
    check(search.server.alive(), "the server ended: " + search.server.said()[-2000:])
    check(SANE or search.server.rss() < MOST, "memory")


def hunt(names, rounds=ROUNDS, env=None, word="FAIL", over=lambda search: len(search.found) > 20):
    """Plays the two tenants on a server with the models of `names`; what was found is in the Search that it returns."""
    folder = tempfile.mkdtemp(prefix="cotenant-canary-")
    graphs.write(folder, sorted({*names, *ECHOES, *SECRET_MODELS}))
    server = Server(folder, flags=["--log-level", "error", "--buffered-mb", str(BUFFERED_MB)],
                    env={"COTENANT_POISON": "1", "COTENANT_STORE": os.path.join(folder, "store"), **(env or {})})
    search = Search(server, word)
    tenant = Attackers(server, Attack(0, "secrets", whisper, 2, None), 3600)
    try:
        for n in range(rounds):
            play_round(search, names, n)
            if over(search):
                break
        good = answered(server, ("echo_f", {"x": np.ones(1, np.float32)}))
        check(good[0] == 200, f"echo_f afterwards: {good[0]}")
    finally:
        os.kill(tenant.pid, 9)
        os.waitpid(tenant.pid, 0)
        with contextlib.suppress(Failed):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    check(not SANE or ("ERROR: " not in server.said() and "runtime error" not in server.said()), server.said()[-3000:])
    return search


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        search = hunt(sorted(graphs.GRAPHS))
    except Failed as e:
        print(f"FAIL {e}")
        sys.exit(1)
    print(f"{search.count} responses, {search.bytes >> 10} KiB searched; {len(search.found)} with bytes that are not theirs")
    sys.exit(1 if search.found else 0)


if __name__ == "__main__":
    main()
