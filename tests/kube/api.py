"""A small client of a Kubernetes API server: one kept connection a thread, and helpers for nodes and pods."""
import http.client
import json
import queue
import select
import socket
import ssl
import threading
import time
import urllib.parse

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


class Refused(Exception):
    """A response that is not a success."""

    def __init__(self, reply, what):
        super().__init__(f"{what}: {reply.status} {reply.body.get('reason', '')}: {reply.body.get('message', '')}")
        self.reply = reply


class Reply:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text
        try:
            body = json.loads(text) if text else {}
        except ValueError:
            body = {}
        self.body = body if isinstance(body, dict) else {"value": body}

    @property
    def message(self):
        return self.body.get("message", "")


class Connection(http.client.HTTPSConnection):
    def connect(self):
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Api:
    """`url` and `ca` of a server, `token` of an account. Any thread may use it."""

    def __init__(self, url, token, ca, timeout=60, agent="cotenant-test"):
        self.url, self.token, self.ca, self.timeout, self.agent = url, token, ca, timeout, agent
        self.address = urllib.parse.urlsplit(url)
        self.tls = ssl.create_default_context(cafile=ca)
        self.local = threading.local()

    def to(self, url):
        """The same account at another address, such as a proxy's."""
        return Api(url, self.token, self.ca, self.timeout, self.agent)

    def connect(self, timeout=None):
        return Connection(self.address.hostname, self.address.port, timeout=timeout or self.timeout, context=self.tls)

    def headers(self, kind=None):
        return {"Authorization": f"Bearer {self.token}", "User-Agent": self.agent, "Accept": "application/json",
                **({"Content-Type": kind} if kind else {})}

    def call(self, method, path, body=None, kind="application/json", timeout=None):
        """The reply, whatever its status. A connection that was closed while idle is opened anew for a GET only."""
        data = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body, separators=(",", ":"))
        while True:
            kept = self.kept()
            connection = kept or self.connect()
            if kept and timeout and kept.sock:
                kept.sock.settimeout(timeout)
            self.local.connection = None
            try:
                connection.request(method, path, data, self.headers(kind if body is not None else None))
                response = connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                if not kept or method != "GET":
                    raise
                continue
            if response.will_close:
                connection.close()
            else:
                self.local.connection = connection
            return Reply(response.status, response.headers, text)

    def kept(self):
        """The thread's connection, unless the server has closed it."""
        connection = getattr(self.local, "connection", None)
        if connection and connection.sock and not select.select([connection.sock], [], [], 0)[0]:
            return connection
        if connection:
            connection.close()
        return None

    def close(self):
        kept, self.local.connection = getattr(self.local, "connection", None), None
        if kept:
            kept.close()

    def must(self, method, path, body=None, kind="application/json", timeout=None):
        reply = self.call(method, path, body, kind, timeout)
        if not 200 <= reply.status < 300:
            raise Refused(reply, f"{method} {path}")
        return reply.body

    # Objects.
    def get(self, path):
        return self.must("GET", path)

    def create(self, path, body):
        return self.must("POST", path, body)

    def patch(self, path, body, kind=STRATEGIC):
        return self.must("PATCH", path, body, kind)

    def delete(self, path, grace=None, uid=None):
        options = {"apiVersion": "v1", "kind": "DeleteOptions",
                   **({"gracePeriodSeconds": grace} if grace is not None else {}),
                   **({"preconditions": {"uid": uid}} if uid else {})}
        return self.must("DELETE", path, options)

    def list(self, path, limit=500, **query):
        """(items, resourceVersion) of all pages."""
        items, token = [], None
        while True:
            more = {"limit": limit, **query, **({"continue": token} if token else {})}
            page = self.get(f"{path}?{urllib.parse.urlencode(more)}")
            items += page["items"] or []
            token = page["metadata"].get("continue")
            if not token:
                return items, page["metadata"]["resourceVersion"]

    def watch(self, path, version, seconds=300, stop=None, **query):
        """Events as (type, object) until the stream ends, or until `stop`, a Stop, is set."""
        query = {"watch": 1, "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": seconds,
                 **query}
        connection = self.connect(timeout=seconds + 30)
        try:
            connection.connect()
            stop = stop or Stop()
            stop.sock = connection.sock
            if stop.is_set():
                return
            connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}", None, self.headers())
            response = connection.getresponse()
            if response.status != 200:
                raise Refused(Reply(response.status, response.headers, response.read()), f"watch {path}")
            for line in lines(response):
                if stop.is_set():
                    return
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()

    # Pods and nodes.
    @staticmethod
    def path(pod, part=""):
        m = pod["metadata"]
        return f"/api/v1/namespaces/{m['namespace']}/pods/{m['name']}" + (f"/{part}" if part else "")

    def pod(self, name, ns="default"):
        return self.get(f"/api/v1/namespaces/{ns}/pods/{name}")

    def create_pod(self, pod):
        return self.create(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

    def create_node(self, node):
        """Made, without the taint that admission adds to a node which is not ready, and ready."""
        self.create("/api/v1/nodes", node)
        name = node["metadata"]["name"]
        self.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": node["spec"].get("taints")}}, MERGE)
        now = stamp()
        return self.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
             "lastHeartbeatTime": now, "lastTransitionTime": now}]}})

    def binding(self, pod, node, uid=None, version=None, notes=None):
        meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"],
                **({"uid": uid} if uid else {}), **({"resourceVersion": version} if version else {}),
                **({"annotations": notes} if notes else {})}
        return {"apiVersion": "v1", "kind": "Binding", "metadata": meta,
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}}

    def bind(self, pod, node, uid="own", version=None):
        """The reply to a bind with the pod's own uid, another, or none."""
        uid = pod["metadata"].get("uid") if uid == "own" else uid
        return self.call("POST", self.path(pod, "binding"), self.binding(pod, node, uid, version))

    def resize(self, pod, resources, container="main", version=None, kind=STRATEGIC):
        body = {**({"metadata": {"resourceVersion": version}} if version else {}),
                "spec": {"containers": [{"name": container, "resources": resources}]}}
        return self.call("PATCH", self.path(pod, "resize"), body, kind)

    def condition(self, pod, kind="PodScheduled"):
        for c in pod.get("status", {}).get("conditions") or []:
            if c["type"] == kind:
                return c
        return {}


class Stop(threading.Event):
    """Ends a watch of another thread, also while it waits for an event."""

    sock = None

    def set(self):
        super().set()
        if self.sock:
            try:
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself


def lines(response):
    """Lines of a chunked response; half a line at its end is dropped."""
    rest = b""
    while True:
        data = response.read1(65536)
        if not data:
            return
        parts = (rest + data).split(b"\n")
        rest = parts.pop()
        yield from parts


def stamp(at=None):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def many(items, fn, connections=8):
    """fn(item) for each item on several threads; results in order. The first exception stops all and is raised."""
    items, out, todo, failed = list(items), {}, queue.SimpleQueue(), []
    for i in range(len(items)):
        todo.put(i)

    def work():
        while not failed:
            try:
                i = todo.get_nowait()
            except queue.Empty:
                return
            try:
                out[i] = fn(items[i])
            except Exception as e:  # handed to the caller below
                failed.append(e)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    return [out[i] for i in range(len(items))]


def until(condition, seconds, what, step=0.05):
    """The first true value of condition(); AssertionError with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(step)
