"""`cotenant cluster schedule` as a child process."""
import json
import os
import signal
import time

import process


class Scheduler:
    def __init__(self, cluster, *options, name="a", kubeconfig=None, lease=True):
        self.dir, self.name = cluster.dir, name
        self.log, self.records = (os.path.join(self.dir, f"{name}.{x}") for x in ("log", "records"))
        for path in (self.log, self.records):
            if os.path.exists(path):
                os.unlink(path)
        command = [os.environ["COTENANT"], "cluster", "schedule", "--kubeconfig", kubeconfig or cluster.kubeconfig(),
                   "--lease-namespace", cluster.account[0], "--identity", name, "--records", self.records, *options]
        self.child = process.start(command + ([] if lease else ["--no-lease"]), open(self.log, "ab"))

    def said(self, characters=4000):
        with open(self.log, "rb") as f:
            return f.read().decode(errors="replace")[-characters:]

    def recorded(self):
        if not os.path.exists(self.records):
            return []
        with open(self.records) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def alive(self):
        return self.child.poll() is None

    def usage(self):
        """Seconds of CPU and bytes of memory so far."""
        with open(f"/proc/{self.child.pid}/stat") as f:
            fields = f.read().rsplit(") ", 1)[1].split()
        with open(f"/proc/{self.child.pid}/status") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak * 1024

    def stop(self, sig=signal.SIGTERM, seconds=20):
        """Exit status, and how long it took."""
        start = time.monotonic()
        if self.alive():
            self.child.send_signal(sig)
        status = self.child.wait(seconds)
        process.stop(self.child)
        return status, time.monotonic() - start
