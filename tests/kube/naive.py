"""A scheduler as simple as it can be, to try the harness with: reads everything once, then places pod after pod.

First fit by the rules of rules.py, pods with GPUs first; a gang goes whole or not at all; what has no place gets a
PodScheduled condition.
"""
import collections

import rules
from api import many, stamp
from objects import FRACTION, GPU, GPU_COUNT, GROUP, SCHEDULER
from resources import add, ended, pod_requests, quantity
from verify import View


class Naive:
    def __init__(self, api, scheduler=SCHEDULER):
        self.api, self.scheduler = api, scheduler

    def plan(self):
        """[(pod, node name)] and [pod without a place]."""
        nodes, _ = self.api.list("/api/v1/nodes")
        pods, _ = self.api.list("/api/v1/pods")
        self.view = View(nodes, pods)
        self.have = {n["metadata"]["name"]: {r: quantity(q) for r, q in n["status"]["allocatable"].items()}
                     for n in nodes}
        self.devices = {n["metadata"]["name"]: int(rules.labels_of(n).get(GPU_COUNT, 0)) * 1000 for n in nodes}
        for p in self.view.pods:
            self.charge(p, p["spec"]["nodeName"], -1)
        units = collections.OrderedDict()
        for p in pods:
            if not p["spec"].get("nodeName") and not ended(p) and p["spec"]["schedulerName"] == self.scheduler:
                units.setdefault(rules.labels_of(p).get(GROUP) or p["metadata"]["uid"], []).append(p)
        placed, without = [], []
        for unit in sorted(units.values(), key=lambda u: -pod_requests(u[0]["spec"]).get(GPU, 0)):
            (placed if self.place(unit) else without).extend(unit)
        return [(p, p["spec"]["nodeName"]) for p in placed], without

    def charge(self, pod, node, sign):
        requests = add(pod_requests(pod["spec"]), {"pods": 1000})
        add(self.have[node], requests, sign)
        part = float((pod["metadata"].get("annotations") or {}).get(FRACTION, 1))
        self.devices[node] += sign * round(requests.get(GPU, 0) * part)

    def place(self, unit):
        done = []
        for p in unit:
            node = next((n for n in self.view.nodes.values() if self.fits(p, n)), None)
            if not node:
                for q in done:
                    self.undo(q)
                return False
            self.put(p, node["metadata"]["name"])
            done.append(p)
        return True

    def put(self, pod, node):
        pod["spec"]["nodeName"] = node
        self.view.pods.append(pod)
        self.view.by_node[node].append(pod)
        self.charge(pod, node, -1)

    def undo(self, pod):
        node = pod["spec"]["nodeName"]
        self.charge(pod, node, 1)
        self.view.pods.remove(pod)
        self.view.by_node[node].remove(pod)
        del pod["spec"]["nodeName"]

    def fits(self, pod, node):
        name = node["metadata"]["name"]
        if any(v > self.have[name].get(r, 0) for r, v in add(pod_requests(pod["spec"]), {"pods": 1000}).items()):
            return False
        part = float((pod["metadata"].get("annotations") or {}).get(FRACTION, 1))
        if round(pod_requests(pod["spec"]).get(GPU, 0) * part) > self.devices[name]:
            return False
        self.put(pod, name)
        try:
            return not any(True for rule in rules.POD_RULES.values() for _ in rule(pod, node, self.view))
        finally:
            self.undo(pod)

    def run(self, connections=8):
        """Binds and says why not: (replies of binds, pods without a place)."""
        placed, without = self.plan()
        replies = many(placed, lambda b: self.api.bind(*b), connections)
        now = stamp()
        many(without, lambda p: self.api.patch(self.api.path(p, "status"), {
            "metadata": {"uid": p["metadata"]["uid"]}, "status": {"conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": now,
                 "message": f"0/{len(self.view.nodes)} nodes are available."}]}}), connections)
        return replies, without
