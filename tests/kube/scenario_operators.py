#!/usr/bin/python3
"""What operators get of `cotenant cluster schedule`: pages, `cluster why`, progress reports, records and the extender."""
import json
import os
import subprocess
import sys

import objects as o
import process
import verify
from api import many, until
from cluster import Cluster, ROOT
from kubelet import Kubelet
from listening import Listening, samples
from scenario import check, equal, main, note, scenario


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


def cotenant(*words):
    return subprocess.run([os.environ["COTENANT"], *words], capture_output=True, text=True, timeout=300)


def bound(admin):
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in admin.list("/api/v1/pods")[0]
            if p["spec"].get("nodeName")}


def placed(admin, count, s, seconds=60):
    until(lambda: len(bound(admin)) >= count or not s.alive(), seconds,
          lambda: f"{len(bound(admin))} of {count} pods bound: {s.said()}", 0.2)
    check(s.alive(), s.said)


@scenario("metrics, health and readiness, of the leader and of a standby")
def pages(x):
    admin = x.empty()
    many([o.node(f"n{i}", 16, "64Gi", gpus=4) for i in range(2)], admin.create_node)
    with Kubelet(admin), Listening(x.cluster).ready() as s, Listening(x.cluster, name="standby") as other:
        many([o.pod(f"a{i}", gpus=1) for i in range(3)] + [o.pod("large", gpus=8)], admin.create_pod)
        placed(admin, 3, s)
        until(lambda: samples(s.get("/metrics")[1]).get('scheduler_pending_pods{queue="active"}', 0) +
              samples(s.get("/metrics")[1]).get('scheduler_pending_pods{queue="unschedulable"}', 0) == 1, 20,
              lambda: s.get("/metrics")[1])
        now = samples(s.get("/metrics")[1])
        equal(now['scheduler_schedule_attempts_total{result="scheduled",profile="cotenant"}'], 3, "pods scheduled")
        equal(now["scheduler_pod_scheduling_attempts_count"], 3, "pods counted")
        equal(now['leader_election_master_status{name="cotenant"}'], 1, "leader")
        equal(now['scheduler_cache_size{type="nodes"}'], 2, "nodes")
        check(any(k.startswith('rest_client_requests_total{code="201",method="POST"') for k in now), now)
        check(not any(".pod" in k or "a0" in k for k in now), "a pod's name is in a label")
        equal(s.get("/healthz"), (200, "ok\n"), "health")
        until(lambda: other.get("/readyz")[0] == 200, 30, lambda: other.said())
        check("standby, the leader is o" in other.get("/readyz")[1], other.get("/readyz"))
        status, text = other.get("/why/default/large")
        check(status == 503 and "standby" in text, text)
        equal(s.get("/nothing")[0], 404, "an unknown page")
        equal(s.get("/progress")[0], 405, "progress by GET")


@scenario("cluster why: the reason, numbers, what would help")
def why(x):
    admin = x.empty()
    many([o.node("n0", 16, "64Gi", gpus=4), o.node("n1", 8, "64Gi", gpus=2),
          o.node("n2", 64, "64Gi", gpus=8, taints=[o.taint("team", "red")])], admin.create_node)
    with Kubelet(admin), Listening(x.cluster).ready() as s:
        many([o.pod("first", gpus=3), o.pod("wide", gpus=6), *o.gang("half", 2, minimum=3, gpus=1)], admin.create_pod)
        placed(admin, 1, s)
        until(lambda: json.loads(s.get("/why/default/wide")[1]).get("queue"), 20, "the pod is known")
        doc = json.loads(s.get("/why/default/wide")[1])
        equal(doc["state"], "waiting", "state")
        equal(sum(r["nodes"] for r in doc["refused_by"]), 3, "nodes counted")
        check("Insufficient nvidia.com/gpu" in doc["message"], doc)
        texts = "\n".join(h["text"] for h in doc["would_help"])
        check("node n2" in texts and "toler" in texts and "team" in texts, texts)
        check("a smaller request" in texts and "GPU" in texts, texts)
        run = cotenant("cluster", "why", "default/wide", "--url", s.url)
        equal(run.returncode, 0, run.stderr)
        check("why it waits: " in run.stdout and "what would help" in run.stdout, run.stdout)
        note(run.stdout.replace("\n", "\n      "))
        run = cotenant("cluster", "why", "half-0", "--url", s.url)
        check("3 start together" in run.stdout and "2 pods exist" in run.stdout, run.stdout)
        run = cotenant("cluster", "why", "default/first", "--url", s.url)
        check("running on n0" in run.stdout or "bound on n0" in run.stdout, run.stdout)
        run = cotenant("cluster", "why", "default/wyde", "--url", s.url)
        check(run.returncode == 1 and "did you mean wide" in run.stderr, run.stderr)
        run = cotenant("cluster", "why", "default/wide", "--url", "http://127.0.0.1:1")
        check(run.returncode == 1 and "is the scheduler running" in run.stderr, run.stderr)


