"""Whether a pod may be where it is, rule by rule, from the objects alone: slow and plain.

Each rule yields sentences about one pod on its node, given all nodes by name and all pods that have one and have not
ended. The rules judge the state as it is now: what changed after a bind (a taint, a label, a pod that left) counts.
"""
import json

from objects import FRACTION, GATES, GPU, GPU_COUNT
from resources import add, pod_requests, quantity


def expression_holds(e, labels):
    have, values = labels.get(e["key"]), e.get("values") or []
    if e["operator"] == "In":
        return have in values
    if e["operator"] == "NotIn":
        return have not in values
    if e["operator"] == "Exists":
        return have is not None
    if e["operator"] == "DoesNotExist":
        return have is None
    if e["operator"] not in ("Gt", "Lt"):
        raise ValueError(f"operator {e['operator']}")
    try:
        return int(have) > int(values[0]) if e["operator"] == "Gt" else int(have) < int(values[0])
    except (TypeError, ValueError):
        return False


def selects(selector, labels):
    """A label selector; none selects nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(k) == v for k, v in (selector.get("matchLabels") or {}).items()) and \
        all(expression_holds(e, labels) for e in selector.get("matchExpressions") or [])


def labels_of(item):
    return item["metadata"].get("labels") or {}


def term_matches(term, node):
    by_label, by_field = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not by_label and not by_field:
        return False
    fields = {"metadata.name": node["metadata"]["name"]}
    return all(expression_holds(e, labels_of(node)) for e in by_label) and \
        all(expression_holds(e, fields) for e in by_field)


def node_selected(spec, node):
    if any(labels_of(node).get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    need = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return not need or any(term_matches(t, node) for t in need["nodeSelectorTerms"])


def tolerates(spec, taint):
    for t in spec.get("tolerations") or []:
        if t.get("effect") not in (None, "", taint["effect"]) or t.get("key") not in (None, "", taint["key"]):
            continue
        exists = t.get("operator") == "Exists"
        if not t.get("key") and not exists:
            continue
        if exists or (t.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def selector_rule(pod, node, _):
    if not node_selected(pod["spec"], node):
        yield "does not match the node's labels"


def taint_rule(pod, node, _):
    for t in node["spec"].get("taints") or []:
        if t["effect"] in ("NoSchedule", "NoExecute") and not tolerates(pod["spec"], t):
            yield f"does not tolerate {t['key']}={t.get('value', '')}:{t['effect']}"
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not tolerates(pod["spec"], cordon):
        yield "is on an unschedulable node"


def gate_rule(pod, _node, _view):
    gates = (pod["metadata"].get("annotations") or {}).get(GATES)
    if pod["spec"].get("schedulingGates") or gates and json.loads(gates):
        yield "was bound with scheduling gates"


def ports(pod):
    for c in pod["spec"]["containers"]:
        for p in c.get("ports") or []:
            if p.get("hostPort"):
                yield p.get("hostIP") or "0.0.0.0", p.get("protocol", "TCP"), p["hostPort"]


def port_rule(pod, node, view):
    for ip, protocol, port in ports(pod):
        for other in view.on(node):
            for ip2, protocol2, port2 in ports(other) if other is not pod else ():
                if (protocol, port) == (protocol2, port2) and (ip == ip2 or "0.0.0.0" in (ip, ip2)):
                    yield f"shares host port {port} with {view.name(other)}"


def affinity_terms(pod, which):
    part = (pod["spec"].get("affinity") or {}).get(which) or {}
    return part.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def term_takes(term, owner, other):
    """Does a term of `owner` mean the pod `other`?"""
    spaces = term.get("namespaces") or [owner["metadata"]["namespace"]]
    return other["metadata"]["namespace"] in spaces and selects(term.get("labelSelector"), labels_of(other))


def affinity_rule(pod, node, view):
    for term in affinity_terms(pod, "podAffinity"):
        key = term["topologyKey"]
        here, elsewhere = False, False
        for other in view.pods:
            if other is not pod and term_takes(term, pod, other):
                same = view.domain(other, key) == labels_of(node).get(key) is not None
                here, elsewhere = here or same, elsewhere or not same
        if key not in labels_of(node) or not here and (elsewhere or not term_takes(term, pod, pod)):
            yield f"has no pod of its affinity in the same {key}"


def anti_affinity_rule(pod, node, view):
    """Of both sides: the pod that has the term is reported, whichever of the two came later."""
    for term in affinity_terms(pod, "podAntiAffinity"):
        key = term["topologyKey"]
        for other in view.pods:
            if other is not pod and key in labels_of(node) and term_takes(term, pod, other) and \
                    view.domain(other, key) == labels_of(node)[key]:
                yield f"is in the same {key} as {view.name(other)}, against anti-affinity"


def spread_rule(pod, node, view):
    for c in pod["spec"].get("topologySpreadConstraints") or []:
        if c["whenUnsatisfiable"] != "DoNotSchedule":
            continue
        key, selector = c["topologyKey"], dict(c.get("labelSelector") or {})
        for name in c.get("matchLabelKeys") or []:
            if name in labels_of(pod):
                selector["matchLabels"] = {**(selector.get("matchLabels") or {}), name: labels_of(pod)[name]}
        counts = {labels_of(n)[key]: 0 for n in view.nodes.values() if key in labels_of(n) and eligible(c, pod, n)}
        for other in view.pods:
            at = view.domain(other, key)
            if at in counts and other["metadata"]["namespace"] == pod["metadata"]["namespace"] and \
                    selects(selector, labels_of(other)) and not other["metadata"].get("deletionTimestamp"):
                counts[at] += 1
        least = min(counts.values(), default=0) if len(counts) >= c.get("minDomains", 1) else 0
        mine = counts.get(labels_of(node).get(key))
        if mine is None:
            yield f"is on a node without {key}"
        elif selects(selector, labels_of(pod)) and mine - least > c["maxSkew"]:
            yield f"is spread unevenly over {key}: {mine} here, {least} elsewhere, skew {c['maxSkew']}"


def eligible(constraint, pod, node):
    """Is the node's domain one that a constraint counts?"""
    honour = constraint.get("nodeTaintsPolicy") == "Honor"
    return (constraint.get("nodeAffinityPolicy") == "Ignore" or node_selected(pod["spec"], node)) and not (
        honour and list(taint_rule(pod, node, None)))


POD_RULES = {"selector": selector_rule, "taint": taint_rule, "gates": gate_rule, "ports": port_rule,
             "affinity": affinity_rule, "anti-affinity": anti_affinity_rule, "spread": spread_rule}


def used(pods):
    total = {}
    for p in pods:
        add(total, pod_requests(p["spec"]))
        add(total, {"pods": 1000})
    return total


def over(node, pods):
    """(resource, used, allocatable) of what a node has too little of."""
    have = node["status"].get("allocatable") or {}
    for name, amount in used(pods).items():
        if amount > quantity(have.get(name, 0)):
            yield name, amount, quantity(have.get(name, 0))


def fractions_over(node, pods):
    """(used, there) in thousandths of a GPU, where a node says how many devices it has and fractions need more."""
    count = labels_of(node).get(GPU_COUNT)
    total = 0
    for p in pods:
        part = float((p["metadata"].get("annotations") or {}).get(FRACTION, 1))
        total += round(pod_requests(p["spec"]).get(GPU, 0) * part)
    return (total, int(count) * 1000) if count and total > int(count) * 1000 else None
