#!/usr/bin/python3
"""The shipped rights (deploy/kubernetes/rbac.yaml) are used, all of them, and no others are needed."""
import copy
import json
import time

import yaml

import objects as o
from api import many, until
from cluster import RBAC, Cluster
from kubelet import Kubelet
from listening import Listening, samples
from proxy import Proxy
from scenario import check, main, note, scenario

ROLES = "/apis/rbac.authorization.k8s.io/v1"
GROUPS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
          "metadata": {"name": "podgroups.scheduling.x-k8s.io",
                       "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
          "spec": {"group": "scheduling.x-k8s.io", "scope": "Namespaced",
                   "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
                   "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                       "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
FUNGIBLE = {"cotenant.io/fungible": "true", "cotenant.io/cores-min": "1", "cotenant.io/cores-max": "12",
            "cotenant.io/memory-min": "1Gi", "cotenant.io/memory-max": "48Gi", "cotenant.io/model": "resnet18"}


class Context:
    def __init__(self):
        self.cluster = Cluster()
        self.proxy = Proxy(self.cluster)
        admin = self.cluster.admin
        admin.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", GROUPS)
        until(lambda: admin.call("GET", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups").status == 200, 30, "PodGroups")
        for name, value in (("high", 100), ("low", 1)):
            admin.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                       {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                        "value": value})

    def close(self):
        self.proxy.stop()
        self.cluster.stop()

    def empty(self):
        self.proxy.clear()
        admin = self.cluster.admin
        many(admin.list("/api/v1/pods")[0], lambda p: admin.call("DELETE", admin.path(p), {"gracePeriodSeconds": 0}))
        many(admin.list("/api/v1/nodes")[0], lambda n: admin.delete(f"/api/v1/nodes/{n['metadata']['name']}"))
        admin.call("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{self.cluster.account[0]}/leases/cotenant")
        return admin


def roles():
    return [d for d in yaml.safe_load_all(open(RBAC)) if d["kind"] in ("ClusterRole", "Role")]


def rights():
    """(role, rule, resource, verb) of every right."""
    return [(r, i, resource, verb) for r, role in enumerate(roles()) for i, rule in enumerate(role["rules"])
            for resource in rule["resources"] for verb in rule["verbs"]]


def without(right):
    """The roles without one right; the rest of its rule stays."""
    out = copy.deepcopy(roles())
    if right:
        r, i, resource, verb = right
        rule = out[r]["rules"].pop(i)
        out[r]["rules"] += [{**rule, "resources": [x for x in rule["resources"] if x != resource]},
                            {**rule, "resources": [resource], "verbs": [v for v in rule["verbs"] if v != verb]}]
        out[r]["rules"] = [x for x in out[r]["rules"] if x["resources"] and x["verbs"]]
    return out


def grant(admin, wanted):
    for role in wanted:
        meta = role["metadata"]
        where = f"{ROLES}/namespaces/{meta['namespace']}/roles" if "namespace" in meta else ROLES + "/clusterroles"
        admin.must("PUT", f"{where}/{meta['name']}", role)


def denied(s):
    """Calls that were refused for want of a right."""
    return sum(v for k, v in samples(s.get("/metrics")[1]).items() if 'total{code="403"' in k)


def exercise(x, resize):
    """Everything that the scheduler does, once. True, and what it said: no call was denied, and all of it happened."""
    admin = x.empty()
    many([o.node(f"n{i}", 16, "64Gi", gpus=4) for i in range(3)], admin.create_node)
    with Kubelet(x.proxy.admin), Listening(x.cluster, "--min-run", "0", kubeconfig=x.cluster.kubeconfig(url=x.proxy.url)) \
            as s:
        def done(condition, seconds=20):
            """Waits until it holds, or a call was denied, which is the other answer."""
            try:
                until(lambda: condition() or denied(s) or not s.alive(), seconds, "this", 0.1)
            except AssertionError:
                return False
            return not denied(s) and s.alive()

        ok = done(lambda: "ready: leader" in s.get("/readyz")[1])
        if ok:
            x.proxy.fault(method="POST", path="/binding$", count=1, do="reset", forward=True)  # it reads the pod back
            many([*o.gang("low", 2, gpus=4, priorityClassName="low"), o.pod("large", gpus=8),
                  o.pod("size", cpu=4, memory="16Gi", gpus=1, notes=FUNGIBLE)], admin.create_pod)
            ok = done(lambda: all(admin.pod(n)["spec"].get("nodeName") for n in ("low-0", "low-1", "size")))
        ok = ok and done(lambda: (admin.condition(admin.pod("large")) or {}).get("reason") == "Unschedulable")
        ok = ok and done(lambda: not resize or samples(s.get("/metrics")[1])['cotenant_kube_resizes_total{result="done"}'])
        if ok:
            admin.create_pod(o.pod("high", gpus=4, priorityClassName="high"))
            ok = done(lambda: admin.pod("high")["spec"].get("nodeName"))
        ok = ok and done(lambda: [e for e in admin.list("/apis/events.k8s.io/v1/namespaces/default/events")[0]
                                  if e["reason"] == "Preempted"])
        now = samples(s.get("/metrics")[1])
        held = json.dumps({k: v for k, v in now.items() if "403" in k})
        if ok:
            time.sleep(3)  # the lease is renewed each 1.5 s
            ok = not denied(s) and s.stop()[0] == 0
        return ok, held + s.said(1500), now.get('cotenant_kube_resizes_total{result="done"}', 0)


@scenario("the shipped rights suffice, and without any one of them something fails")
def least(x):
    admin = x.cluster.admin
    grant(admin, without(None))
    ok, said, _ = exercise(x, False)
    check(ok, said)
    resize = exercise(x, True)[0]
    unused = []
    for right in rights():
        if right[2] == "pods/resize" and not resize:
            note("pods/resize: no resize within 20 s here, so this right was not tried")
            continue
        grant(admin, without(right))
        many(admin.list("/apis/events.k8s.io/v1/namespaces/default/events")[0],
             lambda e: admin.call("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events/" + e["metadata"]["name"]))
        ok, said, _ = exercise(x, resize)
        if ok:
            unused.append(right[2:])
    grant(admin, without(None))
    check(not unused, f"rights that nothing needs: {unused}")
    note(f"{len(rights())} rights, each removed once")


if __name__ == "__main__":
    main(Context)
