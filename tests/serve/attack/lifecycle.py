"""Start, stop and reload under load: accepted requests are answered, stores stay intact."""
import contextlib
import http.client
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time

from h2 import H2, Model, message
from model import adder
from harness import COTENANT, SANE, Failed, Server, check, item, main

LONG = bool(os.environ.get("COTENANT_LONG"))


class Clients:
    """Open-loop clients over REST, on connections that stay and on new ones, and over gRPC, until the server is gone."""

    def __init__(self, server, model="lstm_kws", threads=4, gap=0.002):
        self.server, self.model, self.gap = server, model, gap
        self.body, self.headers = server.infer_body(model)
        self.rpc = message(Model(server, model).request())
        self.whole, self.honest, self.cut, self.over = 0, 0, [], threading.Event()
        self.lock, self.slowest = threading.Lock(), 0.0
        kinds = [self.kept, self.fresh, self.grpc, self.fresh]
        self.threads = [threading.Thread(target=kinds[i % len(kinds)], daemon=True) for i in range(threads)]
        for t in self.threads:
            t.start()

    def note(self, status, began):
        with self.lock:
            self.whole += status in (200, 0)
            self.honest += status in (503, 14)
            self.slowest = max(self.slowest, time.monotonic() - began)
            if status not in (200, 0, 503, 14):
                self.cut.append(status)

    def lose(self, why):
        with self.lock:
            self.cut.append(why)

    def pause(self):
        self.over.wait(random.expovariate(1 / self.gap))
        return not self.over.is_set()

    def connection(self):
        """None: it is not accepted."""
        try:
            return socket.create_connection(("127.0.0.1", self.server.ports["http"]), timeout=30)
        except OSError:
            return None

    def request(self, sock):
        """One request on a connection: (status, whether the connection stays)."""
        head = f"POST /v2/models/{self.model}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(self.body)}\r\n"
        head += "".join(f"{k}: {v}\r\n" for k, v in self.headers.items()) + "\r\n"
        sock.sendall(head.encode() + self.body)
        r = http.client.HTTPResponse(sock)
        r.begin()
        r.read()
        return r.status, r.getheader("Connection", "") != "close"

    def once(self, sock):
        began = time.monotonic()
        try:
            status, stays = self.request(sock)
            self.note(status, began)
            return stays
        except (OSError, http.client.HTTPException) as e:
            self.lose(repr(e))
            return False

    def kept(self):
        while self.pause():
            sock = self.connection()
            if sock is None:
                return
            with sock:
                while self.once(sock) and self.pause():
                    pass

    def fresh(self):
        while self.pause():
            sock = self.connection()
            if sock is None:
                return
            with sock:
                self.once(sock)

    def grpc(self):
        while self.pause():
            try:
                c = H2(self.server)
            except OSError:
                return
            with c:
                while c.goaway is None and not c.closed and self.pause():
                    self.calls(c)

    def calls(self, c):
        began = time.monotonic()
        streams = [c.call("ModelInfer", self.rpc) for _ in range(3)]
        sent = not c.closed
        for n in streams:
            one = c.answer(n)
            if one["grpc"] is not None:
                self.note(one["grpc"], began)
            elif sent and (c.last is None or n <= c.last):  # beyond the last: the server says that it is not done
                self.lose(f"gRPC stream {n}: {one['reset']}, last {c.last}, closed {c.closed}")

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join(40)


def drained(delay_ms):
    with Server("zoo:lstm_kws", flags=["--drain-delay-ms", str(delay_ms)]) as s:
        clients = Clients(s)
        end = time.monotonic() + 30
        while clients.whole < 50 and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.2))
        s.process.send_signal(signal.SIGTERM)
        code = s.process.wait(60)
        clients.end()
        check(code == 0, f"it ended with {code}: {s.said()[-1000:]}")
        check(clients.whole >= 50, f"only {clients.whole} were answered")
        check(not clients.cut, f"{len(clients.cut)} were cut, of {clients.whole}: {clients.cut[:4]}")


@item("L1", "SIGTERM under load cuts no request that was accepted", own=True)
def l1(_):
    for _ in range(100 if LONG else 2):
        drained(0)
    for _ in range(10 if LONG else 1):
        before = time.monotonic()
        drained(1000)
        check(time.monotonic() - before > 1, "it did not wait")


