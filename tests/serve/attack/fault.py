"""Group F: every call that can fail is made to fail in turn, while a server starts, loads, answers and reloads."""
import atexit
import http.client
import json
import mmap
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from h2 import H2, blob, message, number
from harness import COTENANT, Failed, Server, check, item, main

SHIM = os.environ.get("SHIM", os.path.join(os.path.dirname(COTENANT), "libshim.so"))
LONG = bool(os.environ.get("COTENANT_LONG"))
SEED = int(os.environ.get("COTENANT_SEED", "1"))
HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = re.findall(r"^X\((\w+),", open(os.path.join(HERE, "..", "shim.def")).read(), re.M)
SHORT, KILL = 1 << 20, (1 << 20) + 1
FOREVER = 1 << 40


class Shim:
    """The page that shim.c and this share."""
    WORDS = ["kinds", "at", "times", "error", "blind", "wall", "seen", "failed", "blocks", "bytes", "mapped"]

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="cotenant-shim-")
        self.path = os.path.join(self.dir, "page")
        with open(self.path, "w+b") as f:
            f.truncate(4096)
            self.page = mmap.mmap(f.fileno(), 4096)
        self.env = {"LD_PRELOAD": SHIM, "COTENANT_SHIM": self.path}

    def word(self, name, value=None):
        at = 8 * self.WORDS.index(name)
        if value is None:
            return struct.unpack_from("q", self.page, at)[0]
        struct.pack_into("q", self.page, at, value)
        return value

    def calls(self, kind):
        return struct.unpack_from("q", self.page, 8 * (len(self.WORDS) + KINDS.index(kind)))[0]

    def frames(self):
        all = struct.unpack_from("24Q", self.page, 8 * (len(self.WORDS) + 32))
        return list(all[:all.index(0)] if 0 in all else all)

    def arm(self, kinds, at=0, times=1, error=0):
        self.disarm()
        self.word("seen", 0)
        self.word("failed", 0)
        self.word("at", at)
        self.word("times", times)
        self.word("error", error)
        self.word("kinds", sum(1 << KINDS.index(k) for k in kinds))

    def disarm(self):
        self.word("kinds", 0)

    def held(self):
        return self.word("blocks"), self.word("bytes"), self.word("mapped")

    def close(self):
        self.page.close()
        shutil.rmtree(self.dir, ignore_errors=True)


# A network in protobuf by hand: y = relu(x * w + b), of a few rows.
def tensor(name, dims, floats):
    return b"".join(number(1, d) for d in dims) + number(2, 1) + blob(8, name) + blob(9, struct.pack(f"{len(floats)}f", *floats))


def value(name, *dims):
    shape = b"".join(blob(1, number(1, d)) for d in dims)
    return blob(1, name) + blob(2, blob(1, number(1, 1) + blob(2, shape)))


def tiny(scale=1.0):
    def node(op, inputs, output):
        return blob(1, b"".join(blob(1, i) for i in inputs) + blob(2, output) + blob(3, output) + blob(4, op))
    graph = node("Gemm", ["x", "w", "b"], "h") + node("Relu", ["h"], "y") + blob(2, "tiny")
    graph += blob(5, tensor("w", [8, 4], [scale * (i % 5) for i in range(32)])) + blob(5, tensor("b", [4], [1.0] * 4))
    graph += blob(11, value("x", 1, 8)) + blob(12, value("y", 1, 4))
    return number(1, 8) + blob(7, graph) + blob(8, blob(1, "") + number(2, 17))


