"""Is every placement legal? Read from the API server's own state, with nothing of the program under test.

check() judges what is there now. Tracker watches from the start: a pod that moved, a node that held too much at any
version, a pod that a kubelet refused. As a program: verify.py URL TOKEN CA, prints what is wrong, exit status 1.
"""
import collections
import sys

import rules
from api import Api, until
from informer import Informer
from objects import GROUP, GROUP_MIN, SCHEDULER
from resources import ended

Violation = collections.namedtuple("Violation", "rule pod node text")
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"


class View:
    """Nodes and the pods that have one."""

    def __init__(self, nodes, pods):
        self.nodes = {n["metadata"]["name"]: n for n in nodes}
        self.pods = [p for p in pods if p["spec"].get("nodeName") and not ended(p)]
        self.by_node = collections.defaultdict(list)
        for p in self.pods:
            self.by_node[p["spec"]["nodeName"]].append(p)

    def on(self, node):
        return self.by_node[node["metadata"]["name"]]

    def domain(self, pod, key):
        node = self.nodes.get(pod["spec"]["nodeName"])
        return rules.labels_of(node).get(key) if node else None

    @staticmethod
    def name(pod):
        return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


class Verdict:
    def __init__(self, violations, unplaced, bound):
        self.violations, self.unplaced, self.bound = violations, unplaced, bound

    def rules(self):
        return {v.rule for v in self.violations}

    def unexplained(self):
        """Unplaced pods without PodScheduled=False and a message."""
        return [u for u in self.unplaced if u["status"] != "False" or not u["message"]]

    def __str__(self):
        text = [f"{len(self.violations)} violations, {self.bound} pods bound, {len(self.unplaced)} unplaced"]
        text += [f"{v.rule}: {v.pod} on {v.node} {v.text}" for v in self.violations]
        text += [f"unplaced: {u['pod']}: {u['reason']}: {u['message']}" for u in self.unplaced]
        return "\n".join(text)


def group_minimum(api):
    """minMember by (namespace, name) of PodGroups, where the server has them."""
    reply = api.call("GET", GROUPS)
    return {(g["metadata"]["namespace"], g["metadata"]["name"]): g["spec"].get("minMember", 1)
            for g in (reply.body.get("items") or [])} if reply.status == 200 else {}


def gangs(pods, minimum):
    """A gang has none of its members placed, or its minimum; members that have ended were placed."""
    placed, least = collections.Counter(), {}
    for p in pods:
        name = rules.labels_of(p).get(GROUP)
        if name:
            key = p["metadata"]["namespace"], name
            noted = (p["metadata"].get("annotations") or {}).get(GROUP_MIN)
            least[key] = minimum.get(key, int(noted or 1))
            placed[key] += bool(p["spec"].get("nodeName"))
    for key, n in placed.items():
        if 0 < n < least[key]:
            yield Violation("gang", "/".join(key), "", f"has {n} of {least[key]} members placed")


def judge(nodes, pods, minimum=None, spread=True):
    """Violations of all rules. spread: also of topology spread, which only holds while nothing ends."""
    view, out = View(nodes, pods), []
    for p in view.pods:
        node = view.nodes.get(p["spec"]["nodeName"])
        if not node:
            out.append(Violation("node", view.name(p), p["spec"]["nodeName"], "is on a node that does not exist"))
            continue
        for name, rule in rules.POD_RULES.items():
            if name != "spread" or spread:
                out += [Violation(name, view.name(p), p["spec"]["nodeName"], t) for t in rule(p, node, view)]
    for name, node in view.nodes.items():
        for resource, amount, have in rules.over(node, view.on(node)):
            out.append(Violation("capacity", "", name, f"holds {amount / 1000:g} of {have / 1000:g} {resource}"))
        too_much = rules.fractions_over(node, view.on(node))
        if too_much:
            out.append(Violation("fraction", "", name, f"holds {too_much[0]} of {too_much[1]} thousandths of GPUs"))
    return out + list(gangs(pods, minimum or {}))


def unplaced(pods):
    for p in pods:
        if p["spec"].get("nodeName") or ended(p) or p["metadata"].get("deletionTimestamp"):
            continue
        said = next((c for c in p["status"].get("conditions") or [] if c["type"] == "PodScheduled"), {})
        yield {"pod": View.name(p), "scheduler": p["spec"].get("schedulerName"), "status": said.get("status", ""),
               "reason": said.get("reason", ""), "message": said.get("message", "")}


def check(api, spread=True, scheduler=SCHEDULER):
    """The verdict on all pods; unplaced ones of one scheduler."""
    nodes, _ = api.list("/api/v1/nodes")
    pods, _ = api.list("/api/v1/pods")
    waiting = [u for u in unplaced(pods) if u["scheduler"] == scheduler]
    bound = sum(1 for p in pods if p["spec"].get("nodeName"))
    return Verdict(judge(nodes, pods, group_minimum(api), spread), waiting, bound)


class Tracker:
    """Follows all pods from now on; violations() is what was ever wrong."""

    def __init__(self, api):
        self.api, self.node_of, self.wrong, self.nodes = api, {}, [], {}
        self.held = collections.defaultdict(dict)  # node -> uid -> pod
        self.refused, self.binds = [], 0
        self.watched_nodes = Informer(api, "/api/v1/nodes", self.node_changed).start()
        self.watched_pods = Informer(api, "/api/v1/pods", self.pod_changed).start()

    def node_changed(self, kind, node):
        if kind != "DELETED":
            self.nodes[node["metadata"]["name"]] = node

    def pod_changed(self, kind, pod):
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if not node:
            if uid in self.node_of:
                self.wrong.append(Violation("moved", View.name(pod), self.node_of[uid], "has lost its node"))
            return
        before = self.node_of.setdefault(uid, node)
        if before != node:
            self.wrong.append(Violation("moved", View.name(pod), node, f"was on {before}"))
        held = self.held[node]
        if kind == "DELETED" or ended(pod):
            if held.pop(uid, None) and (pod["status"].get("reason") or "").startswith("OutOf"):
                self.refused.append(Violation("refused", View.name(pod), node, pod["status"]["reason"]))
            return
        new = uid not in held
        held[uid] = pod
        if new:
            self.binds += 1
        for resource, amount, have in rules.over(self.nodes[node], held.values()) if node in self.nodes else ():
            self.wrong.append(Violation("capacity", View.name(pod), node,
                                        f"made it hold {amount / 1000:g} of {have / 1000:g} {resource}"))

    def caught_up(self, seconds=60):
        """Waits until it has seen all that is there now."""
        pods, _ = self.api.list("/api/v1/pods")
        want = {p["metadata"]["uid"] for p in pods if p["spec"].get("nodeName")}
        until(lambda: want <= set(self.node_of), seconds, "the tracker has seen every bound pod")
        return self

    def violations(self):
        return self.wrong + self.refused

    def stop(self):
        self.watched_nodes.stop()
        self.watched_pods.stop()


if __name__ == "__main__":
    verdict = check(Api(*sys.argv[1:4]))
    print(verdict)
    sys.exit(1 if verdict.violations else 0)
