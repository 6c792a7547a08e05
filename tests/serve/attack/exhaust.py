"""Group R: memory, queues, disks, threads, cores run out; R6, R7, R8 and a part of R4 are in observe.py."""
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time

from model import adder
from harness import COTENANT, SANE, Failed, Server, check, item, main

LONG = bool(os.environ.get("COTENANT_LONG"))


class Missing(Failed):
    """What an item needs is not to be had here: it is left out, and says so."""


@contextlib.contextmanager
def cgroup(kind):
    """A control group of our own below /sys/fs/cgroup: (path, is it version 2)."""
    old, new = f"/sys/fs/cgroup/{kind}", "/sys/fs/cgroup"
    with contextlib.suppress(OSError):
        with open(f"{new}/cgroup.subtree_control") as f:
            if kind not in f.read().split():
                new = ""
    root = old if os.path.exists(f"{old}/cgroup.procs") else new
    path = f"{root}/cotenant-test-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError as e:
        raise Missing(f"no control group for {kind}: {e.strerror}") from e
    try:
        yield path, root == new
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(path)
                break
            time.sleep(0.05)


def put(path, value):
    with open(path, "w") as f:
        f.write(str(value))


def join(path):
    return lambda: put(f"{path}/cgroup.procs", 0)


@contextlib.contextmanager
def tmpfs(**options):
    with tempfile.TemporaryDirectory() as folder:
        how = ",".join(f"{k}={v}" for k, v in options.items())
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", how, "tmpfs", folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing("no tmpfs: " + done.stderr.strip())
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", folder], check=False)


def needs(fn):
    """An item that says so and passes when the machine does not let it begin."""
    def run(ctx):
        try:
            return fn(ctx)
        except Missing as e:
            print(f"     left out: {e}")
            return None
    return run


def bench(server, *arguments, protocol="http", wait=120):
    url = f"http://127.0.0.1:{server.ports['http']}" if protocol == "http" else f"grpc://127.0.0.1:{server.ports['grpc']}"
    done = subprocess.run([COTENANT, "bench", url, *arguments, "--json"], capture_output=True, text=True, timeout=wait)
    check(done.returncode in (0, 6), f"bench: {done.returncode} {done.stderr[-500:]}")
    return json.loads(done.stdout)


def served(server, model="lstm_kws", n=5):
    for _ in range(n):
        status, _, body = server.infer(model)
        check(status == 200, f"{status} {body[:200]}")


def hold(server, path, declared, sent):
    """A connection that declares a body and sends some of it."""
    s = server.raw()
    s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {declared}\r\n\r\n".encode())
    with contextlib.suppress(OSError):
        s.sendall(bytes(sent))
    return s


def memory_bound(server, folder):
    """What no longer fits is refused: a model, and bodies."""
    served(server)
    with open(f"{folder}/cotenant.yaml", "a") as f:
        f.write("  - {name: vast, path: 'zoo:vgg16', required: false}\n")
    server.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 60
    while "reloaded" not in server.said():
        check(server.alive(), "it ended: " + server.said()[-500:])
        check(time.monotonic() < end, "the reload never ended")
        time.sleep(0.05)
    check("vast" in server.said() and "memory" in server.said(), server.said()[-800:])
    held = [hold(server, "/v2/models/lstm_kws/infer", 16 << 20, 15 << 20) for _ in range(24)]
    served(server)
    for s in held:
        s.close()
    served(server)
    check(server.alive(), "it ended")


@item("R1", "little memory: models and bodies are rejected, no process is killed", own=True)
@needs
def r1(_):
    with tempfile.TemporaryDirectory() as folder, cgroup("memory") as (group, new):
        put(f"{folder}/cotenant.yaml", "models:\n  - {name: lstm_kws, path: 'zoo:lstm_kws'}\n")
        limit = f"{group}/memory.max" if new else f"{group}/memory.limit_in_bytes"
        put(limit, (512 if SANE else 96) << 20)
        with Server("--config", f"{folder}/cotenant.yaml", preexec=join(group)) as s:
            memory_bound(s, folder)
            check(s.stop() == 0, "it did not end well")


