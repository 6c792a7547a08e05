"""The kubelets of many nodes in one process: they admit or refuse, run, resize and end pods as real ones do.

A pod runs for the seconds of its annotation (objects.RUN_SECONDS), for what `profile(pod)` says, or for ever. A profile
is (work, rate): rate(cores, memory_bytes) is work done a second with what the pod has been given, so that a resize
changes when the pod ends. The members of a gang start their work together, once its minimum runs.
"""
import heapq
import http.client
import itertools
import json
import math
import queue
import threading
import time

from api import MERGE, stamp
from informer import Informer
from objects import ALLOCATED, EXIT, GROUP, GROUP_MIN, RUN_SECONDS
from resources import add, amounts, container_requests, ended, pod_requests

OUT_OF = {"cpu": "OutOfcpu", "memory": "OutOfmemory", "pods": "OutOfpods"}


class Running:
    """A pod that a kubelet has accepted."""

    def __init__(self, pod, node):
        self.pod, self.node, self.uid = pod, node, pod["metadata"]["uid"]
        self.sections = {c["name"]: c.get("resources") or {} for c in pod["spec"]["containers"]}
        self.started = None     # of its work
        self.done, self.since, self.timer = 0.0, None, 0
        self.stopping = self.over = False
        self.told = None        # condition of the last resize that was not granted
        self.work, self.rate = math.inf, lambda cores, memory: 1.0

    def allocated(self):
        given = {name: container_requests({"resources": s}) for name, s in self.sections.items()}
        return add(pod_requests(self.pod["spec"], given), {"pods": 1000})

    def speed(self):
        have = self.allocated()
        return self.rate(have.get("cpu", 0) / 1000, have.get("memory", 0) / 1000)


