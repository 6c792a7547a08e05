"""What `pods/resize` of a recent API server accepts and refuses, applied to a pod as an older one stores it."""
import copy
import json

from objects import ALLOCATED, GATES
from resources import amounts, pod_requests, qos, quantity

RESIZABLE = ("cpu", "memory")
REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict",
           410: "Expired", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests",
           500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


class Refusal(Exception):
    def __init__(self, code, message, causes=()):
        super().__init__(message)
        self.code, self.causes = code, list(causes)


def status(code, message, causes=()):
    """The Status object of a failure."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": REASONS.get(code, "InternalError"), "code": code,
            **({"details": {"causes": list(causes)}} if causes else {})}


def invalid(name, field, message):
    text = f"{field}: {message}"
    raise Refusal(422, f'Pod "{name}" is invalid: {text}', [{"reason": "FieldValueInvalid", "field": field,
                                                             "message": message}])


def require_same(meta, patch):
    """Preconditions that a patch or a binding carries in its metadata."""
    wanted = patch.get("metadata") or {}
    name = meta["name"]
    if wanted.get("resourceVersion") not in (None, "", meta["resourceVersion"]):
        raise Refusal(409, f'Operation cannot be fulfilled on pods "{name}": the object has been modified; please '
                           "apply your changes to the latest version and try again")
    if wanted.get("uid") not in (None, "", meta["uid"]):
        invalid(name, "metadata.uid", "field is immutable")


def merged_section(old, new):
    """A container's resources after a merge; null removes."""
    out = copy.deepcopy(old or {})
    for part, values in (new or {}).items():
        if part not in ("requests", "limits"):
            continue
        if values is None:
            out.pop(part, None)
            continue
        section = out.setdefault(part, {})
        for name, value in values.items():
            if value is None:
                section.pop(name, None)
            else:
                section[name] = str(value)
    for name, value in (out.get("limits") or {}).items():
        out.setdefault("requests", {}).setdefault(name, value)
    return out


def patched(pod, patch, strategic):
    """The pod with the patch's container resources; everything else of the patch is dropped, as the server does."""
    out, name = copy.deepcopy(pod), pod["metadata"]["name"]
    spec = patch.get("spec") or {}
    if spec.get("resources"):
        invalid(name, "spec.resources", "pod-level resources cannot be resized")
    for part in ("containers", "initContainers"):
        if part not in spec:
            continue
        have = {c["name"]: c for c in out["spec"].get(part) or []}
        changed = spec[part] or []
        if not strategic and [c.get("name") for c in changed] != list(have):
            invalid(name, f"spec.{part}", "containers may not be added or removed")
        for i, c in enumerate(changed):
            field = f"spec.{part}[{i}]"
            if c.get("name") not in have:
                invalid(name, field + ".image", "Required value")
            mine = have[c["name"]]
            if not strategic and c.get("image") != mine.get("image"):
                invalid(name, field + ".image", "Required value")
            old = mine.get("resources") or {}
            new = merged_section(old if strategic else {}, c.get("resources"))
            sidecar = part == "containers" or mine.get("restartPolicy") == "Always"
            check_section(name, field, old, new, sidecar)
            mine["resources"] = new
    return out


def check_section(name, field, old, new, resizable):
    for part in ("requests", "limits"):
        try:
            before, after = amounts(old.get(part)), amounts(new.get(part))
        except ValueError as e:
            raise Refusal(400, f"quantities must match the regular expression: {e}") from None
        for r in {**before, **after}:
            if before.get(r) == after.get(r):
                continue
            where = f"{field}.resources.{part}"
            if not resizable:
                invalid(name, where, "resources for non-sidecar init containers are immutable")
            if r not in RESIZABLE:
                invalid(name, where, f"only cpu and memory resources are mutable, not {r}")
            if r not in after:
                invalid(name, where, f"resource {part} cannot be removed: {r}")
            if after[r] < 0:
                invalid(name, where, "must be greater than or equal to 0")
    for r, value in amounts(new.get("limits")).items():
        if quantity((new.get("requests") or {}).get(r, 0)) > value:
            invalid(name, f"{field}.resources.requests", f"must be less than or equal to {r} limit")