class World:
    """A server under the shim with two small models: `tiny`, that things happen to, and `calm`."""

    maps, said = (), ""

    def __init__(self, start=True, flags=(), env=None):
        self.dir = tempfile.mkdtemp(prefix="cotenant-fault-")
        self.models = os.path.join(self.dir, "models")
        os.mkdir(self.models)
        self.scale = 1.0
        self.write("tiny"), self.write("calm")
        self.shim = Shim()
        self.flags, self.env = list(flags), {**self.shim.env, "COTENANT_STORE": os.path.join(self.dir, "store"),
                                              "COTENANT_LOG_RATE": "1000000", **(env or {})}
        self.server = None
        if start:
            self.start()

    def write(self, name, data=None):
        path = os.path.join(self.models, name + ".onnx")
        with open(path + ".new", "wb") as f:
            f.write(tiny(self.scale) if data is None else data)
        os.rename(path + ".new", path)

    def store(self):
        """Files of what was measured."""
        return [os.path.join(self.dir, f) for f in os.listdir(self.dir) if f.startswith("store")]

    def start(self, wait=120):
        self.server = Server(self.models, flags=self.flags, env=self.env, wait=wait)
        if wait:
            self.know()

    def know(self):
        self.binary = self.server.infer_body("tiny")
        self.json = self.server.infer_body("tiny", binary=False)
        self.calm = self.server.infer_body("calm")
        self.maps = self.maps_of()

    def maps_of(self):
        with open(f"/proc/{self.server.process.pid}/maps") as f:
            return [line.split() for line in f]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.server is not None:
                self.shim.disarm()
                self.server.stop(wait=30)
        finally:
            self.shim.close()
            shutil.rmtree(self.dir, ignore_errors=True)

    def where(self):
        """The call stack of the call that failed."""
        out, base = [], next((int(m[0].split("-")[0], 16) for m in self.maps if m[-1].endswith("/cotenant")), 0)
        for at in self.shim.frames():
            for m in self.maps:
                low, high = (int(x, 16) for x in m[0].split("-"))
                if low <= at < high:
                    if m[-1].endswith("/cotenant"):
                        line = subprocess.run(["addr2line", "-sfe", COTENANT, hex(at - 1 - base)], capture_output=True, text=True)
                        out.append(" ".join(line.stdout.split()[:2]))
                    else:
                        out.append(os.path.basename(m[-1]))
                    break
        return " < ".join(out[:9])

    # What is done while a call fails. Each says how it went: ok, error, closed, or a reason.
    def http(self, *call, **more):
        try:
            status, _, body = self.server.call(*call, timeout=30, **more)
        except socket.timeout:
            raise Failed("no answer")
        except (ConnectionError, http.client.HTTPException):
            return "closed"
        if status == 200:
            return "ok"
        check(status >= 400 and json.loads(body)["error"], f"{status} {body[:200]}")
        return "error"

    def admin(self, what, name="tiny"):
        try:
            status, body = self.server.admin_call("POST", f"/v2/repository/models/{name}/{what}", timeout=30)
        except socket.timeout:
            raise Failed("no answer")
        except (ConnectionError, http.client.HTTPException):
            return "closed"
        if status == 200:
            return "ok"
        check(status >= 400 and json.loads(body)["error"], f"{status} {body[:200]}")
        self.said = body.decode()
        return "error"

    def load(self):
        return self.admin("load")

    def binary_infer(self):
        return self.http("POST", "/v2/models/tiny/infer", self.binary[0], self.binary[1])

    def json_infer(self):
        return self.http("POST", "/v2/models/tiny/infer", self.json[0], self.json[1])

    def grpc_infer(self):
        x = blob(1, "x") + blob(2, "FP32") + blob(3, b"\1\x08")
        body = message(blob(1, "tiny") + blob(5, x) + blob(7, bytes(32)))
        try:
            with H2(self.server, timeout=30) as c:
                end = c.answer(c.call("ModelInfer", body))
        except ConnectionError:
            return "closed"
        if end["grpc"] is None:
            check(c.closed or end["reset"] is not None, "no answer")
            return "closed"
        return "ok" if end["grpc"] == 0 else "error"

    def looks(self):
        """Everything that can be read."""
        ends = [self.http("GET", path) for path in ("/v2", "/v2/models", "/v2/models/tiny", "/v2/models/tiny/stats",
                                                    "/v2/models/tiny/config", "/v2/models/stats", "/v2/health/ready")]
        ends.append(self.http("GET", "/why?misses=3", port="metrics"))
        try:
            status, _, body = self.server.call("GET", "/metrics", port="metrics", timeout=30)
            ends.append("ok" if status == 200 and b"cotenant_log_dropped_total" in body else "error")
            check(status == 200 or json.loads(body)["error"], f"{status} {body[:200]}")
        except (ConnectionError, http.client.HTTPException):
            ends.append("closed")
        ends.append(self.index())
        return next((e for e in ends if e != "ok"), "ok")

    def trace(self):
        return self.http("GET", "/trace?seconds=0.05", port="metrics")

    def index(self):
        try:
            status, body = self.server.admin_call("POST", "/v2/repository/index", timeout=30)
            check(status == 200 or json.loads(body)["error"], f"{status} {body[:200]}")
            return "ok" if status == 200 else "error"
        except (ConnectionError, http.client.HTTPException):
            return "closed"

    def reload(self):
        """A new file, SIGHUP, and what the log says of it."""
        self.scale += 1
        self.write("tiny")
        at = len(self.server.said())
        self.server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            said = re.search(r"(not reloaded|reloaded in part|reloaded)", self.server.said()[at:])
            if said:
                return "ok" if said.group(1) == "reloaded" else "error"
            if not self.server.alive():
                return "ended"
            time.sleep(0.005)
            if time.monotonic() > end - 58 and self.shim.word("failed"):
                self.shim.disarm()
                if self.lost() > self.dropped:
                    return "unsaid"  # the line itself could not be written, and was counted
        raise Failed("nothing was said of the reload")

    def lost(self):
        """Lines of the log that could not be written so far."""
        _, _, text = self.server.call("GET", "/metrics", port="metrics", timeout=30)
        return float(re.search(rb"^cotenant_log_dropped_total (\S+)", text, re.M).group(1))

    def plain(self):
        """A request that nothing is wrong with."""
        status, _, body = self.server.call("POST", "/v2/models/calm/infer", self.calm[0], self.calm[1], timeout=30)
        check(status == 200, f"a plain request: {status} {body[:200]}")

    def mend(self):
        """As it was before: both models are served."""
        self.plain()
        for _ in range(3):
            if self.binary_infer() == "ok":
                self.dropped = self.lost()
                return
            self.admin("load")
        raise Failed("the model cannot be loaded again: " + self.server.said()[-500:])


