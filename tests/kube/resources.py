"""Quantities, and what a pod requests, as the Kubernetes documentation defines them.

Amounts are exact integers: thousandths of a unit for every resource. The program under test has its own code for all of
this; nothing is shared.
"""
import re
from fractions import Fraction

SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
            "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
            "P": Fraction(10**15), "E": Fraction(10**18),
            "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
            "Pi": Fraction(2**50), "Ei": Fraction(2**60)}
QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE]([+-]?[0-9]{1,3}))?")
_parsed = {}


def quantity(text):
    """Thousandths of a unit, rounded up; ValueError if it is not a quantity."""
    text = str(text)
    if text not in _parsed:
        if len(_parsed) > 100000:
            _parsed.clear()
        match = QUANTITY.fullmatch(text)
        if not match:
            raise ValueError(f"not a quantity: {text!r}")
        milli = Fraction(match[1]) * (Fraction(10) ** int(match[3]) if match[3] else SUFFIXES[match[2] or ""]) * 1000
        _parsed[text] = -(-milli.numerator // milli.denominator)
    return _parsed[text]


def amounts(section):
    return {name: quantity(value) for name, value in (section or {}).items()}


def add(into, more, sign=1):
    for name, value in more.items():
        into[name] = into.get(name, 0) + sign * value
    return into


def largest(a, b):
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in {**a, **b}}


def container_requests(container):
    section = container.get("resources") or {}
    return {**amounts(section.get("limits")), **amounts(section.get("requests"))}


def pod_requests(spec, containers=None):
    """Containers and sidecars, or the largest initialisation step with the sidecars before it; pod-level amounts
    instead of both; overhead. `containers` gives other amounts by container name: what a kubelet gave."""
    containers = containers or {}
    total, sidecars, step = {}, {}, {}
    for c in spec.get("containers") or []:
        add(total, containers.get(c["name"]) or container_requests(c))
    for c in spec.get("initContainers") or []:
        own = containers.get(c["name"]) or container_requests(c)
        if c.get("restartPolicy") == "Always":
            add(sidecars, own)
            step = largest(step, sidecars)
        else:
            step = largest(step, add(dict(own), sidecars))
    total = largest(add(total, sidecars), step)
    level = spec.get("resources") or {}
    total.update({**amounts(level.get("limits")), **amounts(level.get("requests"))})
    return add(total, amounts(spec.get("overhead")))


def ended(pod):
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def qos(spec):
    """The class that the API server derives from the containers' cpu and memory."""
    requests, limits, guaranteed = {}, {}, True
    for c in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        section = c.get("resources") or {}
        of = {n: v for n, v in amounts(section.get("requests")).items() if n in ("cpu", "memory") and v}
        to = {n: v for n, v in amounts(section.get("limits")).items() if n in ("cpu", "memory") and v}
        add(requests, of)
        add(limits, to)
        guaranteed = guaranteed and set(to) == {"cpu", "memory"}
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and all(requests.get(n, v) == v for n, v in limits.items()) else "Burstable"
