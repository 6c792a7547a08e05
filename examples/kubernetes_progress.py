#!/usr/bin/env python3
"""Reports iterations of a training loop to cotenant, over HTTP or by an annotation of the own pod.

    from kubernetes_progress import Progress
    progress = Progress("http://cotenant.cotenant:10260")   # or Progress() for the annotation
    for batch in batches:
        train(batch)
        progress.step()

HTTP needs POD_NAMESPACE, POD_NAME and POD_UID from the downward API (see deploy/kubernetes/example-gang.yaml). The
annotation needs the right to patch pods in the own namespace. One report each `seconds`; training never waits for
longer than `timeout`, and never fails because of a report. In a gang, one member that reports is enough.
"""
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"


def read(path):
    with open(path) as f:
        return f.read().strip()


class Progress:
    def __init__(self, url=None, seconds=15, timeout=2, clock=time.monotonic):
        self.url, self.seconds, self.timeout, self.clock = url, seconds, timeout, clock
        self.done, self.last, self.warned = 0, None, False

    def step(self, iterations=1):
        self.done += iterations
        now = self.clock()
        if self.last is None:
            self.last = (now, self.done)
        elif now - self.last[0] >= self.seconds:
            rate = (self.done - self.last[1]) / (now - self.last[0])
            self.last = (now, self.done)
            self.report(rate)

    def report(self, rate):
        """True if it arrived. A fault is printed once."""
        try:
            (self.post if self.url else self.annotate)(rate)
            return True
        except (OSError, KeyError, ValueError) as e:
            if not self.warned:
                print(f"progress is not reported: {e}", file=sys.stderr)
            self.warned = True
            return False

    def post(self, rate):
        body = {"namespace": os.environ["POD_NAMESPACE"], "pod": os.environ["POD_NAME"],
                "uid": os.environ["POD_UID"], "iterations": self.done, "iterations_per_second": rate}
        request = urllib.request.Request(self.url.rstrip("/") + "/progress", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"}, method="POST")
        for attempt in range(4):
            try:
                return urllib.request.urlopen(request, timeout=self.timeout).close()
            except urllib.error.HTTPError as e:
                if e.code != 503 or attempt == 3:  # 503: a standby; the next connection may reach the leader
                    raise

    def annotate(self, rate):
        host = os.environ["KUBERNETES_SERVICE_HOST"]
        where = f"[{host}]" if ":" in host else host
        name = os.environ.get("POD_NAME") or os.uname().nodename
        url = (f"https://{where}:{os.environ['KUBERNETES_SERVICE_PORT']}/api/v1/namespaces/"
               f"{read(ACCOUNT + 'namespace')}/pods/{name}")
        text = f"{self.done} {rate:.6g} {time.time():.3f}"
        patch = {"metadata": {"annotations": {"cotenant.io/progress": text}}}
        request = urllib.request.Request(url, json.dumps(patch).encode(), method="PATCH", headers={
            "Authorization": "Bearer " + read(ACCOUNT + "token"), "Content-Type": "application/merge-patch+json"})
        context = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
        urllib.request.urlopen(request, timeout=self.timeout, context=context).close()


if __name__ == "__main__":  # a loop of sleeps: kubernetes_progress.py [URL] [STEPS]
    progress = Progress(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else None, seconds=1)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 100):
        time.sleep(0.1)
        progress.step()
    print(progress.done, "iterations")
