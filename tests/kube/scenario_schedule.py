#!/usr/bin/python3
"""`cotenant cluster schedule` on a real API server: placements are legal, gangs whole, another instance takes over."""
import signal
import time

import objects as o
import verify
from api import many, until
from cluster import Cluster
from kubelet import Kubelet
from proxy import Proxy
from scenario import check, equal, main, note, scenario
from scheduler import Scheduler


class Context:
    def __init__(self):
        self.cluster = Cluster()

    def close(self):
        self.cluster.stop()

    def empty(self):
        admin = self.cluster.admin
        pods, _ = admin.list("/api/v1/pods")
        many(pods, lambda p: admin.call("DELETE", admin.path(p), {"gracePeriodSeconds": 0}))
        nodes, _ = admin.list("/api/v1/nodes")
        many(nodes, lambda n: admin.delete(f"/api/v1/nodes/{n['metadata']['name']}"))
        return admin


def bound(admin):
    return [p for p in admin.list("/api/v1/pods")[0] if p["spec"].get("nodeName")]


def waits(admin, count, seconds, scheduler):
    until(lambda: len(bound(admin)) >= count or not scheduler.alive(), seconds,
          lambda: f"{len(bound(admin))} of {count} pods bound: {scheduler.said()}", 0.5)
    check(scheduler.alive(), lambda: scheduler.said())


@scenario("single pods, a gang and a pod that cannot fit")
def small(x):
    admin = x.empty()
    many([o.node(f"n{i}", 16, "64Gi", gpus=4) for i in range(3)], admin.create_node)
    pods = [o.pod("a", gpus=1), o.pod("b", cpu=2), *o.gang("g", 3, gpus=2), o.pod("large", gpus=8),
            *o.gang("part", 4, minimum=5, gpus=1)]
    with Kubelet(admin):
        s = Scheduler(x.cluster)
        try:
            many(pods, admin.create_pod)
            waits(admin, 5, 60, s)
            until(lambda: admin.condition(admin.pod("large")) and admin.condition(admin.pod("part-0")), 30,
                  lambda: "conditions: " + s.said())
            large, part = (admin.condition(admin.pod(n)) for n in ("large", "part-0"))
            check("Insufficient nvidia.com/gpu" in large["message"], large)
            equal(large["reason"], "Unschedulable", "reason")
            check("4 of 5 pods" in part["message"], part)
            verdict = verify.check(admin)
            check(not verdict.violations, verdict)
            equal(verdict.bound, 5, "pods bound")
            equal(s.stop()[0], 0, "exit status")
        finally:
            s.stop(signal.SIGKILL)


@scenario("200 nodes and 1,600 mixed pods: all placed legally")
def large(x):
    admin = x.empty()
    many(o.cluster_nodes(200), admin.create_node)
    pods = o.mixture(1600)
    with Kubelet(admin):
        tracker = verify.Tracker(admin)
        s = Scheduler(x.cluster)
        try:
            many(pods, admin.create_pod)
            created = time.monotonic()
            try:
                waits(admin, len(pods), 120, s)
            except AssertionError:
                pass  # the verdict says which pods have no place, and what they were told
            took = time.monotonic() - created
            tracker.caught_up()
            verdict = verify.check(admin)
            cpu, memory = s.usage()
            binds = sorted(r["took_s"] for r in s.recorded() if r.get("what") == "bind" and r["done"])
            note(f"{verdict.bound} of {len(pods)} bound {took:.1f} s after the last was made; {cpu:.1f} s of CPU, "
                 f"{memory >> 20} MiB; decision to bound p50 {binds[len(binds) // 2]:.3f} s, "
                 f"p99 {binds[len(binds) * 99 // 100]:.3f} s")
            check(not verdict.violations and not tracker.violations(), lambda: f"{verdict} {tracker.violations()[:5]}")
            check(not verdict.unexplained(), lambda: f"unexplained: {verdict.unexplained()[:5]}")
            equal(verdict.bound, len(pods), f"pods bound {str(verdict)[:2000]} {s.said()}")
        finally:
            tracker.stop()
            s.stop(signal.SIGKILL)