@scenario("progress reports over HTTP, by the helper script")
def progress(x):
    admin = x.empty()
    admin.create_node(o.node("n0", 16, "64Gi", gpus=4))
    with Kubelet(admin), Listening(x.cluster).ready() as s:
        admin.create_pod(o.pod("train", gpus=1))
        placed(admin, 1, s)
        uid = admin.pod("train")["metadata"]["uid"]
        send = {"namespace": "default", "pod": "train", "uid": uid, "iterations": 10, "iterations_per_second": 2}
        until(lambda: s.get("/progress", send)[0] == 200, 20, lambda: s.get("/progress", send))
        equal(s.get("/progress", send)[0], 429, "a second report at once")
        equal(s.get("/progress", {**send, "uid": "another"})[0], 409, "another pod's uid")
        equal(s.get("/progress", {**send, "pod": "nobody"})[0], 404, "an unknown pod")
        equal(s.get("/progress", {**send, "iterations": -1})[0], 400, "a negative number")
        helper = subprocess.run([sys.executable, os.path.join(ROOT, "examples", "kubernetes_progress.py"), s.url, "35"],
                                capture_output=True, text=True, timeout=60,
                                env={**os.environ, "POD_NAMESPACE": "default", "POD_NAME": "train", "POD_UID": uid})
        equal((helper.stdout, helper.stderr), ("35 iterations\n", ""), "the helper")
        taken = samples(s.get("/metrics")[1])['cotenant_kube_progress_reports_total{result="taken"}']
        check(taken >= 3, f"{taken} reports taken")
        until(lambda: json.loads(s.get("/why/default/train")[1]).get("beliefs", {}).get("progress_from") ==
              "reports of the job", 20, lambda: s.get("/why/default/train")[1])


@scenario("records replay to the same plans, byte for byte, and are a trace")
def records(x):
    admin = x.empty()
    many([o.node(f"n{i}", 32, "128Gi", gpus=8) for i in range(4)], admin.create_node)
    with Kubelet(admin, speed=1.0), Listening(x.cluster, "--min-run", "0").ready() as s:
        pods = [o.pod(f"j{i}", cpu=2, gpus=1 + i % 4, seconds=3 + i % 5) for i in range(24)]
        pods += sum((o.gang(f"g{i}", 3, gpus=2, seconds=5) for i in range(4)), [])
        many(pods, admin.create_pod)
        until(lambda: all(p["status"].get("phase") == "Succeeded" for p in admin.list("/api/v1/pods")[0]), 120,
              lambda: s.said(), 0.5)
        many(admin.list("/api/v1/pods")[0], lambda p: admin.call("DELETE", admin.path(p), {"gracePeriodSeconds": 0}))
        until(lambda: sum(r["kind"] == "job" for r in s.recorded()) >= 28, 60,
              lambda: [r for r in s.recorded() if r["kind"] == "job"])
        s.stop()
    run = cotenant("cluster", "replay", s.records, "--json")
    check(run.returncode == 0, run.stdout + run.stderr)
    doc = json.loads(run.stdout)
    check(doc["decisions"] > 10 and doc["same"] == doc["decisions"], doc)
    note(f"{doc['decisions']} decisions, all the same again; {os.path.getsize(s.records)} bytes")
    jobs = [r for r in s.recorded() if r["kind"] == "job"]
    equal(sum(j["succeeded"] for j in jobs), 28, "jobs that succeeded")
    run = cotenant("cluster", "compare", "--trace", s.records, "--format", "kube-records", "--servers", "2,4", "--jobs",
                   "0", "--load", "0", "--policies", "fifo,srtf", "--seeds", "1")
    check(run.returncode == 0, run.stdout + run.stderr)


