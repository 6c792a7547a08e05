"""`cotenant cluster schedule` with its pages, as a child process."""
import json
import os
import urllib.error
import urllib.request

import process
from api import until
from scenario import check
from scheduler import Scheduler


class Listening(Scheduler):
    """A scheduler with pages at self.url, and no records from an earlier one."""

    def __init__(self, cluster, *options, name="o", **more):
        self.url = f"http://127.0.0.1:{process.free_port()}"
        for old in ("log", "records"):
            path = os.path.join(cluster.dir, f"{name}.{old}")
            if os.path.exists(path):
                os.unlink(path)
        super().__init__(cluster, "--listen", self.url[7:], *options, name=name, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process.stop(self.child)

    def get(self, path, body=None, url=None):
        """Status and text."""
        data = json.dumps(body).encode() if body is not None else None
        try:
            with urllib.request.urlopen(urllib.request.Request((url or self.url) + path, data), timeout=10) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError:
            return 0, ""

    def ready(self, seconds=60):
        until(lambda: "leader" in self.get("/readyz")[1] or not self.alive(), seconds, lambda: "ready: " + self.said())
        check(self.alive(), self.said)
        return self


def samples(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[:1] != "#"}