SHARED = []


def shared():
    """One that several items play on: a start takes longer than they do."""
    if not SHARED:
        SHARED.append(World())
        atexit.register(SHARED[0].__exit__)
    return SHARED[0]


def chosen(total, most):
    """Which of n calls fail: all of them, or some that the seed chooses, the first among them."""
    if LONG or total <= most:
        return range(1, total + 1)
    return sorted({1, *random.Random(SEED).sample(range(1, total + 1), most - 1)})


def settles(test):
    """Whether it holds, after the server has seen to connections that were closed."""
    for _ in range(250):
        if test():
            return True
        time.sleep(0.02)
    return False


def sweep(world, name, run, kinds, before=lambda: None, times=1, error=0, most=20, again=True):
    """run() with call 1, 2, 3 ... of these kinds failing. Says how many calls there were and how it went."""
    shim, server = world.shim, world.server
    for _ in range(2):
        before(), run(), world.mend()
    before()
    counts = {k: shim.calls(k) for k in kinds}
    shim.arm(kinds)
    run()
    shim.disarm()
    total, begin = shim.word("seen"), time.monotonic()
    by_kind = {k: shim.calls(k) - n for k, n in counts.items() if shim.calls(k) > n}
    world.mend()
    fds, held, ends, bad = server.fds(), shim.held(), {}, []
    for n in chosen(total, most):
        before()
        shim.arm(kinds, n, times, error)
        start = time.monotonic()
        try:
            end = run()
            failed = shim.word("failed")
            shim.disarm()
            if time.monotonic() - start > 1:
                print(f"  slow: {time.monotonic() - start:.1f} s, call {n} in {world.where()}: {end}", flush=True)
            check(server.alive(), f"the server ended with {server.process.poll()}")
            world.mend()
        except (Failed, OSError, http.client.HTTPException, ValueError) as e:
            shim.disarm()
            bad.append(f"{name}: call {n} of {total} in {world.where()}: {e!r}")
            if len(bad) <= 20:
                print("  " + bad[-1] + "\n  " + server.said()[-600:].replace("\n", "\n  "), flush=True)
            if not server.alive():
                world.start()
                server = world.server
                fds, held = server.fds(), None
            continue
        ends[end if failed else "unseen"] = ends.get(end if failed else "unseen", 0) + 1
    print(f"  {name}: {total} calls {by_kind}, {ends}, {time.monotonic() - begin:.0f} s, descriptors {fds} -> {server.fds()}, "
          f"held {held} -> {shim.held()}", flush=True)
    check(not bad, f"{len(bad)} failed, first: {bad[0] if bad else ''}")
    check(settles(lambda: server.fds() <= fds + 1), f"descriptors {fds} -> {server.fds()}")

    def grown():
        return [b - a for a, b in zip(held, shim.held())]  # blocks and bytes of malloc; bytes of maps

    check(settles(lambda: grown()[0] <= 32 and grown()[1] <= 1 << 19), f"held on to {grown()}")
    if "UNMAP" in kinds or settles(lambda: grown()[2] <= 1 << 27):
        return ends
    # address space of a place for a request is kept: a slow machine has more requests in flight, but not more each time
    check(again, f"held on to {grown()}")
    return sweep(world, name, run, kinds, before, times, error, most, again=False)


