"""Objects of a collection, by list and watch, on a thread of its own."""
import threading
import time

from api import Refused, Stop


class Informer:
    """changed(type, object) for each ADDED, MODIFIED and DELETED; of a relist, for what differs."""

    def __init__(self, api, path, changed, **query):
        self.api, self.path, self.changed, self.query = api, path, changed, query
        self.known, self.listed, self.stopping = {}, threading.Event(), Stop()
        self.relists, self.failures, self.fault = 0, 0, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self, seconds=120):
        self.thread.start()
        if not self.listed.wait(seconds):
            raise AssertionError(f"no list of {self.path} within {seconds} s: {self.fault}")
        return self

    def stop(self):
        self.stopping.set()
        self.thread.join(10)

    def run(self):
        version = None
        while not self.stopping.is_set():
            try:
                version = version or self.relist()
                version = self.follow(version)
            except Refused as e:
                self.fault, version = e, None
            except OSError as e:  # the server is away, or has cut the stream
                self.fault = e
            except Exception as e:  # half an event, or an end in mid-object
                self.fault = e
            if not self.stopping.is_set() and self.fault:
                self.failures += 1
                self.fault = None
                time.sleep(0.2)

    def relist(self):
        items, version = self.api.list(self.path, **self.query)
        self.relists += 1
        gone = dict(self.known)
        for item in items:
            uid, at = item["metadata"]["uid"], item["metadata"]["resourceVersion"]
            old = gone.pop(uid, None)
            if old is None or old["metadata"]["resourceVersion"] != at:
                self.known[uid] = item
                self.changed("ADDED" if old is None else "MODIFIED", item)
        for uid, item in gone.items():
            del self.known[uid]
            self.changed("DELETED", item)
        self.listed.set()
        return version

    def follow(self, version):
        """The last version seen, or None if a new list is needed."""
        self.version = version
        for kind, item in self.api.watch(self.path, version, stop=self.stopping, **self.query):
            if kind == "ERROR":
                return None
            self.version = version = item["metadata"]["resourceVersion"]
            if kind == "BOOKMARK":
                continue
            uid = item["metadata"]["uid"]
            if kind == "DELETED":
                self.known.pop(uid, None)
            else:
                self.known[uid] = item
            self.changed(kind, item)
        return version