@item("R1b", "little room for addresses: the same", own=True)
def r1b(_):
    with Server("zoo:lstm_kws") as s:
        served(s)
        with open(f"/proc/{s.process.pid}/statm") as f:
            used = int(f.read().split()[0]) * os.sysconf("SC_PAGESIZE")
        if not SANE:
            resource.prlimit(s.process.pid, resource.RLIMIT_AS, (used + (48 << 20),) * 2)
        held = [hold(s, "/v2/models/lstm_kws/infer", 16 << 20, 15 << 20) for _ in range(24)]
        time.sleep(0.2)
        check(s.alive(), "it ended: " + s.said()[-500:])
        for h in held:
            h.close()
        end = time.monotonic() + 20
        while (told := s.infer("lstm_kws"))[0] != 200:
            check(time.monotonic() < end, f"it does not come back: {told}")
            time.sleep(0.1)


class Probe(threading.Thread):
    """Sends a request now and then during a flood, to see the responses of rejected ones."""

    def __init__(self, server, model):
        super().__init__(daemon=True)
        self.server, self.model, self.body = server, model, server.infer_body(model)
        self.seen, self.over, self.most = {}, threading.Event(), 0

    def run(self):
        while not self.over.is_set():
            with contextlib.suppress(OSError):
                status, headers, _ = self.server.infer(self.model, self.body)
                self.seen[(status, "retry-after" in headers)] = self.seen.get((status, "retry-after" in headers), 0) + 1
            self.most = max(self.most, self.server.rss())
            self.over.wait(0.02)


def flood(server, model, seconds, times):
    alone = bench(server, "--models", model, "--closed", "2", "--duration", "1s", "--warmup", "0.3s")
    rate = max(1, alone["all"]["rate"])
    probe = Probe(server, model)
    probe.start()
    told = bench(server, "--models", model, "--rate", str(round(times * rate)), "--duration", f"{seconds}s",
                 "--warmup", "0", "--give-up", "10s")
    probe.over.set()
    probe.join()
    return told, probe


@item("R2", "ten times what it can do: bounded memory, 503 with Retry-After",
      flags=("--set", "squeezenet1_1.on_miss=reject", "--set", "squeezenet1_1.target_ms=200"))
def r2(ctx):
    s = ctx.server
    before = s.rss()
    _, probe = flood(s, "squeezenet1_1", 10 if LONG else 3, 10)
    check((503, True) in probe.seen, f"no request was rejected: {probe.seen}")
    check(all(k in ((200, False), (503, True), (504, False)) for k in probe.seen), f"{probe.seen}")
    check(SANE or probe.most < before + (700 << 20), f"memory {before >> 20} -> {probe.most >> 20} MiB")


@item("R3", "one tenant floods: the other holds its target")
def r3(ctx):
    flood(ctx.server, "squeezenet1_1", 10 if LONG else 3, 10)


@item("R4a", "a full disk under log, store, and what clients write", own=True)
@needs
def r4a(_):
    with tmpfs(size="256k") as disk:
        with contextlib.suppress(OSError), open(f"{disk}/ballast", "wb", buffering=0) as f:
            while True:
                f.write(bytes(4096))
        with Server("zoo:lstm_kws", flags=["--log-file", f"{disk}/log", "--store", f"{disk}/store"]) as s:
            served(s, n=20)
            done = subprocess.run([COTENANT, "bench", f"http://127.0.0.1:{s.ports['http']}", "--rate", "50", "--duration",
                                   "0.5s", "--records", f"{disk}/records"], capture_output=True, text=True, timeout=60)
            check(done.returncode == 1 and "records" in done.stderr, f"bench: {done.returncode} {done.stderr}")
            check([n for n in os.listdir(disk) if n not in ("ballast", "log", "store")] == [], os.listdir(disk))
            os.remove(f"{disk}/ballast")
            served(s)
            s.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + 20
            while not os.path.exists(f"{disk}/log") or os.path.getsize(f"{disk}/log") == 0:
                check(time.monotonic() < end, "no log once there is room")
                time.sleep(0.05)
            check(s.stop() == 0, "it did not end well")