ALL = [k for k in KINDS if k not in ("WAIT", "WAKE", "UNMAP")]


def requests(w):
    return (("binary", w.binary_infer), ("json", w.json_infer), ("grpc", w.grpc_infer), ("looks", w.looks),
            ("trace", w.trace))


@item("F1", "requests: each call fails once", own=True)
def f1_request(_):
    w = shared()
    for name, run in requests(w):
        sweep(w, name, run, ALL)


@item("F1b", "loading: each call fails once", own=True)
def f1_load(_):
    w = shared()
    sweep(w, "load", w.load, ALL, before=lambda: w.admin("unload"))


@item("F1c", "reloading: each call fails once", own=True)
def f1_reload(_):
    w = shared()
    sweep(w, "reload", w.reload, ALL)


@item("F1e", "no memory from some call on: requests, loading, reloading", own=True)
def f1_exhausted(_):
    w = shared()
    for name, run in requests(w)[:4]:
        sweep(w, name, run, ["MEMORY", "MAP"], times=FOREVER, most=10)
    sweep(w, "load", w.load, ["MEMORY", "MAP"], before=lambda: w.admin("unload"), times=FOREVER, most=10)
    sweep(w, "reload", w.reload, ["MEMORY", "MAP"], times=FOREVER, most=10)


@item("F1f", "no memory while a model is unloaded, and for some time", own=True)
def f1_unload(_):
    w = shared()
    for _ in range(2):
        w.shim.arm(["MAP"], 1, FOREVER)
        check(w.admin("unload") in ("ok", "error"), "not unloaded")
        check(w.binary_infer() != "ok", "it is served")
        w.shim.disarm()
        for _ in range(20):
            w.plain()
        w.mend()


FILES = ["OPEN", "READ", "STAT", "SYNC", "NAME"]
EINTR, EIO, ENOSPC, ENOSYS, ECONNABORTED, EAGAIN, EMFILE, ENFILE = 4, 5, 28, 38, 103, 11, 24, 23


@item("F2", "files fail from some call on; calls are interrupted; disks are full", own=True)
def f2_files(_):
    w = shared()
    unload = lambda: w.admin("unload")
    sweep(w, "load", w.load, FILES, before=unload, times=FOREVER, error=EIO, most=12)
    sweep(w, "load interrupted", w.load, FILES + ["WRITE", "RECEIVE", "SEND"], before=unload, error=EINTR, most=12)
    sweep(w, "reload", w.reload, FILES, times=FOREVER, error=EIO, most=12)
    sweep(w, "load, disk full", w.load, ["WRITE", "SYNC"], before=unload, times=FOREVER, error=ENOSPC, most=12)
    sweep(w, "munmap", w.load, ["UNMAP"], before=unload, most=12)


@item("F2b", "half of what was asked is read and written", own=True)
def f2_short(_):
    w = shared()
    for name, run, before in (("load", w.load, lambda: w.admin("unload")), ("binary", w.binary_infer, lambda: None),
                              ("json", w.json_infer, lambda: None), ("grpc", w.grpc_infer, lambda: None)):
        ends = sweep(w, name + ", short", run, ["READ", "WRITE", "SEND", "RECEIVE"], before=before, error=SHORT, most=12)
        check(set(ends) <= {"ok", "unseen"}, f"{name}: {ends} {w.said}")
        ends = sweep(w, name + ", all short", run, ["READ", "WRITE", "SEND", "RECEIVE"], before=before, times=40,
                     error=SHORT, most=3)
        check(set(ends) <= {"ok", "unseen"}, f"{name}: {ends} {w.said}")