def resized(pod, patch, strategic, node=None, ranges=(), quotas=()):
    """The pod to store, or Refusal. node: its node, if it is bound; ranges, quotas: of its namespace."""
    meta, spec = pod["metadata"], pod["spec"]
    name, notes = meta["name"], meta.get("annotations") or {}
    require_same(meta, patch)
    if any(n in notes for n in ("kubernetes.io/config.mirror", "kubernetes.io/config.source")):
        invalid(name, "spec", "static pods cannot be resized")
    if "windows" in ((spec.get("os") or {}).get("name"), (spec.get("nodeSelector") or {}).get("kubernetes.io/os")):
        invalid(name, "spec", "windows pods cannot be resized")
    if (pod.get("status") or {}).get("phase") == "Running" and ALLOCATED not in notes:
        invalid(name, "spec", "Pod running on node without support for resize")
    out = patched(pod, patch, strategic)
    if qos(out["spec"]) != qos(spec):
        invalid(name, "spec", f"Pod QOS Class may not change as a result of resizing: {qos(spec)} to "
                              f"{qos(out['spec'])}")
    before, after = pod_requests(spec), pod_requests(out["spec"])
    for r in RESIZABLE:
        if after.get(r, 0) > before.get(r, 0):
            check_room(name, r, after[r], after[r] - before.get(r, 0), node, quotas)
    check_ranges(name, out["spec"], ranges)
    if out["spec"] != spec:
        out["metadata"]["generation"] = meta.get("generation", 0) + 1
    return out


def check_room(name, r, wanted, more, node, quotas):
    if node:
        capacity = quantity(node["status"]["allocatable"].get(r, 0))
        if wanted > capacity:
            text = f"Node didn't have enough capacity: {r}, requested: {wanted}, capacity: {capacity}"
            raise Refusal(403, f'pods "{name}" is forbidden: {text}', [{"reason": "NodeCapacity", "message": text}])
    for quota in quotas:
        have = quota.get("status") or {}
        for key in (r, "requests." + r):
            hard = (have.get("hard") or {}).get(key)
            if hard is not None and quantity((have.get("used") or {}).get(key, 0)) + more > quantity(hard):
                raise Refusal(403, f'pods "{name}" is forbidden: exceeded quota: {quota["metadata"]["name"]}, '
                                   f"limited: {key}={hard}")


def check_ranges(name, spec, ranges):
    for limit in (item for r in ranges for item in r["spec"]["limits"] if item["type"] == "Container"):
        for c in spec["containers"]:
            section = c.get("resources") or {}
            for r, most in amounts(limit.get("max")).items():
                if max(quantity((section.get(p) or {}).get(r, 0)) for p in ("limits", "requests")) > most:
                    raise Refusal(403, f'pods "{name}" is forbidden: maximum {r} usage per Container is '
                                       f'{limit["max"][r]}')
            for r, least in amounts(limit.get("min")).items():
                if quantity((section.get("requests") or {}).get(r, 0)) < least:
                    raise Refusal(403, f'pods "{name}" is forbidden: minimum {r} usage per Container is '
                                       f'{limit["min"][r]}')


def modern(pod):
    """Shows in a pod what an older API server cannot store: it travels in annotations."""
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    if ALLOCATED in notes:
        given = json.loads(notes[ALLOCATED])
        for c in (pod.get("status") or {}).get("containerStatuses") or []:
            mine = given.get(c["name"])
            if mine:
                c["allocatedResources"], c["resources"] = mine["allocated"], mine["resources"]
    if GATES in notes and not pod["spec"].get("nodeName"):
        gates = json.loads(notes[GATES])
        if gates:
            pod["spec"]["schedulingGates"] = gates
            others = [c for c in pod["status"].get("conditions") or [] if c["type"] != "PodScheduled"]
            pod["status"]["conditions"] = others + [{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"].get("creationTimestamp")}]
    return pod
