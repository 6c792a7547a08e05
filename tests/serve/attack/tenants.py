"""A server with a neighbour under attack: latencies of the neighbour quiet and attacked, memory, statuses.

The neighbour is `cotenant bench`, an open loop in a process of its own whose latencies count from the scheduled send
time. Samples that the generator itself sent late are left out: they describe the machine.
"""
import contextlib
import csv
import os
import resource
import signal
import subprocess
import tempfile
import threading
import time

import numpy as np

import graphs
from attacks import Attackers
from client import Connection, Gone, http_request
from harness import COTENANT, SANE, Failed, Server, check

TARGET_MS = 10
RATE = 100
MODEL = "lstm_kws"
NOISE_MS = 250        # of a quiet neighbour: beyond, the machine has no figure of its own
BUFFERED_MB, REQUEST_MB = 512, 128
MOST = 5 << 30        # bytes: a server beyond is killed before the machine runs out


def first(priority):
    """Runs before other programs of the machine, where that is allowed: the test is not about them."""
    def run():
        os.setsid()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, priority)
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write(str(priority))  # Linux weighs sessions against each other, and processes within one
    return run


def always():
    """A client is another machine: it runs whenever it can, where that is allowed. Kernels of fair scheduling let a
    process wait for 100 ms behind the threads of another one, whatever its priority."""
    first(-20)()
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))


def takes(setting):
    """Does this program have the setting? Older ones are measured too."""
    done = subprocess.run([COTENANT, "config", "dump", "--set", setting], capture_output=True, text=True, check=False)
    return done.returncode == 0


class Tenants:
    """The server: the neighbour, and a tenant with every graph."""

    def __init__(self, names=None, flags=(), limits=True):
        self.folder = tempfile.TemporaryDirectory(prefix="cotenant-graphs-")
        graphs.write(self.folder.name, names)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
        settings = ["--set", f"{MODEL}.target_ms={TARGET_MS}", "--log-level", "error"]
        if limits:
            settings += ["--buffered-mb", str(BUFFERED_MB)]
            settings += ["--set", f"request_mb={REQUEST_MB}"] if takes(f"request_mb={REQUEST_MB}") else []
        self.arguments = ("zoo:" + MODEL, self.folder.name)
        self.flags = [*settings, *flags]
        self.start()

    def start(self):
        self.server = Server(*self.arguments, flags=self.flags, preexec=first(-20),
                             env={"COTENANT_STORE": os.path.join(self.folder.name, "store")})
        self.quiet(1)

    def restart(self):
        self.server.leave()
        self.start()

    def stop(self):
        try:
            self.server.stop()
        finally:
            self.folder.cleanup()

    def quiet(self, seconds):
        return Load(self.server, seconds).end()