@item("F3", "connections that are not accepted, waits that are interrupted", own=True)
def f3_accept(_):
    w = shared()
    for error in (EMFILE, ENFILE, ECONNABORTED, EINTR, EAGAIN):
        for times in (1, 5) if LONG else (3,):
            sweep(w, f"accept, error {error}", w.binary_infer, ["ACCEPT"], times=times, error=error, most=2)
    sweep(w, "interrupted", w.binary_infer, ["WAIT"], times=200, most=5)
    sweep(w, "interrupted load", w.load, ["WAIT"], before=lambda: w.admin("unload"), times=200, most=5)
    sweep(w, "woken in vain", w.binary_infer, ["WAKE"], times=2, error=EIO, most=5)


@item("F3b", "a client that never takes its answer, as the system has it", own=True)
def f3_send(_):
    with World(env={"COTENANT_WRITE_MS": "1000"}) as w:
        fds = w.server.fds()
        w.shim.arm(["SEND"], 1, FOREVER, EAGAIN)
        begin = time.monotonic()
        check(w.binary_infer() == "closed", "it was answered")
        check(time.monotonic() - begin < 10, "it was kept for too long")
        w.shim.disarm()
        w.mend()
        end = time.monotonic() + 10  # the last connection is closed soon after its client has left
        while w.server.fds() > fds + 1 and time.monotonic() < end:
            time.sleep(0.05)
        check(w.server.fds() <= fds + 1, f"descriptors {fds} -> {w.server.fds()}")


@item("F4", "threads that cannot be started, cores that cannot be had, no openat2", own=True)
def f4_threads(_):
    w = shared()
    unload = lambda: w.admin("unload")
    sweep(w, "load, no thread", w.load, ["THREAD", "AFFINITY"], before=unload, times=FOREVER)
    ends = sweep(w, "load, no openat2", w.load, ["OPEN"], before=unload, error=ENOSYS, most=10)
    check(ends, "nothing was tried")
    sweep_start(["THREAD"], most=3)
    sweep_start(["AFFINITY"], times=FOREVER, most=1)


def start_once(world):
    """A start under the shim: "ok" when it serves, or the code that it ended with."""
    s = world.server = Server(world.models, flags=world.flags, env=world.env, wait=0)
    try:
        s.wait_ready(120)
        world.shim.disarm()
        world.know()
        world.plain()
        check(s.stop() == 0, f"ended with {s.process.returncode}")
        return "ok"
    except Failed:
        try:
            code = s.process.wait(5)
        except subprocess.TimeoutExpired:
            world.maps = world.maps_of()
            s.process.kill()
            s.process.wait()
            raise Failed("it hangs: " + s.said()[-300:])
        finally:
            world.shim.disarm()
        check(code in (1, 3, 4, 5) and re.search(r"cotenant: \S+ .*\S", s.said()), f"ended with {code}: {s.said()[-300:]}")
        return f"exit {code}"


def sweep_start(kinds, times=1, error=0, most=5, seconds=200):
    """As sweep. There are many calls, and a start takes a while: in turns that the seed shuffles, while there is time."""
    with World(start=False) as w:
        start_once(w)
        w.shim.arm(kinds)
        start_once(w)
        total, ends, bad, begin = w.shim.word("seen"), {}, [], time.monotonic()
        turns = list(chosen(total, most))
        random.Random(SEED).shuffle(turns)
        for n in turns:
            if time.monotonic() - begin > seconds and not os.environ.get("COTENANT_ALL"):
                break
            w.shim.arm(kinds, n, times, error)
            try:
                end = start_once(w)
                ends[end] = ends.get(end, 0) + 1
            except (Failed, OSError, http.client.HTTPException, ValueError) as e:
                bad.append(f"start: call {n} of {total} in {w.where()}: {e!r}")
                print("  " + bad[-1], flush=True)
            finally:
                shutil.rmtree(w.server.dir, ignore_errors=True)
        w.server = None
        print(f"  start: {total} calls, {sum(ends.values()) + len(bad)} of them failed in turn, {ends}, {time.monotonic() - begin:.0f} s", flush=True)
        check(not bad, f"{len(bad)} failed, first: {bad[0] if bad else ''}")


