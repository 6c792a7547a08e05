#!/usr/bin/python3
"""What the harness itself promises: that its server, proxy, kubelet and checker do what tests rely on."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import objects as o
import verify
from api import MERGE, many, until
from cluster import Cluster
from informer import Informer
from kubelet import Kubelet
from naive import Naive
from proxy import Proxy
from resources import quantity
from scenario import check, equal, main, note, scenario

SIZED = {"requests": {"cpu": "2", "memory": "2Gi"}}


class Context:
    def __init__(self):
        self.cluster = Cluster()
        self.proxy = Proxy(self.cluster)

    def close(self):
        self.proxy.stop()
        self.cluster.stop()

    def empty(self):
        """No pods, no nodes, no rules."""
        self.proxy.clear()
        admin = self.cluster.admin
        pods, _ = admin.list("/api/v1/pods")
        many(pods, lambda p: admin.call("DELETE", admin.path(p), {"gracePeriodSeconds": 0}))
        nodes, _ = admin.list("/api/v1/nodes")
        many(nodes, lambda n: admin.delete(f"/api/v1/nodes/{n['metadata']['name']}"))
        equal(len(admin.list("/api/v1/pods")[0]), 0, "pods left")
        return admin


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def timed(items, fn):
    items = list(items)
    start = time.monotonic()
    out = many(items, fn)
    return out, len(items) / (time.monotonic() - start)


# The control plane.
@scenario("the API server is ready, and only the accounts' tokens are accepted")
def ready(x):
    admin, scheduler = x.cluster.admin, x.cluster.scheduler
    equal(admin.call("GET", "/readyz").status, 200, "readyz")
    equal(admin.must("GET", "/version")["major"] is not None, True, "version")
    equal(scheduler.call("GET", "/api/v1/nodes").status, 200, "the scheduler's account lists nodes")
    equal(scheduler.call("POST", "/api/v1/nodes", o.node("n")).status, 403, "the scheduler's account creates a node")
    x.cluster.scheduler.token, kept = "wrong", x.cluster.scheduler.token
    try:
        equal(scheduler.call("GET", "/api/v1/nodes").status, 401, "an unknown token")
    finally:
        x.cluster.scheduler.token = kept


@scenario("kubeconfigs name the server, its certificate and the account")
def kubeconfigs(x):
    for options in ({}, {"inline": True}, {"token_file": True}, {"url": x.proxy.url}):
        with open(x.cluster.kubeconfig(**options)) as f:
            text = f.read()
        check((options.get("url") or x.cluster.url) in text, text)
        check(("certificate-authority-data: LS0t" in text) == bool(options.get("inline")), text)
        check(("tokenFile:" in text) == bool(options.get("token_file")), text)


@scenario("kill -9 of the API server: it comes back with every object, and watches resume")
def restart(x):
    admin = x.empty()
    for i in range(3):
        admin.create_node(o.node(f"stays-{i}"))
    seen = set()
    informer = Informer(admin, "/api/v1/nodes", lambda kind, n: seen.add((kind, n["metadata"]["name"]))).start()
    seconds = x.cluster.restart_api()
    note(f"ready {seconds:.1f} s after kill -9")
    equal(len(x.cluster.admin.list("/api/v1/nodes")[0]), 3, "nodes after the restart")
    x.cluster.admin.create_node(o.node("new"))
    until(lambda: ("ADDED", "new") in seen, 60, "the informer sees a node made after the restart")
    informer.stop()
    equal(x.proxy.scheduler.call("GET", "/api/v1/nodes").status, 200, "the proxy after the restart")


@scenario("no process and no folder outlive a harness that is killed or ends by SIGTERM")
def leftovers(x):
    code = ("import sys, time; sys.path.insert(0, sys.argv[1]); from cluster import Cluster; c = Cluster();"
            "print(c.api.pid, c.etcd.pid, c.dir, flush=True); time.sleep(600)")
    here = os.path.dirname(os.path.abspath(__file__))
    for sig in (signal.SIGTERM, signal.SIGKILL):
        child = subprocess.Popen([sys.executable, "-c", code, here], stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "KUBE_APISERVER": x.cluster.server})
        api, etcd, folder = child.stdout.readline().split()
        child.send_signal(sig)
        child.wait(60)
        child.stdout.close()
        until(lambda: not any(alive(p) for p in (api, etcd)), 30, f"the processes are gone after signal {sig}")
        if sig == signal.SIGTERM:
            check(not os.path.exists(folder), f"{folder} is left behind")
        else:
            shutil.rmtree(folder, ignore_errors=True)  # nothing can remove it but the next


# The proxy.
@scenario("discovery through the proxy shows pods/resize, and not without it")
def discovery(x):
    def names(api):
        return {r["name"] for r in api.get("/api/v1")["resources"]}
    check("pods/resize" in names(x.proxy.scheduler), "the proxy does not show pods/resize")
    equal(names(x.proxy.scheduler) - names(x.cluster.admin), {"pods/resize"}, "what the proxy adds")
    x.proxy.options(resize=False)
    check("pods/resize" not in names(x.proxy.scheduler), "pods/resize is shown although it is off")
    x.proxy.options(resize=True)


@scenario("a bind with another pod's uid, an old resourceVersion or gates gets 409, and its own 201")
def binding(x):
    admin, through = x.empty(), x.proxy.scheduler
    admin.create_node(o.node("n"))
    first = admin.create_pod(o.pod("p"))
    admin.delete(admin.path(first), grace=0)
    second = admin.create_pod(o.pod("p"))
    reply = through.bind(first, "n")
    equal((reply.status, reply.body["reason"]), (409, "Conflict"), "bind with the old uid")
    equal(through.bind(second, "n", version="1").status, 409, "bind with an old resourceVersion")
    equal(admin.pod("p")["spec"].get("nodeName"), None, "node after refused binds")
    equal(through.bind(second, "n", version=second["metadata"]["resourceVersion"]).status, 201, "bind with its own")
    equal(through.bind(second, "n").status, 409, "a second bind")
    equal(through.bind(o.pod("absent"), "n", uid="u").status, 404, "bind of a pod that is not there")
    gated = x.proxy.admin.create_pod(o.pod("gated", schedulingGates=[{"name": "wait"}]))
    equal(gated["spec"]["schedulingGates"], [{"name": "wait"}], "gates shown")
    equal(through.condition(gated)["reason"], "SchedulingGated", "condition of a gated pod")
    equal(through.bind(gated, "n").status, 409, "bind of a gated pod")
    x.proxy.admin.patch(admin.path(gated), {"spec": {"schedulingGates": None}}, MERGE)
    equal(through.bind(gated, "n").status, 201, "bind once the gates are gone")


@scenario("a resize changes the pod as the API server and its watches show it, and stale ones fail")
def resize(x):
    admin, through = x.empty(), x.proxy.scheduler
    admin.create_node(o.node("n", cpu=8, memory="8Gi"))
    pod = admin.create_pod(o.pod("p"))
    seen = []
    informer = Informer(admin, "/api/v1/pods", lambda kind, p: seen.append(p)).start()
    reply = through.resize(pod, SIZED)
    equal(reply.status, 200, reply.text)
    equal(admin.pod("p")["spec"]["containers"][0]["resources"]["requests"], SIZED["requests"], "requests by GET")
    equal(admin.pod("p")["metadata"]["resourceVersion"], reply.body["metadata"]["resourceVersion"], "version")
    equal(reply.body["metadata"]["generation"], 1, "generation")
    until(lambda: any(p["metadata"]["resourceVersion"] == reply.body["metadata"]["resourceVersion"] for p in seen), 10,
          "the watch shows the resize")
    informer.stop()
    old = pod["metadata"]["resourceVersion"]
    equal(through.resize(pod, SIZED, version=old).status, 409, "a resize of an old version")
    equal(through.bind(pod, "n", version=old).status, 409, "a bind of the version before the resize")
    equal(through.bind(pod, "n").status, 201, "a bind after the resize")
    equal(through.resize(pod, {"requests": {"cpu": "3"}}).body["metadata"]["generation"], 2, "generation")
    equal(x.cluster.admin.call("PATCH", admin.path(pod, "resize"), {}).status, 404, "the API server itself")
    x.cluster.admin.must("PATCH", admin.path(pod, "status"), {"status": {"conditions": [
        {"type": "PodScheduled", "status": "True"}]}}, "application/strategic-merge-patch+json")


@scenario("resizes are refused as a recent API server refuses them: 422, 403, 409, 404, 415")
def resize_refused(x):
    admin, through = x.empty(), x.proxy.scheduler
    admin.create_node(o.node("n", cpu=8, memory="8Gi"))
    pod = admin.create_pod(o.pod("p", limits=True))
    loose = admin.create_pod(o.pod("loose", resources={"requests": {"cpu": "1", "memory": "1Gi",
                                                                    "ephemeral-storage": "1Gi"}}))
    full = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}

    def refused(code, reply, word):
        equal(reply.status, code, reply.text)
        check(word in reply.message, f"{word!r} is not in {reply.message!r}")
    refused(422, through.resize(pod, {"requests": {"cpu": "500m"}}), "QOS")
    equal(through.resize(pod, full).status, 200, "requests and limits of a Guaranteed pod")
    refused(422, through.resize(loose, {"requests": {"memory": None}}), "removed")
    refused(422, through.resize(loose, {"requests": {"ephemeral-storage": "2Gi"}}), "only cpu and memory")
    refused(422, through.resize(loose, SIZED, container="other"), "Required")
    refused(422, through.resize(loose, {"limits": {"cpu": "100m"}}), "less than or equal")
    refused(422, through.call("PATCH", admin.path(loose, "resize"), {"spec": {"containers": []}}, MERGE), "added")
    refused(400, through.resize(loose, {"requests": {"cpu": "many"}}), "quantities")
    refused(415, through.resize(loose, SIZED, kind="application/json-patch+json"), "format")
    refused(404, through.resize(o.pod("absent"), SIZED), "not found")
    refused(409, through.resize(loose, SIZED, version="1"), "modified")
    started = admin.create_pod(o.pod("init", initContainers=[{"name": "first", "image": "none", "resources": SIZED}]))
    refused(422, through.call("PATCH", admin.path(started, "resize"), {"spec": {"initContainers": [
        {"name": "first", "resources": {"requests": {"cpu": "3"}}}]}}, "application/strategic-merge-patch+json"),
        "non-sidecar")
    through.bind(loose, "n")
    reply = through.resize(loose, {"requests": {"cpu": "9"}})
    refused(403, reply, "capacity")
    equal(reply.body["details"]["causes"][0]["reason"], "NodeCapacity", "cause")
    admin.patch(admin.path(loose, "status"), {"status": {"phase": "Running"}})
    refused(422, through.resize(loose, SIZED), "without support")
    admin.create("/api/v1/namespaces/default/limitranges", {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "most"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "3"}, "min": {"cpu": "1m"}}]}})
    try:
        refused(403, through.resize(pod, {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}), "maximum cpu")
    finally:
        admin.delete("/api/v1/namespaces/default/limitranges/most")


@scenario("a resize needs the right to patch pods/resize")
def resize_rights(x):
    admin = x.empty()
    pod = admin.create_pod(o.pod("p"))
    path, name = "/apis/rbac.authorization.k8s.io/v1/clusterroles/", x.cluster.account[1]
    role = admin.get(path + name)
    kept = [dict(r) for r in role["rules"]]
    role["rules"] = [{**r, "resources": [n for n in r["resources"] if n != "pods/resize"]} for r in kept]
    role = admin.must("PUT", path + name, role)
    until(lambda: x.proxy.scheduler.resize(pod, SIZED).status == 403, 10, "403 without the right")
    role["rules"] = kept
    admin.must("PUT", path + name, role)
    until(lambda: x.proxy.scheduler.resize(pod, SIZED).status == 200, 10, "200 with the right")


@scenario("faults: a status with Retry-After, as often as the rule says, and only for what it matches")
def fault_status(x):
    admin, through = x.empty(), x.proxy.scheduler
    admin.create_node(o.node("n"))
    pod = admin.create_pod(o.pod("p"))
    for code in (409, 429, 500, 503):
        x.proxy.clear()
        x.proxy.fault(method="POST", path="/binding$", count=2, skip=0, do="status", code=code, retry_after=3)
        equal([through.bind(pod, "n", uid="none").status for _ in range(2)], [code] * 2, "hits")
        reply = through.call("GET", "/api/v1/nodes")
        equal(reply.status, 200, "a request that does not match")
        equal(through.bind(pod, "n", uid="none").status, 409, "after the hits: the real answer")
        equal(x.proxy.hits(), [2], "hits counted")
    x.proxy.clear()
    x.proxy.fault(path="nodes", count=1, do="status", code=429, retry_after=3)
    equal(through.call("GET", "/api/v1/nodes").headers["Retry-After"], "3", "Retry-After")
    x.proxy.fault(path="nodes", probability=0.5, do="status", code=503)
    got = [through.call("GET", "/api/v1/nodes").status for _ in range(40)]
    check(5 < got.count(503) < 35, f"{got.count(503)} of 40 hit by a probability of 0.5")
    try:
        x.proxy.fault(path="(", do="status")
        raise AssertionError("a rule that is no regular expression is accepted")
    except ValueError:
        pass


@scenario("faults: resets before and after the server has done it, status after it, delays")
def fault_reset(x):
    admin, through = x.empty(), x.proxy.scheduler
    admin.create_node(o.node("n"))
    pods = [admin.create_pod(o.pod(f"p-{i}")) for i in range(3)]

    def bind(i):
        try:
            return through.bind(pods[i], "n").status
        except (OSError, ConnectionError):
            return "reset"
        except Exception as e:
            return "reset" if "disconnected" in str(e).lower() else repr(e)
    x.proxy.fault(path="/p-0/binding", count=1, do="reset")
    x.proxy.fault(path="/p-1/binding", count=1, do="reset", forward=True)
    x.proxy.fault(path="/p-2/binding", count=1, do="status", code=504, forward=True)
    equal([bind(i) for i in range(3)], ["reset", "reset", 504], "answers")
    equal([admin.pod(f"p-{i}")["spec"].get("nodeName") for i in range(3)], [None, "n", "n"], "what was done")
    for do in ("delay", "delay-reply"):
        x.proxy.clear()
        x.proxy.fault(path="nodes", count=1, do=do, seconds=0.5)
        start = time.monotonic()
        equal(through.call("GET", "/api/v1/nodes").status, 200, do)
        check(time.monotonic() - start >= 0.5, f"{do} did not delay")


@scenario("faults: watches are cut, cut in mid-object, ended, expired by an ERROR event, and stalled")
def fault_watch(x):
    admin, through = x.empty(), x.proxy.admin
    for do in ("cut", "cut-mid", "end", "gone"):
        for by_rule in (False, True):
            x.proxy.clear()
            if by_rule:
                x.proxy.fault(path="nodes.*watch=1", count=1, do=do, events=1)
            _, version = admin.list("/api/v1/nodes")
            got, name = [], f"w-{do}-{by_rule}".lower()

            def follow(version=version, got=got):
                try:
                    for kind, item in through.watch("/api/v1/nodes", version):
                        got.append(kind if kind != "ERROR" else item["code"])
                    got.append("end")
                except Exception as e:
                    got.append(type(e).__name__)
            thread = threading.Thread(target=follow, daemon=True)
            thread.start()
            until(lambda: len(x.proxy.ask("GET", "rules")["watches"]) == 1, 30, "the watch alone is open")
            admin.create("/api/v1/nodes", o.node(name))
            until(lambda: got, 10, "an event")
            if not by_rule:
                equal(x.proxy.watches(do, "nodes"), 1, "watches")
            thread.join(20)
            want = {"end": ["end"], "gone": [410, "end"]}.get(do)
            check(got[0] == "ADDED" and (got[1:] == want if want else len(got) == 2 and got[1] != "end"),
                  f"{do} by {'a rule' if by_rule else 'hand'}: {got}")
    seen = []
    informer = Informer(through, "/api/v1/nodes", lambda kind, n: seen.append(n["metadata"]["name"])).start()
    until(lambda: len(x.proxy.ask("GET", "rules")["watches"]) == 1, 30, "the informer's watch alone is open")
    start = time.monotonic()
    equal(x.proxy.watches("stall", "nodes", seconds=1.0), 1, "watches")
    admin.create("/api/v1/nodes", o.node("late"))
    until(lambda: "late" in seen, 20, "the event after the stall")
    check(time.monotonic() - start >= 1.0, "the event was not stalled")
    for do in ("cut", "cut-mid", "end", "gone"):
        until(lambda do=do: x.proxy.watches(do, "nodes"), 30, "the informer's watch")
        admin.create("/api/v1/nodes", o.node(f"after-{do}"))
        until(lambda: f"after-{do}" in seen, 30, f"an informer goes on after {do}")
    check(informer.relists == 2, f"lists: {informer.relists}, expected the first and one after 410")
    informer.stop()


# The kubelet.
@scenario("the kubelet runs pods for their time, ends them as told, and deletes after the grace period")
def kubelet_runs(x):
    admin = x.empty()
    admin.create_node(o.node("n", cpu=8))
    with Kubelet(admin, leases=True):
        for p in (o.pod("short", seconds=0.2), o.pod("bad", seconds=0.2, notes={o.EXIT: "3"}), o.pod("long")):
            admin.bind(admin.create_pod(p), "n")
        until(lambda: admin.pod("short")["status"]["phase"] == "Succeeded", 30, lambda: admin.pod("short")["status"])
        until(lambda: admin.pod("bad")["status"]["phase"] == "Failed", 30, "a pod with an exit code fails")
        until(lambda: admin.pod("long")["status"]["phase"] == "Running", 30, "a pod without a time runs")
        check(admin.condition(admin.pod("long"), "Ready")["status"] == "True", "it is ready")
        admin.delete(admin.path(o.pod("long")), grace=5)
        until(lambda: admin.call("GET", admin.path(o.pod("long"))).status == 404, 30, "it is deleted")
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        until(lambda: admin.call("GET", leases + "/n").status == 200, 30, "the node's lease")


@scenario("the kubelet refuses what its node cannot hold: OutOfcpu, OutOfmemory, OutOfpods, OutOfnvidia.com/gpu")
def kubelet_refuses(x):
    admin = x.empty()
    admin.create_node(o.node("n", cpu=4, memory="4Gi", gpus=1, pods=3))
    with Kubelet(admin):
        wanted = [("fits", {}, None), ("cpu", {"cpu": 4}, "OutOfcpu"), ("memory", {"memory": "4Gi"}, "OutOfmemory"),
                  ("gpu", {"gpus": 2}, "OutOfnvidia.com/gpu"), ("two", {}, None), ("three", {}, None),
                  ("four", {"cpu": "1m", "memory": "1Mi"}, "OutOfpods")]
        for name, kinds, reason in wanted:
            admin.bind(admin.create_pod(o.pod(name, **kinds)), "n")
            until(lambda: admin.pod(name)["status"]["phase"] != "Pending", 30, name)
            status = admin.pod(name)["status"]
            equal((status["phase"], status.get("reason")), ("Failed", reason) if reason else ("Running", None), name)


@scenario("a gang starts its work together, and a profile's pod ends when its work is done")
def kubelet_gang(x):
    admin = x.empty()
    admin.create_node(o.node("n", cpu=16))
    with Kubelet(admin, profile=lambda pod: (4.0, lambda cores, memory: 4 * cores)) as k:
        a, b = [admin.create_pod(p) for p in o.gang("g", 2)]
        admin.bind(a, "n")
        until(lambda: admin.pod("g-0")["status"]["phase"] == "Running", 30, "the first runs")
        until(lambda: k.groups, 30, "the gang is known")
        time.sleep(1.5)
        equal(admin.pod("g-0")["status"]["phase"], "Running", "the first, before the second has come")
        admin.bind(b, "n")
        for name in ("g-0", "g-1"):
            until(lambda: admin.pod(name)["status"]["phase"] == "Succeeded", 30, f"{name} ends")


@scenario("the kubelet grants, defers and refuses resizes, and what it gave is shown and changes the pod's speed")
def kubelet_resizes(x):
    admin, through = x.empty(), x.proxy.scheduler
    admin.create_node(o.node("n", cpu=8, memory="8Gi"))

    def given(name):
        return through.pod(name)["status"]["containerStatuses"][0]["allocatedResources"]["cpu"]

    def pending(name):
        return through.condition(through.pod(name), "PodResizePending").get("reason")
    with Kubelet(admin, profile=lambda pod: (1000.0, lambda cores, memory: cores), slow_resize=0.5) as k:
        for name in ("p", "q"):
            admin.bind(admin.create_pod(o.pod(name, cpu=2, memory="2Gi")), "n")
        until(lambda: all("resources" in (through.pod(n)["status"].get("containerStatuses") or [{}])[0]
                          for n in ("p", "q")), 30, "resources are shown")
        p, q, seen = through.pod("p"), through.pod("q"), set()
        informer = Informer(through, "/api/v1/pods", lambda kind, pod: seen.update(
            c["type"] for c in pod["status"].get("conditions") or [])).start()  # the condition is there for a moment only
        uid = p["metadata"]["uid"]
        equal(through.resize(p, {"requests": {"cpu": "4"}}).status, 200, "a resize that fits")
        until(lambda: "PodResizeInProgress" in seen, 30, "it was in progress")
        until(lambda: given("p") == "4" and
              not through.condition(through.pod("p"), "PodResizeInProgress"), 30, "it is done")
        informer.stop()
        with k.lock:
            equal(k.running[uid].speed(), 4.0, "speed with 4 cores")
        equal(through.resize(q, {"requests": {"cpu": "6"}}).status, 200, "a resize without room")
        until(lambda: pending("q") == "Deferred", 30, "Deferred")
        equal(given("q"), "2", "it keeps its cores")
        equal(through.resize(p, {"requests": {"cpu": "1"}}).status, 200, "a resize that makes room")
        until(lambda: given("q") == "6", 30, lambda: f"the deferred one is done: {through.pod('q')['status']}")
        until(lambda: not pending("q"), 30, "its condition goes")
        equal(through.resize(p, {"requests": {"cpu": "8"}}).status, 200, "a resize up to the node's size")
        admin.patch("/api/v1/nodes/n/status", {"status": {"allocatable": {"cpu": "7"}}})
        until(lambda: k.nodes["n"]["cpu"] == 7000, 30, "the node shrinks")
        equal(through.resize(p, {"requests": {"cpu": "7500m"}}).status, 200, "a smaller resize of what is too large")
        until(lambda: pending("p") == "Infeasible", 30, lambda: f"Infeasible: {through.pod('p')['status']}")


# The checker.
@scenario("200 nodes and 1,600 pods: rates; a naive scheduler's placement is legal, and the kubelet runs it")
def whole(x):
    admin = x.empty()
    _, nodes = timed(o.cluster_nodes(200), admin.create_node)
    _, pods = timed(o.mixture(1600), admin.create_pod)
    never = [o.pod("never-cpu", cpu=1000), o.pod("never-label", nodeSelector={"is": "nowhere"})]
    many(never, admin.create_pod)
    tracker = verify.Tracker(admin)
    with Kubelet(admin) as k:
        naive = Naive(x.proxy.scheduler)
        start = time.monotonic()
        replies, without = naive.run()
        rate = len(replies) / (time.monotonic() - start)
        equal({r.status for r in replies}, {201}, "answers to binds")
        until(lambda: len(k.running) == len(replies), 120, lambda: f"{len(k.running)} of {len(replies)} run")
        verdict = verify.check(admin)
        until(lambda: sum(p["status"]["phase"] == "Running" for p in admin.list("/api/v1/pods")[0]) == len(replies),
              240, "all say Running")
        tracker.caught_up()
    note(f"{nodes:.0f} nodes/s (3 calls each), {pods:.0f} pods/s created; {len(replies)} bound, plan and binds "
         f"{rate:.0f} pods/s; API server {x.cluster.rss(x.cluster.api) >> 20} MB")
    equal([str(v) for v in verdict.violations], [], "violations")
    equal([str(v) for v in tracker.violations()], [], "violations at any time")
    equal(verdict.bound, 1602 - len(without), "bound")
    check({"default/never-cpu", "default/never-label"} <= {u["pod"] for u in verdict.unplaced}, str(verdict))
    equal(len(without), 2, "pods without a place")
    equal(verdict.unexplained(), [], "unplaced pods without a reason")
    equal(tracker.binds, len(replies), "binds seen")
    tracker.stop()


@scenario("binds per second through the proxy and past it")
def bind_rate(x):
    admin = x.empty()
    for i in range(20):
        admin.create_node(o.node(f"n-{i}", cpu=64))
    for name, api in (("past the proxy", x.cluster.scheduler), ("through the proxy", x.proxy.scheduler)):
        pods = many([o.pod(f"b{len(name)}-{i}", cpu="10m", memory="1Mi") for i in range(600)], admin.create_pod)
        replies, rate = timed(enumerate(pods), lambda b, api=api: api.bind(b[1], f"n-{b[0] % 20}"))
        equal({r.status for r in replies}, {201}, "answers")
        note(f"{rate:.0f} binds/s {name}, 8 connections")


@scenario("1,000 nodes and 10,000 pods: the kubelet runs and ends them all (only with COTENANT_LONG)")
def large(x):
    if not os.environ.get("COTENANT_LONG"):
        return
    admin = x.empty()
    many([o.node(f"n-{i:04d}") for i in range(1000)], admin.create_node)
    cpu = time.process_time()
    with Kubelet(admin, leases=True) as k:
        pods, created = timed([o.pod(f"p-{i}", seconds=1) for i in range(10000)], admin.create_pod)
        start = time.monotonic()
        replies, rate = timed(enumerate(pods), lambda b: x.cluster.scheduler.bind(b[1], f"n-{b[0] % 1000:04d}"))
        equal({r.status for r in replies}, {201}, "answers to binds")
        until(lambda: len(k.finished) == 10000, 600, lambda: f"{len(k.finished)} of 10,000 have ended")
        until(lambda: all(p["status"]["phase"] == "Succeeded" for p in k.watched_pods.known.values()), 600,
              "all say Succeeded", 1)
        seconds = time.monotonic() - start
    note(f"{created:.0f} pods/s created, {rate:.0f} binds/s, all ended {seconds:.0f} s after the first bind; "
         f"client, binder and kubelet {time.process_time() - cpu:.0f} s CPU; "
         f"API server {x.cluster.rss(x.cluster.api) >> 20} MB")


PLANTED = {
    "node": ([], [("p", o.pod("p"), "nowhere")]),
    "capacity": ([o.node("a", cpu=2)], [("p", o.pod("p", cpu=1), "a"), ("q", o.pod("q", cpu="1500m"), "a")]),
    "fraction": ([o.node("a", gpus=10, devices=1)],
                 [(f"p{i}", o.pod(f"p{i}", gpus=1, notes={o.FRACTION: "0.6"}), "a") for i in range(2)]),
    "selector": ([o.node("a")], [("p", o.pod("p", nodeSelector={"disk": "ssd"}), "a")]),
    "taint": ([o.node("a", taints=[o.taint("x", "y")])], [("p", o.pod("p", tolerations=[o.tolerate("x", "z")]), "a")]),
    "ports": ([o.node("a")], [("p", o.pod("p", ports=[80]), "a"), ("q", o.pod("q", ports=[80]), "a")]),
    "affinity": ([o.node("a", labels={o.ZONE: "1"}), o.node("b", labels={o.ZONE: "2"})],
                 [("p", o.pod("p", labels={"app": "x"}), "a"), ("q", o.pod("q", affinity=o.near({"app": "x"})), "b")]),
    "anti-affinity": ([o.node("a")], [("p", o.pod("p", affinity=o.near({"app": "x"}, o.HOST, away=True)), "a"),
                                      ("q", o.pod("q", labels={"app": "x"}), "a")]),
    "spread": ([o.node("a", labels={o.ZONE: "1"}), o.node("b", labels={o.ZONE: "2"})],
               [(f"p{i}", o.pod(f"p{i}", labels={"app": "x"}, topologySpreadConstraints=o.spread({"app": "x"})), "a")
                for i in range(2)]),
    "gang": ([o.node("a")], [("g-0", o.gang("g", 2)[0], "a"), ("g-1", o.gang("g", 2)[1], None)]),
    "gates": ([o.node("a")], [("p", o.pod("p", notes={o.GATES: '[{"name":"w"}]'}), "a")]),
}


@scenario("the checker rejects an illegal placement of each rule, and only for that rule")
def planted(x):
    for rule, (nodes, pods) in PLANTED.items():
        admin = x.empty()
        for n in nodes:
            admin.create_node(n)
        for _, p, where in pods:
            made = admin.create_pod(p)
            if where:
                equal(admin.bind(made, where).status, 201, f"{rule}: bind")
        verdict = verify.check(admin)
        equal(verdict.rules(), {rule}, f"planted {rule}: {verdict}")


@scenario("the checker accepts what only looks illegal: tolerated taints, a first pod of an affinity, even spread")
def legal(x):
    admin = x.empty()
    for name, zone in (("a", "1"), ("b", "2")):
        admin.create_node(o.node(name, labels={o.ZONE: zone}, gpus=10, devices=1, taints=[o.taint("x", "y")]))
    fine = dict(tolerations=[o.tolerate("x", "y")])
    even = dict(topologySpreadConstraints=o.spread({"app": "x"}), labels={"app": "x"})
    for p, where in ((o.pod("first", affinity=o.near({"app": "self"}), labels={"app": "self"}, **fine), "a"),
                     (o.pod("next", affinity=o.near({"app": "self"}), labels={"app": "self"}, **fine), "a"),
                     (o.pod("e0", **even, **fine), "a"), (o.pod("e1", **even, **fine), "b"),
                     (o.pod("half0", gpus=1, notes={o.FRACTION: "0.5"}, **fine), "b"),
                     (o.pod("half1", gpus=1, notes={o.FRACTION: "0.5"}, **fine), "b"),
                     (o.pod("port0", ports=[80], **fine), "a"), (o.pod("port1", ports=[80], **fine), "b")):
        equal(admin.bind(admin.create_pod(p), where).status, 201, "bind")
    verdict = verify.check(admin)
    equal(verdict.violations, [], str(verdict))


@scenario("the tracker notices a node that held too much for a moment, and pods that a kubelet refused")
def tracked(x):
    admin = x.empty()
    admin.create_node(o.node("a", cpu=2))
    tracker = verify.Tracker(admin)
    made = [admin.create_pod(o.pod(name, cpu="1500m")) for name in ("p", "q")]
    for p in made:
        admin.bind(p, "a")
    tracker.caught_up()
    with Kubelet(admin):
        until(lambda: tracker.refused, 30, "the refusal is noticed")
    equal({v.rule for v in tracker.violations()}, {"capacity", "refused"}, "rules")
    equal(verify.check(admin).violations, [], "violations now, after the refusal")
    tracker.stop()


@scenario("quantities are read exactly")
def quantities(x):
    for text, milli in {"1": 1000, "100m": 100, "1.5": 1500, "1Ki": 1024000, "2e3": 2000000, "0.1m": 1,
                        "1E": 10**21, ".5": 500, "1n": 1, "12E-1": 1200}.items():
        equal(quantity(text), milli, text)
    for text in ("", "1e", "x", "1ki", "1_0", " 1", "--1"):
        try:
            raise AssertionError(f"{text!r} is read as {quantity(text)}")
        except ValueError:
            pass


if __name__ == "__main__":
    main(Context)