class Load:
    """The neighbour for some seconds; end() gives sorted latencies in ms, infinite for what was not answered."""

    RATE = RATE

    def __init__(self, server, seconds, rate=RATE):
        self.path = os.path.join(server.dir, f"records-{time.monotonic_ns()}.csv")
        self.process = subprocess.Popen(
            [COTENANT, "bench", f"http://127.0.0.1:{server.ports['http']}", "--models", MODEL, "--rate", str(rate), "--duration",
             f"{seconds}s", "--warmup", "0", "--give-up", "4s", "--records", self.path], preexec_fn=always,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.seconds = seconds

    def end(self):
        try:
            _, err = self.process.communicate(timeout=self.seconds + 60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return [float("inf")]
        if self.process.returncode != 0 or not os.path.exists(self.path):
            return [float("inf")]  # its first questions were not answered
        with open(self.path, newline="") as f:
            rows = list(csv.DictReader(f))
        os.remove(self.path)
        return sorted(float(r["latency_ms"]) if r["end"] == "ok" else float("inf")
                      for r in rows if float(r["lag_ms"] or 0) < 2) or [float("inf")]


class Fresh:
    """A client that connects anew for each request, in a process of its own; end() as that of Load."""

    RATE = 50

    def __init__(self, server, seconds, rate=RATE):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                always()
                self.child(server, seconds, rate, write)
            os._exit(0)
        os.close(write)

    @staticmethod
    def child(server, seconds, rate, write):
        ask = http_request(MODEL, {"mfcc": np.zeros((1, 49, 10), np.float32)})
        begin = time.monotonic()
        for i in range(int(seconds * rate)):
            due = begin + i / rate
            time.sleep(max(0, due - time.monotonic()))
            sent, status = time.monotonic(), 0
            with contextlib.suppress(Gone, OSError), Connection(server, timeout=1) as c:
                status = c.ask(ask)[0]
            took = (time.monotonic() - sent) * 1e3 if status == 200 else float("inf")
            os.write(write, f"{took}\n".encode())
            if time.monotonic() - begin > 2 * seconds + 1:
                return

    def end(self):
        with os.fdopen(self.read) as f:
            times = sorted(float(line) for line in f)
        os.waitpid(self.pid, 0)
        return times or [float("inf")]


class Memory(threading.Thread):
    """Peak memory of the server; one that grows beyond MOST is killed."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.over, self.most = server, threading.Event(), 0

    def run(self):
        with contextlib.suppress(OSError, IndexError):
            while not self.over.wait(0.01):
                self.most = max(self.most, self.server.rss())
                if self.most > MOST and not SANE:
                    self.server.process.kill()
                    return

    def end(self):
        self.over.set()
        self.join()
        return self.most


class Stalls:
    """Times in which no CPU ran even a thread of real-time priority: the machine stood still, as virtual ones do while
    their host maps memory. end() gives their lengths in ms; none where such threads are not allowed."""

    STEP, LATE = 0.002, 0.005  # seconds

    def __init__(self):
        self.children = []
        for cpu in os.sched_getaffinity(0):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                with contextlib.suppress(BaseException):
                    os.close(read)
                    self.child(cpu, write)
                os._exit(0)
            os.close(write)
            self.children.append((pid, read))

    @classmethod
    def child(cls, cpu, write):
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        parent, begin = os.getppid(), time.monotonic()
        while os.getppid() == parent:
            time.sleep(cls.STEP)
            now = time.monotonic()
            if now - begin > cls.STEP + cls.LATE:
                os.write(write, f"{begin + cls.STEP} {now}\n".encode())
            begin = now

    def end(self):
        common = None
        for pid, read in self.children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            with os.fdopen(read) as f:
                gaps = [tuple(map(float, line.split())) for line in f]
            common = gaps if common is None else [(max(a, c), min(b, d)) for a, b in common for c, d in gaps if max(a, c) < min(b, d)]
        return [(b - a) * 1e3 for a, b in common if b - a >= self.LATE]


def at(times, share):
    return times[min(len(times) - 1, int(share * len(times)))]


class Outcome:
    """What an attack did. The longest latencies are left out: as many as requests were due while the machine stalled."""

    def __init__(self, quiet, attacked, rss, idle, seen, stalls=(), rate=RATE):
        due = sum(1 + int(s * rate / 1e3) for s in stalls)
        self.attacked = attacked[:max(len(attacked) - due, len(attacked) // 2)]
        self.quiet, self.rss, self.idle, self.seen, self.stalls = quiet, rss, idle, seen, stalls
        self.bound = max(TARGET_MS, 2 * min(at(quiet, 0.99), NOISE_MS))

    def share(self):
        return sum(t <= self.bound for t in self.attacked) / len(self.attacked)

    def told(self):
        seen = ", ".join(f"{k} x {v[0]}" for k, v in sorted(self.seen.items()))
        stalls = f"; machine stalled {len(self.stalls)} x, {sum(self.stalls):.0f} ms" if self.stalls else ""
        return (f"p99 {at(self.quiet, 0.99):.1f} -> {at(self.attacked, 0.99):.1f} ms, {100 * self.share():.1f} % within "
                f"{self.bound:.0f} ms, memory {self.idle >> 20} -> {self.rss >> 20} MiB; {seen}{stalls}")


def play(tenants, attack, seconds, quiet_seconds=1.5):
    server = tenants.server
    idle = server.rss()
    kind = Fresh if attack.fresh else Load
    for _ in range(4):
        quiet = kind(server, quiet_seconds).end()
        if at(quiet, 0.99) <= TARGET_MS / 2 or SANE:
            break
    check(SANE or at(quiet, 0.95) < NOISE_MS, f"the neighbour is not served before the attack: p95 {at(quiet, 0.95)} ms")
    memory = Memory(server)
    stalls = Stalls()  # forks: before the thread
    memory.start()
    attackers = Attackers(server, attack, seconds + 0.3)
    time.sleep(0.3)
    attacked = kind(server, seconds).end()
    stalled = stalls.end()
    seen = attackers.end()
    return Outcome(quiet, attacked, memory.end(), idle, seen, stalled, kind.RATE)


def answered(server, request, seconds=10):
    """A valid request is answered again: its status at last, and the text."""
    end, told = time.monotonic() + seconds, (0, {}, b"")
    while time.monotonic() < end:
        with contextlib.suppress(Gone, OSError), Connection(server, timeout=seconds) as c:
            told = c.ask(http_request(*request))
            if told[0] == 200:
                return told
        time.sleep(0.1)
    return told


def settled(server, idle, slack=128 << 20, seconds=15):
    end = time.monotonic() + seconds
    while not SANE and server.rss() > idle + slack:
        check(time.monotonic() < end, f"memory does not come back: {idle >> 20} -> {server.rss() >> 20} MiB")
        time.sleep(0.1)


def alive(server):
    if not server.alive():
        raise Failed(f"the server ended with {server.process.returncode}: " + server.said()[-2000:])