@item("F1d", "starting: each allocation and call fails", own=True)
def f1_start(_):
    sweep_start(ALL)


@item("F5", "a server that stands still for a while: what is overdue expires unexecuted", own=True)
def f5_stopped(_):
    still = 10 if LONG else 1
    with Server("zoo:squeezenet1_1") as s:
        body, statuses = s.infer_body("squeezenet1_1", timeout=still * 500000), []

        def executed():
            stats = json.loads(s.call("GET", "/v2/models/squeezenet1_1/stats")[2])["model_stats"][0]["inference_stats"]
            return stats["compute_infer"]["count"]
        before = executed()
        clients = [threading.Thread(target=lambda: statuses.append(s.infer("squeezenet1_1", body=body)[0])) for _ in range(40)]
        for c in clients:
            c.start()
        time.sleep(0.1)
        s.process.send_signal(signal.SIGSTOP)
        time.sleep(still)
        s.process.send_signal(signal.SIGCONT)
        for c in clients:
            c.join()
        late, good = statuses.count(504), statuses.count(200)
        check(late + good == 40, f"statuses {statuses}")
        check(executed() - before <= good + 8, f"{executed() - before} executed, {good} answered")
        print(f"  stood still for {still} s: {good} answered, {late} expired, {executed() - before} executed", flush=True)
        check(s.infer("squeezenet1_1")[0] == 200, "it serves no more")


@item("F5b", "the wall clock is set forward and back by a day", own=True)
def f5_clock(_):
    w = shared()
    for seconds in (86400, -86400, 0):
        w.shim.word("wall", seconds)
        begin = time.monotonic()
        w.mend()
        check(w.json_infer() == "ok" and w.reload() == "ok" and w.looks() == "ok", "not as before")
        check(time.monotonic() - begin < 10, "it stood still")


def ended(world, *command):
    """A command under the shim: its code."""
    return subprocess.run([COTENANT, *command], env={**os.environ, **world.env}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60).returncode


WRITES = ["WRITE", "SYNC", "NAME"]


@item("F6", "killed at each write of a server that starts; the next one serves", own=True)
def f6_killed(_):
    with World(start=False) as w:
        def start(at):
            for path in w.store():
                os.remove(path)
            w.shim.arm(WRITES, at, 1, KILL)
            w.server = Server(w.models, env=w.env, wait=0)
            try:
                w.server.wait_ready(120)
            except Failed:
                pass
            w.server.process.kill()
            w.shim.disarm()
            return w.server.process.wait()
        start(0)
        total, killed = w.shim.word("seen"), 0
        for n in chosen(total, 2):
            start(n)
            killed += w.shim.word("failed")
            w.start()
            w.plain()
            check(w.server.stop() == 0, "it did not stop")
            check(not re.search("damaged|malformed|corrupt", w.server.said()), w.server.said())
        print(f"  {total} writes, killed at {killed}", flush=True)
        check(killed > 0, "no process was killed")


@item("F6b", "killed at each write of a file: the old one stays, or the new one is whole", own=True)
def f6_files(_):
    with World(start=False) as w:
        path = os.path.join(w.dir, "lstm_kws.onnx")
        check(ended(w, "zoo", "write", "lstm_kws", path) == 0, "not written")
        with open(path, "rb") as f:
            whole = f.read()
        w.shim.arm(WRITES)
        ended(w, "zoo", "write", "lstm_kws", path)
        total, seen = w.shim.word("seen"), set()
        for n in chosen(total, 8):
            with open(path, "wb") as f:
                f.write(b"old")
            w.shim.arm(WRITES, n, 1, KILL)
            code = ended(w, "zoo", "write", "lstm_kws", path)
            with open(path, "rb") as f:
                now = f.read()
            check(now in (b"old", whole), f"write {n} of {total}: {len(now)} bytes")
            seen.add((code, now == whole))
        print(f"  {total} writes: {sorted(seen)}", flush=True)
        check((-9, False) in seen, "no process was killed")


