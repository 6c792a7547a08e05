"""Soak: load, cancelled requests, loads, unloads and reloads must not grow a server's memory, threads or descriptors.

usage: soak.py [--seconds S] [--seed N]    with the program in COTENANT, as `make soak MINUTES=10` calls it
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/serve/attack"))
from h2 import CANCEL, H2, RST, blob, frame, message, tensor  # noqa: E402
from model import adder  # noqa: E402
from harness import COTENANT, SANE, Failed, Server, check  # noqa: E402

KINDS = 4          # files that versions take turns with: their profiles are known after a while
ROWS = 6           # shapes of the adder: more than are kept compiled


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.rename(path + ".new", path)


class Soak:
    def __init__(self, folder, rng):
        self.folder, self.rng, self.version, self.counts, self.log_at = folder, rng, 1, {}, 0
        self.config = os.path.join(folder, "cotenant.yaml")
        self.repo = os.path.join(folder, "repo")
        write(f"{self.repo}/adder/1/model.onnx", adder(1))
        self.settings(20)
        self.server = Server("--config", self.config, flags=["--store", f"{folder}/store", "--log-rate", "100000"])

    def settings(self, target):
        write(self.config, f"""sources: [repo]
models:
  - name: kws
    path: zoo:lstm_kws
    target_ms: {target}
    queue: {64 + target}
  - name: adder
    target_ms: {target}