@scenario("kill -9 of the leader: another instance takes over, nothing is bound twice")
def take_over(x):
    admin = x.empty()
    many([o.node(f"n{i}", 64, "256Gi", gpus=8) for i in range(20)], admin.create_node)
    with Kubelet(admin):
        tracker = verify.Tracker(admin)
        a, b = Scheduler(x.cluster, name="a"), None
        try:
            until(lambda: "leading" in a.said(), 30, lambda: a.said())
            b = Scheduler(x.cluster, name="b")
            many([o.pod(f"p{i}", gpus=i % 3) for i in range(60)], admin.create_pod)
            until(lambda: len(bound(admin)) > 10, 30, lambda: a.said())
            a.stop(signal.SIGKILL)
            killed = time.monotonic()
            many([o.pod(f"q{i}", gpus=i % 2) for i in range(40)], admin.create_pod)
            waits(admin, 100, 60, b)
            note(f"the last pod was bound {time.monotonic() - killed:.1f} s after the kill")
            tracker.caught_up()
            verdict = verify.check(admin)
            check(not verdict.violations and not tracker.violations(), lambda: f"{verdict} {tracker.violations()[:5]}")
            status, took = b.stop()
            equal(status, 0, "exit status")
            note(f"a clean exit took {took:.2f} s")
        finally:
            tracker.stop()
            a.stop(signal.SIGKILL)
            if b:
                b.stop(signal.SIGKILL)


@scenario("a higher priority evicts a whole gang of a lower one")
def preempts(x):
    admin = x.empty()
    for name, value in (("high", 100), ("low", 1)):
        admin.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                   {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                    "value": value})
    many([o.node(f"n{i}", 16, "64Gi", gpus=4) for i in range(2)], admin.create_node)
    with Kubelet(admin):
        s = Scheduler(x.cluster, "--min-run", "0")
        try:
            many(o.gang("low", 2, gpus=3, priorityClassName="low"), admin.create_pod)
            waits(admin, 2, 60, s)
            admin.create_pod(o.pod("high", gpus=4, priorityClassName="high"))
            until(lambda: admin.pod("high")["spec"].get("nodeName"), 60, lambda: s.said())
            left = {p["metadata"]["name"] for p in admin.list("/api/v1/pods")[0]}
            equal(left, {"high"}, "pods left")
        finally:
            s.stop(signal.SIGKILL)