@item("F12", "what was written is cut short: a server that is told to use it refuses and leaves it", own=True)
def f12_truncated(_):
    with World() as w:
        w.plain()
        check(w.server.stop() == 0, "it did not stop")
        files = w.store()
        check(files, "there is no store")
        for path in files:
            with open(path, "rb") as f:
                whole = f.read()
            cuts = {0, 1, 99, len(whole) // 2, len(whole) - 1}
            for n in sorted(cuts)[:None if LONG else 2]:
                with open(path, "wb") as f:
                    f.write(whole[:n])
                w.start(wait=0)
                if n == 0:
                    w.server.wait_ready(120)
                    check(w.server.stop() == 0, f"{path} of {n} bytes")
                    continue
                check(w.server.process.wait(60) == 3 and path in w.server.said(), w.server.said())
                with open(path, "rb") as f:
                    check(f.read() == whole[:n], f"{path} of {n} bytes was replaced")
                w.server.stop()


@item("F12b", "a place where nothing can be kept: it is said, and done without", own=True)
def f12_no_store(_):
    with World(env={"COTENANT_STORE": "/proc/nowhere/store"}, start=False) as w:
        w.start(wait=0)
        check(w.server.process.wait(60) == 3 and "/proc/nowhere" in w.server.said(), w.server.said())
        w.server.stop()
        w.env.update({"COTENANT_STORE": "", "XDG_CACHE_HOME": "/proc/nowhere"})
        w.start()
        w.plain()
        check("measured profiles are not stored" in w.server.said(), w.server.said())


@item("F13", "/proc and /sys cannot be read", own=True)
def f13_blind(_):
    with World(start=False) as w:
        w.shim.word("blind", 1)
        w.start()
        w.plain()
        check(w.looks() in ("ok", "error"), "it does not answer")
        check(w.reload() == "ok", "it does not reload")
        w.shim.word("blind", 0)
        w.mend()
        w.shim.word("blind", 1)
        sweep(w, "load, blind", w.load, ["MEMORY"], before=lambda: w.admin("unload"), most=10)


@item("F14", "numbers are written with a point, whatever the language", own=True)
def f14_language(_):
    with World(start=False) as w:
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(w.dir, "de_DE.UTF-8")],
                              capture_output=True)
        if made.returncode > 1:
            print("  the language cannot be made here: by name only", flush=True)
        w.env.update(LC_ALL="de_DE.UTF-8", LOCPATH=w.dir)
        w.flags += ["--set", "tiny.target_ms=2.5"]
        w.start()
        check(w.json_infer() == "ok" and w.looks() == "ok", "it does not answer")
        status, _, body = w.server.call("POST", "/v2/models/tiny/infer", w.json[0].replace(b"0, 0", b"0.5, 0.25", 1), w.json[1])
        data = json.loads(body)["outputs"][0]["data"]
        check(status == 200 and len(data) == 4 and any(x != int(x) for x in data), f"{status} {body}")
        check("target_ms=2.5" in w.server.said(), "the target is not what was asked for: " + w.server.said())
        for line in w.server.call("GET", "/metrics", port="metrics")[2].decode().splitlines():
            check(line.startswith("#") or re.fullmatch(r".* -?[0-9.e+-]+", line), line)


NETEM = """
ip link set lo up && tc qdisc add dev lo root netem delay 100ms 20ms loss 5% reorder 10% || exit 77
exec "$@"
"""


@item("F10", "delay, loss and reordering on the way", own=True, long=True)
def f10_network(_):
    """In a network of its own, where that is allowed: this item plays itself in there."""
    if os.environ.get("COTENANT_FAR"):
        with World() as w:
            for run in (w.binary_infer, w.json_infer, w.grpc_infer, w.looks):
                check(run() == "ok", "not answered")
            w.plain()
        return
    done = subprocess.run(["unshare", "-rn", "sh", "-c", NETEM, "sh", sys.executable, os.path.abspath(__file__), "F10"],
                          env={**os.environ, "COTENANT_FAR": "1"}, capture_output=True, text=True, timeout=300)
    if done.returncode == 77:
        print("  not played: netem is not to be had here", flush=True)
    else:
        check(done.returncode == 0, done.stdout[-500:] + done.stderr[-500:])


@item("F9", "twice as many hogs as cores beside it", long=True)
def f9_hogs(ctx):
    code = f"import time\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass"
    hogs = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        for _ in range(10):
            check(ctx.server.infer("squeezenet1_1")[0] == 200, "not served beside hogs")
    finally:
        for h in hogs:
            h.wait()


if __name__ == "__main__":
    main()