@item("R4b", "files may not grow: the log ends, the service does not", own=True)
def r4b(_):
    with tempfile.TemporaryDirectory() as folder:
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
        with Server("zoo:lstm_kws", preexec=small,
                    flags=["--log-file", f"{folder}/log", "--store", f"{folder}/store", "--log-level", "debug"]) as s:
            for _ in range(40):
                s.call("POST", "/v2/models/lstm_kws/infer", b"{")
            served(s)
            check(os.path.getsize(f"{folder}/log") <= 2048, "the limit does not hold")
            check(s.stop() == 0, "it did not end well")


@item("R5a", "no more threads: loading says so, serving goes on; a start says so", own=True)
@needs
def r5a(_):
    """prlimit --nproc does not bind root, so it is a control group."""
    with tempfile.TemporaryDirectory() as folder, cgroup("pids") as (group, _):
        os.makedirs(f"{folder}/adder/1")
        with open(f"{folder}/adder/1/model.onnx", "wb") as f:
            f.write(adder(1))
        with Server(folder, "zoo:lstm_kws", preexec=join(group)) as s:
            time.sleep(0.5)  # those that loaded are gone
            put(f"{group}/pids.max", s.threads())
            os.makedirs(f"{folder}/adder/2")
            with open(f"{folder}/adder/2/model.onnx", "wb") as f:
                f.write(adder(2))
            s.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + 30
            while "reloaded" not in s.said():
                check(time.monotonic() < end, "the reload never ended")
                time.sleep(0.05)
            check("thread" in s.said(), s.said()[-800:])
            served(s)
            served(s, "adder")
            put(f"{group}/pids.max", "max")
            s.process.send_signal(signal.SIGHUP)
            while s.metadata("adder")["versions"] != ["2"]:
                check(time.monotonic() < end, "it does not load once it may")
                time.sleep(0.05)
            check(s.stop() == 0, "it did not end well")
        for most in range(1, 4):
            put(f"{group}/pids.max", most)
            done = subprocess.run([COTENANT, "serve", "zoo:lstm_kws", "--http", "127.0.0.1:0", "--grpc", "off", "--metrics", "off"],
                                  capture_output=True, text=True, timeout=60, preexec_fn=join(group))
            check(done.returncode == 1 and "thread" in done.stderr, f"{most} threads: {done.returncode} {done.stderr}")


@item("R5b", "no more files: it serves without a store", own=True)
@needs
def r5b(_):
    with tmpfs(size="1m", nr_inodes=2) as disk:
        put(f"{disk}/ballast", "")
        with Server("zoo:lstm_kws", flags=["--log-file", f"{disk}/log", "--store", f"{disk}/store"], wait=0) as s:
            try:
                s.wait_ready(60)
            except Failed:
                check(s.process.wait(20) in (1, 3) and "log" in s.said(), f"{s.process.returncode} {s.said()}")
        with Server("zoo:lstm_kws", flags=["--store", f"{disk}/store"]) as s:
            served(s)


# Servers that are not what they seem: each is given what a client sends and writes what it likes.
def endless(head):
    def play(s):
        s.sendall(head)
        while True:
            s.sendall(b"x" * 65536)
    return play


def once(data):
    def play(s):
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
    return play


def drip(s):
    for _ in range(2000):
        s.sendall(b"H")
        time.sleep(0.01)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