@item("L2", "a second signal ends it at once", own=True)
def l2(_):
    for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGINT)):
        with Server("zoo:lstm_kws", flags=["--drain-delay-ms", "30000"]) as s, s.raw() as slow:
            slow.sendall(b"POST /v2/models/lstm_kws/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
            time.sleep(0.2)
            s.process.send_signal(first)
            time.sleep(0.3)
            check(s.alive(), "it did not wait for a request that is still being sent")
            began = time.monotonic()
            s.process.send_signal(second)
            check(s.process.wait(20) == 128 + second, f"{first} {second}: {s.process.returncode}")
            check(SANE or time.monotonic() - began < 2, "not at once")


@item("L3", "SIGTERM at any moment of the start ends it cleanly", own=True)
def l3(_):
    with tempfile.TemporaryDirectory() as folder:
        for i in range(150 if LONG else 5):
            # a store that is new every few rounds: some starts measure, others read
            s = Server("zoo:lstm_kws", "zoo:squeezenet1_1", flags=["--store", f"{folder}/store{i // 5}"], wait=0)
            time.sleep(0.01 * (i if LONG else 25 * i))
            s.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            code = s.process.wait(60)
            took = time.monotonic() - began
            s.stop()
            check(code in (0, 128 + signal.SIGTERM, -signal.SIGTERM), f"round {i}: {code} {s.said()[-500:]}")
            check(SANE or took < 10, f"round {i}: it took {took:.1f} s to end")
            check(not os.path.exists(s.admin), "its socket is still there")


@item("L4", "a second server on the same address says so: exit 4", own=True)
def l4(_):
    with Server("zoo:lstm_kws") as s:
        for kind in ("http", "grpc", "metrics"):
            free = [x for k in ("http", "grpc", "metrics") if k != kind for x in ("--" + k, "off")]
            told = subprocess.run([COTENANT, "serve", "zoo:lstm_kws", *free, "--" + kind, f"127.0.0.1:{s.ports[kind]}"],
                                  capture_output=True, text=True, timeout=60)
            check(told.returncode == 4, f"{kind}: exit {told.returncode} {told.stderr}")
            check(str(s.ports[kind]) in told.stderr and "in use" in told.stderr, told.stderr)
        told = subprocess.run([COTENANT, "serve", "zoo:lstm_kws", "--http", "off", "--grpc", "off", "--metrics", "off",
                               "--admin", "unix:" + s.admin], capture_output=True, text=True, timeout=60)
        check(told.returncode == 4, f"admin: exit {told.returncode} {told.stderr}")
        check(s.admin_call("POST", "/v2/repository/index")[0] == 200, "the first one's socket is gone")
        check(s.infer("lstm_kws")[0] == 200, "the first one does not serve")


def killed_after(arguments, seconds):
    p = subprocess.Popen([COTENANT, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        p.wait(seconds)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()


@item("L5", "kill -9 at any moment leaves the stores readable", own=True)
def f6(_):
    """F6. The next program reads the files that are left and reports no damage."""
    rng = random.Random(6)
    nets = ["zoo:lstm_kws", "zoo:squeezenet1_1"]
    quiet = ["--http", "127.0.0.1:0", "--grpc", "off", "--metrics", "off"]
    with tempfile.TemporaryDirectory() as folder:
        store, log = f"{folder}/store", f"{folder}/log"
        for i in range(120 if LONG else 6):
            kind = i % 3
            if kind == 0:
                killed_after(["serve", *nets, *quiet, "--store", store, "--log-file", log], rng.uniform(0, 1.5))
            elif kind == 1:
                killed_after(["compile", "lstm_kws", "--store", store, "--tune", "2"], rng.uniform(0, 1.2))
            else:
                killed_after(["compile", "squeezenet1_1", "--store", store], rng.uniform(0, 1.2))
            if i % 10 == 7:  # others begin with a new one
                for name in os.listdir(folder):
                    os.remove(f"{folder}/{name}")
            done = subprocess.run([COTENANT, "compile", "lstm_kws", "--store", store], capture_output=True, text=True, timeout=120)
            check(done.returncode == 0, f"{i}: compile ended with {done.returncode}: {done.stderr}")
            with contextlib.closing(sqlite3.connect(store)) as db:
                told = db.execute("pragma integrity_check").fetchall()
            check(told == [("ok",)], f"{i}: {told}")
            left = set(os.listdir(folder)) - {"store", "store-wal", "store-shm", "store-journal", "log"}
            check(not left, f"{i}: set aside as damaged, or left behind: {left}")
        with Server(*nets, flags=["--store", store, "--log-file", log]) as s:
            check(s.infer("lstm_kws")[0] == 200, "it does not serve")
        with open(log, "rb") as f:
            lines = f.read().split(b"\n")
        torn = [line for line in lines if line and not line.startswith(b"ts=")]
        check(not torn, f"torn lines: {torn[:3]}")


@item("L6", "new versions come in without a lost or slowed request", own=True)
def l6(_):
    with tempfile.TemporaryDirectory() as folder:
        def put(version, data):
            os.makedirs(f"{folder}/adder/{version}")
            with open(f"{folder}/adder/{version}/model.onnx", "wb") as f:
                f.write(data)
        put(1, adder(1))
        with Server(folder, flags=["--set", "adder.target_ms=500"]) as s:
            clients = Clients(s, model="adder")
            for version in range(2, 40 if LONG else 5):
                put(version, adder(version))
                s.process.send_signal(signal.SIGHUP)
                end = time.monotonic() + 60
                while s.metadata("adder")["versions"] != [str(version)]:
                    check(time.monotonic() < end, f"version {version} never came: {s.said()[-1000:]}")
                    time.sleep(0.02)
                shutil.rmtree(f"{folder}/adder/{version - 1}")
                time.sleep(0.1)
            clients.end()
            check(not clients.cut and not clients.honest, f"{clients.honest} refused, cut: {clients.cut[:4]}")
            check(clients.whole > 100, f"only {clients.whole} requests")
            check(SANE or clients.slowest < 0.75, f"one took {clients.slowest:.2f} s")


if __name__ == "__main__":
    main()