class Kubelet:
    """speed: seconds of work that pass in a second. stop_seconds: what a container takes to stop, at most the grace
    period. report: (annotation, seconds), progress written into the pod so often. resize: whether sizes are told,
    without which a running pod cannot be resized. slow_resize: seconds between agreeing to a resize and its end."""

    def __init__(self, api, profile=None, speed=1.0, stop_seconds=0.0, report=None, resize=True, slow_resize=0.0,
                 leases=False, workers=8, node_selector=None):
        self.api, self.profile, self.speed, self.stop_seconds = api, profile, speed, stop_seconds
        self.report, self.resize, self.slow_resize = report, resize, slow_resize
        self.lock, self.wake = threading.RLock(), threading.Condition(threading.Lock())
        self.nodes, self.waiting, self.running = {}, {}, {}     # by name; pods by name of node; by uid
        self.used, self.refused, self.finished = {}, {}, {}
        self.groups, self.timers, self.count = {}, [], itertools.count()
        self.todo, self.stopping, self.failures = [queue.SimpleQueue() for _ in range(workers)], threading.Event(), 0
        self.threads = [threading.Thread(target=self.send_loop, args=(q,), daemon=True) for q in self.todo]
        self.threads.append(threading.Thread(target=self.timer_loop, daemon=True))
        self.watched_nodes = Informer(api, "/api/v1/nodes", self.node_changed,
                                      **({"labelSelector": node_selector} if node_selector else {}))
        self.watched_pods = Informer(api, "/api/v1/pods", self.pod_changed, fieldSelector="spec.nodeName!=")
        if leases:
            self.later(0, self.heartbeat)
        if report:
            self.later(report[1], self.report_all)

    def start(self):
        for t in self.threads:
            t.start()
        self.watched_nodes.start()
        self.watched_pods.start()
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping.set()
        for q in self.todo:
            q.put(None)
        with self.wake:
            self.wake.notify()
        self.watched_nodes.stop()
        self.watched_pods.stop()
        end = time.monotonic() + 10  # for all: a thread may be waiting for a server that does not answer
        for t in self.threads:
            t.join(max(end - time.monotonic(), 0))

    # Time and calls.
    def later(self, seconds, fn, *given):
        with self.wake:
            heapq.heappush(self.timers, (time.monotonic() + max(seconds, 0), next(self.count), fn, given))
            self.wake.notify()

    def timer_loop(self):
        while not self.stopping.is_set():
            with self.wake:
                now = time.monotonic()
                if not self.timers or self.timers[0][0] > now:
                    self.wake.wait(min(self.timers[0][0] - now, 1) if self.timers else 1)
                    continue
                _, _, fn, given = heapq.heappop(self.timers)
            with self.lock:
                fn(*given)

    def send(self, method, path, body, kind="application/strategic-merge-patch+json", then=None):
        """What concerns one object is sent in order."""
        self.todo[hash(path.split("/status")[0]) % len(self.todo)].put((method, path, body, kind, then))

    def send_loop(self, todo):
        while True:
            job = todo.get()
            if job is None or self.stopping.is_set():
                return
            method, path, body, kind, then = job
            for attempt in range(100):
                try:
                    status = self.api.call(method, path, body, kind).status
                except (OSError, http.client.HTTPException):  # the server is away
                    status = 0
                if status not in (0, 429, 500, 503, 504) and not (status == 409 and method == "PATCH"):
                    break
                self.failures += 1
                if self.stopping.wait(min(0.05 * 2 ** attempt, 2)):
                    return
            if then:
                with self.lock:
                    then(status)

    # Nodes.
    def node_changed(self, kind, node):
        name = node["metadata"]["name"]
        with self.lock:
            if kind == "DELETED":
                self.nodes.pop(name, None)
                return
            self.nodes[name] = amounts(node["status"].get("allocatable"))
            for pod in self.waiting.pop(name, {}).values():
                self.pod_changed("MODIFIED", pod)

    def heartbeat(self):
        for name in self.nodes:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": name, "namespace": "kube-node-lease"},
                    "spec": {"holderIdentity": name, "leaseDurationSeconds": 40,
                             "renewTime": stamp()[:-1] + ".000000Z"}}
            path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

            def renew(status, path=path, name=name, body=body):
                if status == 404:
                    self.send("POST", path, body, "application/json")
            self.send("PATCH", f"{path}/{name}", {"spec": body["spec"]}, MERGE, renew)
        self.later(10, self.heartbeat)

    # Pods.
    def pod_changed(self, kind, pod):
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        with self.lock:
            mine = self.running.get(uid)
            if kind == "DELETED":
                self.waiting.get(node, {}).pop(uid, None)
                self.refused.pop(uid, None)
                return self.free(uid) if mine else None
            if node not in self.nodes and not mine:
                self.waiting.setdefault(node, {})[uid] = pod
                return None
            if mine:
                mine.pod = pod
            elif not ended(pod) and uid not in self.refused and uid not in self.finished:
                mine = self.admit(pod, node)
            if pod["metadata"].get("deletionTimestamp"):
                return self.terminate(pod, mine)
            if mine and not mine.stopping and not mine.over:
                self.consider_resize(mine)
        return None

    def admit(self, pod, node):
        mine = Running(pod, node)
        noted = (pod["metadata"].get("annotations") or {}).get(ALLOCATED)
        if noted:  # running since before this kubelet started
            mine.sections = {n: v["resources"] for n, v in json.loads(noted).items()}
        lacks = self.lacking(node, mine.allocated(), {})
        if lacks and not noted:
            return self.refuse(pod, OUT_OF.get(lacks, f"OutOf{lacks}"), lacks)
        self.running[mine.uid] = mine
        add(self.used.setdefault(node, {}), mine.allocated())
        if not pod["metadata"].get("deletionTimestamp"):
            self.send("PATCH", self.api.path(pod, "status"), self.running_status(mine),
                      then=lambda status: self.began(mine) if status == 200 else None)
        return mine

    def lacking(self, node, wanted, old):
        """The first resource of which a node has not enough, if `wanted` takes the place of `old`."""
        have, used = self.nodes.get(node, {}), self.used.get(node, {})
        for name, amount in wanted.items():
            if amount > old.get(name, 0) and used.get(name, 0) - old.get(name, 0) + amount > have.get(name, 0):
                return name
        return None

    def refuse(self, pod, reason, lacks):
        self.refused[pod["metadata"]["uid"]] = (pod["metadata"]["name"], reason)
        self.send("PATCH", self.api.path(pod, "status"), {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {
            "phase": "Failed", "reason": reason, "startTime": stamp(),
            "message": f"Pod Node didn't have enough resource: {lacks}"}})

    def running_status(self, mine):
        now = stamp()
        ready = [{"type": t, "status": "True", "lastTransitionTime": now, "lastProbeTime": None}
                 for t in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")]
        return {"metadata": {"uid": mine.uid, **self.notes(mine)}, "status": {
            "phase": "Running", "startTime": now, "conditions": ready, "containerStatuses": [
                self.container_status(c, {"running": {"startedAt": now}}, True)
                for c in mine.pod["spec"]["containers"]]}}

    @staticmethod
    def container_status(container, state, ready):
        return {"name": container["name"], "image": container.get("image", ""), "imageID": "none",
                "containerID": "test://" + container["name"], "ready": ready, "started": ready, "restartCount": 0,
                "state": state, "lastState": {}}

    def notes(self, mine):
        """What an older server would drop from containerStatuses, as an annotation: the proxy shows it in its place."""
        if not self.resize:
            return {}
        return {"annotations": {ALLOCATED: json.dumps({
            n: {"allocated": s.get("requests") or {}, "resources": s} for n, s in mine.sections.items()})}}

    # Work.
    def began(self, mine):
        if mine.over or mine.stopping:
            return
        notes = mine.pod["metadata"].get("annotations") or {}
        if self.profile:
            mine.work, mine.rate = self.profile(mine.pod) or (math.inf, mine.rate)
        elif RUN_SECONDS in notes:
            mine.work = float(notes[RUN_SECONDS])
        name = (mine.pod["metadata"].get("labels") or {}).get(GROUP)
        if not name:
            return self.go(mine)
        group = self.groups.setdefault((mine.pod["metadata"]["namespace"], name), {})
        group[mine.uid] = mine
        if len(group) >= int(notes.get(GROUP_MIN, 1)):
            for member in group.values():
                if member.started is None:
                    self.go(member)

    def go(self, mine):
        mine.started = mine.since = time.monotonic()
        self.aim(mine)

    def settle(self, mine):
        """Counts the work since the last change of speed."""
        if mine.since is not None:
            now = time.monotonic()
            mine.done += (now - mine.since) * self.speed * mine.speed()
            mine.since = now

    def aim(self, mine):
        """Sets the time at which its work is done."""
        mine.timer += 1
        pace = mine.speed() * self.speed
        if mine.since is not None and pace > 0 and mine.work < math.inf:
            self.later((mine.work - mine.done) / pace, self.end_if, mine, mine.timer)

    def end_if(self, mine, timer):
        if timer == mine.timer and mine.uid in self.running and not mine.over and not mine.stopping:
            mine.done = mine.work
            code = int((mine.pod["metadata"].get("annotations") or {}).get(EXIT, 0))
            self.finish(mine, "Succeeded" if code == 0 else "Failed", code)

    def finish(self, mine, phase, code):
        mine.over = True
        self.finished[mine.uid] = time.monotonic()
        now = stamp()
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "finishedAt": now}}
        self.send("PATCH", self.api.path(mine.pod, "status"), {
            "metadata": {"uid": mine.uid}, "status": {"phase": phase, "containerStatuses": [
                {**self.container_status(c, state, False), "state": {**state, "running": None}}
                for c in mine.pod["spec"]["containers"]]}})
        self.free(mine.uid)

    def free(self, uid):
        mine = self.running.pop(uid)
        add(self.used[mine.node], mine.allocated(), -1)
        labels = mine.pod["metadata"].get("labels") or {}
        if GROUP in labels:
            self.groups.get((mine.pod["metadata"]["namespace"], labels[GROUP]), {}).pop(uid, None)
        self.retry_deferred(mine.node)

    def terminate(self, pod, mine):
        uid = pod["metadata"]["uid"]
        if mine:
            if mine.stopping:
                return
            mine.stopping = True
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        self.later(min(grace, self.stop_seconds) if mine else 0, self.send, "DELETE", self.api.path(pod), {
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid}},
            "application/json")

    # Resizes.
    def consider_resize(self, mine):
        wanted = {c["name"]: c.get("resources") or {} for c in mine.pod["spec"]["containers"]}
        if wanted == mine.sections:
            if mine.told:
                self.tell(mine, None)
            return
        old = mine.allocated()
        given = {n: container_requests({"resources": s}) for n, s in wanted.items()}
        new = add(pod_requests(mine.pod["spec"], given), {"pods": 1000})
        never = [n for n, v in new.items() if v > self.nodes.get(mine.node, {}).get(n, 0)]
        if never:
            return self.tell(mine, ("PodResizePending", "Infeasible", f"Node didn't have enough capacity: {never[0]}"))
        lacks = self.lacking(mine.node, new, old)
        if lacks:
            return self.tell(mine, ("PodResizePending", "Deferred", f"Node didn't have enough resource: {lacks}"))
        self.settle(mine)
        add(add(self.used[mine.node], old, -1), new)
        mine.sections = wanted
        self.aim(mine)
        if self.slow_resize:
            self.tell(mine, ("PodResizeInProgress", "", ""))
            self.later(self.slow_resize, self.tell, mine, None)
        else:
            self.tell(mine, None)
        if any(new.get(n, 0) < v for n, v in old.items()):
            self.retry_deferred(mine.node)

    def retry_deferred(self, node):
        for other in [m for m in self.running.values() if m.node == node and m.told and not m.over]:
            if other.told[1] == "Deferred":
                self.consider_resize(other)

    def tell(self, mine, condition):
        """Writes the state of a resize: a condition, or none and what has been given."""
        if mine.uid not in self.running or mine.told == condition and condition:
            return
        old, mine.told = mine.told, condition
        conditions = [{"type": t, "$patch": "delete"} for t in ("PodResizePending", "PodResizeInProgress")
                      if old and old[0] == t and (not condition or condition[0] != t)]
        if condition:
            kind, reason, message = condition
            conditions.append({"type": kind, "status": "True", "lastTransitionTime": stamp(), "lastProbeTime": None,
                               **({"reason": reason, "message": message} if reason else {})})
        in_progress = condition and condition[0] == "PodResizeInProgress"
        meta = {"uid": mine.uid, **({} if in_progress else self.notes(mine))}
        self.send("PATCH", self.api.path(mine.pod, "status"), {
            "metadata": meta, "status": {"conditions": conditions} if conditions else {}})

    def report_all(self):
        for mine in list(self.running.values()):
            if mine.since is not None:
                self.settle(mine)
                self.aim(mine)
                self.send("PATCH", self.api.path(mine.pod), {"metadata": {
                    "uid": mine.uid, "annotations": {self.report[0]: f"{mine.done:.3f}"}}}, MERGE)
        self.later(self.report[1], self.report_all)