""".encode())

    def count(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    # One request after the other, of every kind.
    def rest(self, rows, binary):
        values = [self.rng.random() for _ in range(4 * rows)]
        one = {"name": "x", "shape": [rows, 4], "datatype": "FP32"}
        tail = struct.pack(f"<{len(values)}f", *values) if binary else b""
        one.update({"parameters": {"binary_data_size": len(tail)}} if binary else {"data": values})
        head = json.dumps({"inputs": [one]}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head))} if binary else {}
        status, _, body = self.server.call("POST", "/v2/models/adder/infer", head + tail, headers)
        check(status == 200, f"adder: {status} {body[:200]}")
        out = json.loads(body)["outputs"][0]["data"]
        add = 1 + (self.version - 1) % KINDS
        check(all(abs(y - x - add) < 1e-4 for x, y in zip(values, out)), f"adder {self.version}: {out[:3]}")
        self.count("rest" if binary else "json")

    def grpc(self, cancel):
        with H2(self.server) as c:
            calls = []
            body = message(blob(1, "adder") + tensor("x", [1, 4]) + blob(7, struct.pack("<4f", 1, 2, 3, 4)))
            for _ in range(4):
                calls.append(c.call("ModelInfer", body))
                if cancel:
                    c.send(frame(RST, 0, calls[-1], struct.pack(">I", CANCEL)))
            self.count("cancelled" if cancel else "grpc", len(calls))
            if not cancel:
                check(all(c.answer(n)["grpc"] == 0 for n in calls), f"gRPC: {c.streams}")

    def leave(self, share):
        """Sends a share of a request and resets the connection."""
        body, headers = self.body
        head = "POST /v2/models/kws/infer HTTP/1.1\r\nHost: x\r\n"
        head += "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + f"Content-Length: {len(body)}\r\n\r\n"
        data = head.encode() + body
        with self.server.raw() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.sendall(data[:int(share * len(data))])
        self.count("cancelled")

    def ask(self):
        self.body = self.server.infer_body("kws")
        for _ in range(8):
            status, _, body = self.server.infer("kws", self.body)
            check(status == 200, f"kws: {status} {body[:200]}")
            self.count("rest")
        for rows in range(1, ROWS + 1):
            self.rest(rows, binary=rows % 2 == 0)
        self.grpc(cancel=False)
        self.grpc(cancel=True)
        for share in (0.05, 0.5, 0.99, 1, 1, 1):
            self.leave(share)
        for path, data in (("kws", b"{"), ("kws", b""), ("nobody", b"{}"), ("adder", b'{"inputs":[]}')):
            status = self.server.call("POST", f"/v2/models/{path}/infer", data)[0]
            check(status in (400, 404), f"{path} {data}: {status}")
            self.count("refused")

    # What is served changes.
    def until(self, what, ok, seconds=60):
        end = time.monotonic() + seconds
        while not ok():
            check(self.server.alive(), "the server ended: " + self.server.said()[-2000:])
            check(time.monotonic() < end, f"never: {what}; {self.server.said()[-1500:]}")
            time.sleep(0.01)

    def unload(self):
        status, body = self.server.admin_call("POST", "/v2/repository/models/kws/unload", b"{}")
        check(status == 200, f"unload: {status} {body[:200]}")
        self.until("kws unloads", lambda: self.server.call("GET", "/v2/models/kws/ready")[0] != 200)
        status, body = self.server.admin_call("POST", "/v2/repository/models/kws/load", b"{}")
        check(status == 200, f"load: {status} {body[:200]}")
        self.until("kws is back", lambda: self.server.call("GET", "/v2/models/kws/ready")[0] == 200)
        self.count("loads")

    def heard(self, word):
        """Whether the log says so since it was last looked at."""
        with open(self.server.log_path) as f:
            f.seek(self.log_at)
            text = f.read()
        self.log_at += text.rfind("\n") + 1
        return word in text[:text.rfind("\n") + 1]

    def reload(self):
        self.heard("")
        self.server.process.send_signal(signal.SIGHUP)
        self.until("the reload ends", lambda: self.heard("reloaded"))

    def renew(self):
        """A new version of the adder, and other settings of both."""
        self.version += 1
        write(f"{self.repo}/adder/{self.version}/model.onnx", adder(1 + (self.version - 1) % KINDS))
        self.settings(20 + self.version % 7)
        self.reload()
        self.until(f"version {self.version}",
                   lambda: self.server.metadata("adder")["versions"] == [str(self.version)])
        shutil.rmtree(f"{self.repo}/adder/{self.version - 1}")
        self.count("reloads")

    def spoil(self):
        """Reloads that fail: of the file, and of a version."""
        write(self.config, b"models: [{name: kws, path: zoo:lstm_kws, target_ms: fast}]\n")
        self.reload()
        self.settings(30)
        bad = f"{self.repo}/adder/{self.version + 1}"
        write(f"{bad}/model.onnx", adder(1)[:-9])
        self.reload()
        check(self.server.metadata("adder")["versions"] == [str(self.version)], "a broken version is served")
        shutil.rmtree(bad)
        self.reload()
        self.count("broken reloads", 2)

    def cycle(self):
        self.ask()
        self.unload()
        self.renew()
        if self.version % 4 == 2:
            self.spoil()
        for _ in range(200):  # connections that were reset are gone, and what they asked for
            if self.idle():
                break
            time.sleep(0.01)

    def idle(self):
        text = self.server.call("GET", "/metrics", port="metrics")[2].decode()
        open_now = [line for line in text.splitlines()
                    if line.startswith("cotenant_connections{") and 'listener="metrics"' not in line]
        return all(line.endswith(" 0") for line in open_now)

    def size(self):
        pid = self.server.process.pid
        with open(f"/proc/{pid}/maps") as f:
            maps = sum(1 for _ in f)
        return {"rss": self.server.rss(), "descriptors": self.server.fds(), "threads": self.server.threads(), "maps": maps}


def tenth(rows, n):
    """Medians of the n-th tenth."""
    part = rows[n * len(rows) // 10:max(n * len(rows) // 10 + 1, (n + 1) * len(rows) // 10)]
    return {k: statistics.median(r[k] for r in part) for k in part[0]}


def judge(rows):
    early, late = tenth(rows, 1), tenth(rows, 9)
    full = len(rows) >= 500  # requests that are remembered for `cotenant why` fill their table before
    spare = 8 + 2 * os.cpu_count()  # threads that the engine keeps for the next demotion
    slack = {"rss": 0.02 * early["rss"] if full else 6 << 20, "descriptors": 2, "threads": spare, "maps": 24}
    if SANE:
        slack["rss"] = 1 << 40
    return [f"{k}: {early[k]:.0f} -> {late[k]:.0f}" for k in early if late[k] > early[k] + slack[k]]


def tell(name, r):
    print(f"{name:22} rss {r['rss'] / 2**20:7.2f} MiB  descriptors {r['descriptors']:.0f}  "
          f"threads {r['threads']:.0f}  maps {r['maps']:.0f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=600)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--csv", help="each cycle as a row")
    o = p.parse_args()
    rows, begin = [], time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cotenant-soak-"))
        soak = Soak(folder, random.Random(o.seed))
        stack.enter_context(soak.server)
        while len(rows) < 3 or time.monotonic() - begin < o.seconds:
            soak.cycle()
            rows.append(soak.size())
            if len(rows) & (len(rows) - 1) == 0:
                tell(f"after {len(rows)} cycles", rows[-1])
        tell("medians, 2nd tenth", tenth(rows, 1))
        tell("medians, last tenth", tenth(rows, 9))
        if o.csv:
            with open(o.csv, "w") as f:
                f.write("cycle,rss,descriptors,threads,maps\n")
                f.writelines(f"{i},{r['rss']},{r['descriptors']},{r['threads']},{r['maps']}\n" for i, r in enumerate(rows))
        code = soak.server.stop(signal.SIGTERM)
        check(code == 0, f"it ended with {code}: {soak.server.said()[-1000:]}")
        said = soak.server.said()
    check(not SANE or ("ERROR: " not in said and "runtime error" not in said), said[-3000:])
    print(f"{len(rows)} cycles in {time.monotonic() - begin:.0f} s: " +
          ", ".join(f"{n} {k}" for k, n in sorted(soak.counts.items())))
    wrong = judge(rows)
    print("grew: " + "; ".join(wrong) if wrong else "as slim as before")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        print(f"{COTENANT}: {e}")
        sys.exit(1)