FALSE = {
    "headers without end": endless(b"HTTP/1.1 200 OK\r\nX: "),
    "a body without end": endless(HEAD + b"\r\n"),
    "10^18 bytes": endless(HEAD + b"Content-Length: 1000000000000000000\r\n\r\n"),
    "chunks without end": lambda s: (s.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n"), [s.sendall(b"8000\r\n" + bytes(32768) + b"\r\n") for _ in range(1 << 20)]),
    "a name without end": endless(HEAD + b'Content-Length: 99999999999\r\n\r\n{"models":["'),
    "garbage": once(os.urandom(4096)),
    "nothing": lambda s: time.sleep(30),
    "an end": lambda s: None,
    "half a head": once(b"HTTP/1.1 2"),
    "a drip": drip,
    "1xx without end": lambda s: [s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000) for _ in range(1 << 20)],
    "redirects": once(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
    "deep JSON": once(HEAD + b"Content-Length: 1000000\r\n\r\n" + b"[" * 1000000),
    "frames of HTTP/2 without end": endless(b"\0\0\0\4\0\0\0\0\0" * 1000),
}


@contextlib.contextmanager
def false_server(play):
    l = socket.create_server(("127.0.0.1", 0), backlog=64)
    over = threading.Event()

    def one(s):
        with contextlib.suppress(OSError), s:
            s.settimeout(20)
            s.recv(65536)
            play(s)

    def accept():
        while not over.is_set():
            with contextlib.suppress(OSError):
                s, _ = l.accept()
                threading.Thread(target=one, args=(s,), daemon=True).start()
    t = threading.Thread(target=accept, daemon=True)
    t.start()
    try:
        yield l.getsockname()[1]
    finally:
        over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(l.getsockname(), timeout=1).close()
        t.join(5)
        l.close()


@item("R9", "load on servers that never end, or make no sense: bench is bounded and says so", own=True)
def r9(_):
    for name, play in FALSE.items() if LONG else list(FALSE.items())[1:12:2]:
        for scheme in ("http", "grpc"):
            for known in ((), ("--shape", "x:1x4")) if LONG else ((),):
                with false_server(play) as port:
                    began = time.monotonic()
                    p = subprocess.Popen([COTENANT, "bench", f"{scheme}://127.0.0.1:{port}", "--models", "m", "--rate", "40", *known,
                                          "--duration", "0.4s", "--warmup", "0", "--give-up", "0.5s"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                    killer = threading.Timer(40, p.kill)
                    killer.start()
                    told = p.stderr.read().decode(errors="replace")
                    _, status, used = os.wait4(p.pid, 0)
                    p.returncode = code = os.waitstatus_to_exitcode(status)
                    killer.cancel()
                    check(code in (1, 4, 5, 6), f"{scheme}, {name}: exit {code} {told[-300:]}")
                    check(told.strip() != "", f"{scheme}, {name}: it says nothing")
                    check(SANE or used.ru_maxrss < 300 << 10, f"{scheme}, {name}: {used.ru_maxrss >> 10} MiB")
                    check(time.monotonic() - began < 30, f"{scheme}, {name}: {time.monotonic() - began:.0f} s")


def budget(server):
    text = server.call("GET", "/metrics", port="metrics")[2].decode()
    return int(text.split('cotenant_cores{state="budget"} ')[1].split("\n")[0])


def until_budget(server, wanted, seconds=30):
    end = time.monotonic() + seconds
    while budget(server) != wanted:
        check(time.monotonic() < end, f"the budget stays {budget(server)}, not {wanted}")
        served(server, n=1)
        time.sleep(0.1)


def pin(server, cpus):
    for tid in os.listdir(f"/proc/{server.process.pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(tid), cpus)


@item("R10a", "affinity changes while it serves", own=True)
def r10a(_):
    all_cpus = os.sched_getaffinity(0)
    with Server("zoo:lstm_kws", "zoo:squeezenet1_1") as s:
        whole = budget(s)
        for cpus in ([min(all_cpus)], [max(all_cpus)], all_cpus):
            pin(s, cpus)
            served(s)
            served(s, "squeezenet1_1")
            until_budget(s, min(whole, len(cpus)))
        check(s.stop() == 0, "it did not end well")


@item("R10b", "the quota is halved while it serves", own=True)
@needs
def r10b(_):
    with cgroup("cpu") as (group, new), Server("zoo:lstm_kws", "zoo:squeezenet1_1", preexec=join(group)) as s:
        whole = budget(s)
        if whole < 2:
            raise Missing("one core only")

        def quota(cores):
            if new:
                put(f"{group}/cpu.max", f"{cores * 100000 if cores else 'max'} 100000")
            else:
                put(f"{group}/cpu.cfs_quota_us", cores * 100000 if cores else -1)
        for cores in (1, 0):
            quota(cores)
            served(s)
            served(s, "squeezenet1_1")
            until_budget(s, cores or whole)
        check(s.stop() == 0, "it did not end well")


if __name__ == "__main__":
    main()
