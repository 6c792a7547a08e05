"""Rules of the proxy's faults: which requests they hit, how often, and what happens to these.

A rule is JSON:
    method, path    regular expressions, of the whole method and anywhere in the path with its query
    skip            requests that match and are spared first
    count           hits, then it is spent; without it, no end
    probability     of a hit, 1 without it
    do              "status": answers `code` (with `retry_after`, `message`)
                    "delay": waits `seconds`, then forwards
                    "delay-reply": forwards, waits `seconds`, then answers
                    "reset": closes the connection with RST
                    "cut", "cut-mid", "end", "gone": for watches, after `events` events: RST; half an event and RST; a
                        clean end; an ERROR event with code 410
    forward         with "status" and "reset": the request is done first, and its answer is dropped
"""
import random
import re

ACTIONS = ("status", "delay", "delay-reply", "reset", "cut", "cut-mid", "end", "gone")


class Rule:
    def __init__(self, given):
        if given.get("do") not in ACTIONS:
            raise ValueError(f"do must be one of {', '.join(ACTIONS)}")
        self.given = given
        self.method, self.path = re.compile(given.get("method", ".*")), re.compile(given.get("path", ""))
        self.skip, self.left = given.get("skip", 0), given.get("count")
        self.rng = random.Random(given.get("seed", 1))
        self.hits = 0

    def takes(self, method, path):
        if self.left == 0 or not self.method.fullmatch(method) or not self.path.search(path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.rng.random() >= self.given.get("probability", 1):
            return False
        self.hits += 1
        if self.left is not None:
            self.left -= 1
        return True

    def __getattr__(self, name):
        if name in ("do", "code", "retry_after", "message", "seconds", "forward", "events"):
            return self.given.get(name)
        raise AttributeError(name)


class Faults:
    def __init__(self):
        self.rules = []

    def add(self, given):
        self.rules.append(Rule(given))

    def clear(self):
        self.rules = []

    def find(self, method, path):
        """The first rule that hits this request."""
        for rule in self.rules:
            if rule.takes(method, path):
                return rule
        return None

    def report(self):
        return [{**r.given, "hits": r.hits} for r in self.rules]