@scenario("binds that are lost, refused or answered with errors: every pod is bound, once")
def faults(x):
    admin = x.empty()
    many([o.node(f"n{i}", 64, "256Gi", gpus=8) for i in range(20)], admin.create_node)
    with Kubelet(admin), Proxy(x.cluster) as proxy:
        tracker = verify.Tracker(admin)
        for i, rule in enumerate(({"do": "reset", "forward": True}, {"do": "reset"}, {"do": "status", "code": 409},
                                  {"do": "status", "code": 500, "forward": True}, {"do": "status", "code": 503},
                                  {"do": "status", "code": 429, "retry_after": 1})):
            proxy.fault(method="POST", path="/binding$", probability=0.08, seed=i + 1, **rule)
        proxy.fault(method="GET", path="/pods\\?.*watch=", do="cut-mid", events=20, count=5)
        s = Scheduler(x.cluster, kubeconfig=x.cluster.kubeconfig(url=proxy.url))
        try:
            pods = [o.pod(f"p{i}", gpus=i % 3 // 2) for i in range(120)]
            for i in range(8):
                pods += o.gang(f"g{i}", 4, gpus=1)
            many(pods, admin.create_pod)
            waits(admin, len(pods), 90, s)
            note(f"faults {proxy.hits()}; {sum(r.get('what') == 'bind' and not r['done'] for r in s.recorded())} binds failed")
            tracker.caught_up()
            verdict = verify.check(admin)
            check(not verdict.violations and not tracker.violations(), lambda: f"{verdict} {tracker.violations()[:5]}")
        finally:
            tracker.stop()
            s.stop(signal.SIGKILL)


@scenario("fungible pods are resized within their bounds, fixed ones never")
def fungible(x):
    admin = x.empty()
    notes = {"cotenant.io/fungible": "true", "cotenant.io/cores-min": "1", "cotenant.io/cores-max": "12",
             "cotenant.io/memory-min": "1Gi", "cotenant.io/memory-max": "64Gi"}
    many([o.node(f"n{i}", 32, "256Gi", gpus=8) for i in range(2)], admin.create_node)
    with Proxy(x.cluster) as proxy, Kubelet(admin):
        tracker = verify.Tracker(admin)
        s = Scheduler(x.cluster, kubeconfig=x.cluster.kubeconfig(url=proxy.url))
        try:
            pods = [o.pod(f"f{i}", cpu=4, memory="16Gi", gpus=1, limits=i % 2 == 0,
                          notes={**notes, "cotenant.io/model": ("resnet18", "bert", "alexnet")[i % 3]})
                    for i in range(6)]
            many(pods + [o.pod(f"x{i}", cpu=4, gpus=1) for i in range(2)], admin.create_pod)
            waits(admin, 8, 60, s)
            until(lambda: any(r.get("what") == "resize" and r["done"] for r in s.recorded()), 60, lambda: s.said())
            tracker.caught_up()
            verdict = verify.check(admin)
            check(not verdict.violations and not tracker.violations(), lambda: f"{verdict} {tracker.violations()[:5]}")
            pods = {p["metadata"]["name"]: p for p in admin.list("/api/v1/pods")[0]}
            for name, pod in pods.items():
                have = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
                if name[0] == "x":
                    equal(have, "4", name)
                    equal(pod["status"]["qosClass"], "Burstable", name)
                elif int(name[1:]) % 2 == 0:
                    equal(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"], have, name)
            note(str({n: p["spec"]["containers"][0]["resources"]["requests"]["cpu"] for n, p in pods.items()}))
        finally:
            tracker.stop()
            s.stop(signal.SIGKILL)


@scenario("50 pods a second: from creation to bound")
def pace(x):
    admin = x.empty()
    many([o.node(f"n{i}", 64, "256Gi", gpus=8) for i in range(50)], admin.create_node)
    with Kubelet(admin):
        s, made, seen = Scheduler(x.cluster), {}, {}
        try:
            until(lambda: "is listed" in s.said(), 30, lambda: s.said())
            start = time.monotonic()
            for i in range(300):
                time.sleep(max(0, start + i / 50 - time.monotonic()))
                made[f"p{i}"] = time.time()
                admin.create_pod(o.pod(f"p{i}", gpus=i % 4 // 3))
            waits(admin, 300, 60, s)
            for r in s.recorded():
                if r.get("what") == "bind" and r["done"]:
                    seen[r["pod"]] = r["at"] / 1e9
            took = sorted(seen[n] - made[n] for n in seen)
            note(f"created to bound p50 {took[len(took) // 2] * 1e3:.0f} ms, p99 {took[len(took) * 99 // 100] * 1e3:.0f} ms")
        finally:
            s.stop(signal.SIGKILL)


@scenario("the switch stops what is written, and SIGHUP reads it again")
def switch(x):
    admin = x.empty()
    admin.create_node(o.node("n0", 16, "64Gi", gpus=4))
    path = x.cluster.file("switch.yaml")

    def put(act):
        with open(path, "w") as f:
            f.write(f"act: {act}\n")
    put("none")
    with Kubelet(admin):
        s = Scheduler(x.cluster, "--switch-file", path)
        try:
            admin.create_pod(o.pod("a", gpus=1))
            until(lambda: "is listed" in s.said(), 30, lambda: s.said())
            time.sleep(2)
            equal(len(bound(admin)), 0, "pods bound")
            for act in ("nonsense", "bind"):
                put(act)
                s.child.send_signal(signal.SIGHUP)
                until(lambda: ("not reloaded" if act == "nonsense" else "act=bind") in s.said(), 10, lambda: s.said())
            waits(admin, 1, 30, s)
        finally:
            s.stop(signal.SIGKILL)


@scenario("a dry run writes nothing")
def dry_run(x):
    admin = x.empty()
    admin.create_node(o.node("n0", 16, "64Gi", gpus=4))
    with Kubelet(admin):
        s = Scheduler(x.cluster, "--dry-run", name="dry")
        try:
            admin.create_pod(o.pod("a", gpus=1))
            until(lambda: any(r.get("what") in ("started", "placed") for r in s.recorded()), 30, lambda: s.said())
            time.sleep(1)
            equal(len(bound(admin)), 0, "pods bound")
            check(not admin.condition(admin.pod("a")), "a condition was written")
        finally:
            s.stop(signal.SIGKILL)


if __name__ == "__main__":
    main(Context)