class Extender:
    """What kube-scheduler does with an extender: one pod at a time, filter, prioritize, bind."""

    def __init__(self, scheduler, url, admin):
        self.ask, self.admin = (lambda path, body: scheduler.get(path, body, url)), admin

    def schedule(self, pod, full):
        nodes = self.admin.list("/api/v1/nodes")[0]
        body = {"Pod": pod, "Nodes": {"items": nodes} if full else None,
                "NodeNames": None if full else [n["metadata"]["name"] for n in nodes]}
        status, text = self.ask("/ext/filter", body)
        check(status == 200, text)
        kept = json.loads(text)
        equal(kept["Error"], "", "error of filter")
        names = [n["metadata"]["name"] for n in kept["Nodes"]["items"]] if full else kept["NodeNames"]
        if not names:
            return None, kept
        status, text = self.ask("/ext/prioritize", {**body, "Nodes": kept["Nodes"], "NodeNames": kept["NodeNames"]})
        check(status == 200, text)
        best = max(json.loads(text), key=lambda s: s["Score"])["Host"]
        meta = pod["metadata"]
        status, text = self.ask("/ext/bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"],
                                              "PodUID": meta["uid"], "Node": best})
        equal((status, json.loads(text)), (200, {"Error": ""}), "bind")
        return best, kept


def extended_workload():
    nodes = [o.node(f"n{i}", 32, "128Gi", gpus=8, labels={"pool": "ab"[i % 2]}) for i in range(6)]
    pods = [o.pod(f"p{i}", cpu=1 + i % 4, gpus=1 + i % 3, **({"nodeSelector": {"pool": "b"}} if i % 4 == 0 else {}))
            for i in range(12)]
    return nodes, pods


@scenario("the extender gives the placement that the scheduler gives")
def extender(x):
    places = []
    for way in ("scheduler", "extender", "extender with full nodes"):
        admin = x.empty()
        nodes, pods = extended_workload()
        many(nodes, admin.create_node)
        url = f"http://127.0.0.1:{process.free_port()}"
        more = [] if way == "scheduler" else ["--extender", url[7:]]
        with Kubelet(admin), Listening(x.cluster, "--policy", "fifo", *more).ready() as s:
            e = Extender(s, url, admin)
            for pod in pods:
                admin.create_pod(pod)
                name = pod["metadata"]["name"]
                until(lambda: s.get(f"/why/default/{name}")[0] == 200, 20, lambda: s.said())
                if way == "scheduler":
                    until(lambda: name in bound(admin), 20, lambda: s.said())
                else:
                    node, kept = e.schedule(admin.pod(name), way.endswith("nodes"))
                    check(node is not None, kept)
                until(lambda: '"running"' in s.get(f"/why/default/{name}")[1], 20,
                      lambda: s.get(f"/why/default/{name}"))
            verdict = verify.check(admin)
            check(not verdict.violations, verdict)
            places.append(bound(admin))
            if way == "scheduler":
                continue
            admin.create_pod(o.pod("large", gpus=64))
            until(lambda: s.get("/why/default/large")[0] == 200, 20, lambda: s.said())
            node, kept = e.schedule(admin.pod("large"), False)
            equal(node, None, "a pod that fits nowhere")
            equal(len(kept["FailedNodes"]) + len(kept["FailedAndUnresolvableNodes"]), 6, "nodes explained")
    equal(places[1], places[0], "placement by the extender")
    equal(places[2], places[0], "placement by the extender with full nodes")


if __name__ == "__main__":
    main(Context)
