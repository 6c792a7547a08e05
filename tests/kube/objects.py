"""Nodes and pods of many kinds, as the JSON that is sent to an API server."""
import random

SCHEDULER = "cotenant"
GPU = "nvidia.com/gpu"
GROUP = "scheduling.x-k8s.io/pod-group"             # label: the gang of a pod
GROUP_MIN = "cotenant.io/gang-min"                  # annotation: members that must start together
FRACTION = "cotenant.io/gpu-fraction"               # annotation: of each GPU that the pod requests
GPU_COUNT = "nvidia.com/gpu.count"                  # label of a node: devices, where one is advertised several times
RUN_SECONDS = "test.cotenant.io/run-seconds"        # annotation for the fake kubelet: how long the pod runs
EXIT = "test.cotenant.io/exit-code"                 # annotation for the fake kubelet: how it ends
ALLOCATED = "test.cotenant.io/allocated"            # annotation of the fake kubelet: what it has given, by container
GATES = "test.cotenant.io/gates"                    # annotation of the proxy: schedulingGates, as JSON
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def node(name, cpu=32, memory="128Gi", gpus=0, pods=110, labels=None, taints=None, unschedulable=False, devices=None,
         **more):
    """devices: GPUs that are there, if `gpus` counts shares of them."""
    have = {"cpu": str(cpu), "memory": str(memory), "pods": str(pods), "ephemeral-storage": "500Gi", **more}
    labels = {HOST: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **(labels or {})}
    if gpus:
        have[GPU] = str(gpus)
        labels[GPU_COUNT] = str(devices or gpus)
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": {**({"taints": taints} if taints else {}), **({"unschedulable": True} if unschedulable else {})},
            "status": {"capacity": have, "allocatable": dict(have)}}


def taint(key, value="", effect="NoSchedule"):
    return {"key": key, "value": value, "effect": effect}


def pod(name, cpu="1", memory="1Gi", gpus=0, ns="default", labels=None, notes=None, scheduler=SCHEDULER, seconds=None,
        ports=(), limits=False, resources=None, **spec):
    """limits: as large as the requests, which makes the pod Guaranteed. `spec` goes into the pod's spec as it is."""
    requests = {**({"cpu": str(cpu)} if cpu else {}), **({"memory": str(memory)} if memory else {})}
    extended = {GPU: str(gpus)} if gpus else {}
    section = resources or {"requests": {**requests, **extended},
                            "limits": {**(requests if limits else {}), **extended}}
    container = {"name": "main", "image": "none", "resources": section}
    if ports:
        container["ports"] = [p if isinstance(p, dict) else {"containerPort": p, "hostPort": p} for p in ports]
    notes = dict(notes or {})
    if seconds is not None:
        notes[RUN_SECONDS] = str(seconds)
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": ns, "labels": labels or {}, "annotations": notes},
            "spec": {"schedulerName": scheduler, "containers": [container], "restartPolicy": "Never",
                     "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False, **spec}}


def gang(name, size, minimum=None, labels=None, notes=None, **kinds):
    return [pod(f"{name}-{i}", labels={**(labels or {}), GROUP: name},
                notes={**(notes or {}), GROUP_MIN: str(minimum or size)}, **kinds) for i in range(size)]


def tolerate(key, value=None, effect="NoSchedule"):
    return {"key": key, "effect": effect,
            **({"operator": "Equal", "value": value} if value is not None else {"operator": "Exists"})}


def need_nodes(*expressions):
    """Required node affinity: tuples (key, operator, values...), all of which hold."""
    terms = [{"key": e[0], "operator": e[1], **({"values": list(e[2:])} if e[2:] else {})} for e in expressions]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                             {"nodeSelectorTerms": [{"matchExpressions": terms}]}}}


def near(labels, topology=ZONE, away=False):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology}
    return {"podAntiAffinity" if away else "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(labels, topology=ZONE, skew=1, when="DoNotSchedule"):
    return [{"maxSkew": skew, "topologyKey": topology, "whenUnsatisfiable": when,
             "labelSelector": {"matchLabels": labels}}]


def cluster_nodes(count, zones=4):
    """A mixed cluster: half of the nodes have 8 GPUs, an eighth has 4 GPUs shared by 10, an eighth is tainted."""
    out = []
    for i in range(count):
        labels = {ZONE: f"zone-{i % zones}", "rack": f"rack-{i // 16}", "disk": "ssd" if i % 3 else "hdd"}
        kind = (i // zones) % 8
        name = f"node-{i:04d}"
        if kind < 4:
            out.append(node(name, 64, "512Gi", gpus=8, labels={**labels, "gpu-type": "a" if kind % 2 else "b"}))
        elif kind == 4:
            out.append(node(name, 64, "256Gi", gpus=40, devices=4, labels={**labels, "gpu-type": "shared"},
                            taints=[taint("shared", "yes")]))
        elif kind == 5:
            out.append(node(name, 32, "128Gi", labels=labels, taints=[taint("dedicated", "team")]))
        else:
            out.append(node(name, 48, "192Gi", labels=labels))
    return out


def mixture(count, seed=1, **common):
    """About `count` pods of every kind, in a repeatable order; gangs are whole. They fit a cluster_nodes(count / 8)."""
    rng, out, i = random.Random(seed), [], 0
    while len(out) < count:
        i += 1
        cpu, memory = rng.choice((1, 2, 4)), rng.choice(("1Gi", "2Gi", "6Gi"))
        draw, base = rng.random(), dict(cpu=cpu, memory=memory, **common)
        if draw < 0.30:
            out.append(pod(f"cpu-{i}", **base))
        elif draw < 0.50:
            out.append(pod(f"gpu-{i}", gpus=rng.choice((1, 1, 2)), **base))
        elif draw < 0.58:
            out += gang(f"gang-{i}", rng.choice((2, 4)), gpus=1, **base)
        elif draw < 0.68:
            out.append(pod(f"part-{i}", gpus=1, notes={FRACTION: "0.25"}, tolerations=[tolerate("shared", "yes")],
                           nodeSelector={"gpu-type": "shared"}, **base))
        elif draw < 0.77:
            out.append(pod(f"team-{i}", tolerations=[tolerate("dedicated")], **base))
        elif draw < 0.84:
            out.append(pod(f"disk-{i}", nodeSelector={"disk": "ssd"}, **base))
        elif draw < 0.89:
            out.append(pod(f"zone-{i}", affinity=need_nodes((ZONE, "In", "zone-0", "zone-1")), **base))
        elif draw < 0.93:
            labels = {"app": f"apart-{i % 6}"}
            out.append(pod(f"apart-{i}", labels=labels, affinity=near(labels, HOST, away=True), **base))
        elif draw < 0.97:
            labels = {"app": f"even-{i % 4}"}
            out.append(pod(f"even-{i}", labels=labels, topologySpreadConstraints=spread(labels), **base))
        else:
            out.append(pod(f"port-{i}", ports=[8000 + i % 5], **base))
    return trim(out, count)


def trim(pods, count):
    """The first `count` pods, without a gang that this would cut."""
    if len(pods) <= count:
        return pods
    cut = pods[count]["metadata"]["labels"].get(GROUP)
    kept = [p for p in pods[:count] if not cut or p["metadata"]["labels"].get(GROUP) != cut]
    return kept + [pod(f"fill-{i}") for i in range(count - len(kept))]
