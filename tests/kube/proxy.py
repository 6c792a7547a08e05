"""A proxy in front of an API server: serves `pods/resize`, enforces uid and resourceVersion at a bind, injects faults.

As a class it starts itself as a process of its own and speaks to its control endpoint. Clients come with their own
tokens, so their rights stay their own; for a resize the proxy asks the API server whether the account may do it.

    with Proxy(cluster) as p:
        p.fault(method="POST", path="/binding$", count=3, do="status", code=429, retry_after=1)
        p.watches("cut-mid", "/pods")
"""
import argparse
import asyncio
import base64
import collections
import http.client
import json
import re
import signal
import ssl
import sys
import urllib.parse

import http1
from faults import Faults
from objects import GATES
from resize import Refusal, modern, resized, status

POD = re.compile(r"^/api/v1/namespaces/([^/]+)/pods/([^/?]+)(?:/(binding|resize|status))?$")
PODS = re.compile(r"^/api/v1/(?:namespaces/[^/]+/)?pods(?:/|$)")
MARK = b"test.cotenant.io/"
RESIZE = {"name": "pods/resize", "singularName": "", "namespaced": True, "kind": "Pod",
          "verbs": ["get", "patch", "update"]}
HALF = b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"ha'


class Watch:
    """A stream that is open now."""

    def __init__(self, path, writer, upstream, rule):
        self.path, self.writer, self.upstream, self.rule = path, writer, upstream, rule
        self.last, self.events, self.stalled = HALF, 0, 0.0


class Server:
    def __init__(self, upstream, etcd, certificate, key, admin):
        def pool(url, tls=None):
            at = urllib.parse.urlsplit(url)
            return http1.Pool(at.hostname, at.port, tls)
        self.api, self.etcd = pool(upstream, ssl.create_default_context(cafile=certificate)), pool(etcd)
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(certificate, key)
        self.admin = {"authorization": f"Bearer {admin}", "accept": "application/json",
                      "content-type": "application/json"}
        self.faults, self.watching = Faults(), set()
        self.options = {"resize": True, "uid": True}
        self.counts = collections.Counter()

    # Connections of clients.
    async def client(self, reader, writer):
        http1.no_delay(writer)
        try:
            while await self.request(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError):
            http1.reset(writer)  # of either side: the client sees what it would see without the proxy
        finally:
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def request(self, reader, writer):
        try:
            head = await http1.read_head(reader)
        except asyncio.IncompleteReadError:
            return False
        if head.get("expect").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await http1.read_body(reader, head)
        method, target = head.first[0], head.first[1]
        if target.startswith("/_proxy/"):
            code, answer = self.control(method, target[8:], body)
            return self.answer(writer, code, answer)
        rule = self.faults.find(method, target)
        path, _, query = target.partition("?")
        self.counts[f"{method} {generic(path)}"] += 1
        if re.search(r"(^|&)watch=(1|true)", query):
            await self.watch(reader, writer, method, target, head, rule)
            return False
        if rule and not await self.fault(rule, writer, method, target, head, body):
            return rule.do == "status"
        code, headers, text = await self.act(method, path, target, head, body)
        if rule and rule.do == "delay-reply":
            await asyncio.sleep(rule.seconds)
        writer.write(http1.encode(f"HTTP/1.1 {code} -", {**headers, "content-length": str(len(text))}, text))
        await writer.drain()
        return head.keeps

    async def fault(self, rule, writer, method, target, head, body):
        """False if the rule has ended the request."""
        if rule.do == "delay":
            await asyncio.sleep(rule.seconds)
        if rule.do not in ("status", "reset"):
            return True
        if rule.forward:
            await self.act(method, target.partition("?")[0], target, head, body)
        if rule.do == "reset":
            http1.reset(writer)
            return False
        more = {"retry-after": str(rule.retry_after)} if rule.retry_after is not None else {}
        self.answer(writer, rule.code, status(rule.code, rule.message or "injected by the test proxy"), more)
        return False

    def answer(self, writer, code, body, more=None):
        text = json.dumps(body).encode()
        headers = {"content-type": "application/json", "content-length": str(len(text)), **(more or {})}
        writer.write(http1.encode(f"HTTP/1.1 {code} -", headers, text))
        return True

    # Requests.
    async def act(self, method, path, target, head, body):
        """(code, headers, body) of what the API server answers, or this proxy in its place."""
        at = POD.match(path)
        part = at and at[3]
        try:
            if part == "resize" and self.options["resize"]:
                return await self.resize(method, at[1], at[2], head, body)
            if part == "binding" and method == "POST":
                await self.check_binding(at[1], at[2], body)
        except Refusal as e:
            return e.code, {"content-type": "application/json"}, json.dumps(status(e.code, str(e), e.causes)).encode()
        if b"schedulingGates" in body and PODS.match(path):
            body = gates_as_note(body)
        headers = self.forwarded(head)
        rewrites = method == "GET" and path == "/api/v1"
        if rewrites or PODS.match(path):
            headers.pop("accept-encoding", None)
        reply, text = await self.api.call(method, target, headers, body)
        code = int(reply.first[1])
        if rewrites and code == 200 and self.options["resize"]:
            text = with_resize(text)
        elif MARK in text and PODS.match(path) and code < 300:
            text = modern_text(text)
        keep = {n: v for n, v in reply.headers.items() if n not in ("transfer-encoding", "content-length",
                                                                   "connection")}
        return code, keep, text

    @staticmethod
    def forwarded(head):
        return {n: v for n, v in head.headers.items()
                if n not in ("host", "content-length", "transfer-encoding", "connection", "expect")}

    async def stored(self, ns, name):
        """(pod, MOD revision) as etcd has it."""
        key = base64.b64encode(f"/registry/pods/{ns}/{name}".encode()).decode()
        found = await self.gateway("range", {"key": key})
        if not found.get("kvs"):
            raise Refusal(404, f'pods "{name}" not found')
        kv = found["kvs"][0]
        pod = json.loads(base64.b64decode(kv["value"]))
        pod["metadata"]["resourceVersion"] = kv["mod_revision"]
        return pod, kv["mod_revision"], key

    async def gateway(self, verb, body):
        head, text = await self.etcd.call("POST", "/v3/kv/" + verb, {"content-type": "application/json"},
                                          json.dumps(body).encode())
        if head.first[1] != "200":
            raise Refusal(500, f"etcd {verb}: {text.decode(errors='replace')}")
        return json.loads(text)

    async def check_binding(self, ns, name, body):
        if not self.options["uid"]:
            return
        try:
            given = json.loads(body).get("metadata") or {}
        except (ValueError, AttributeError):
            return  # the API server says what is wrong with it
        pod, _, _ = await self.stored(ns, name)
        meta, what = pod["metadata"], f'Operation cannot be fulfilled on pods/binding "{name}": '
        for key, text in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if given.get(key) not in (None, "", meta[key]):
                raise Refusal(409, f"{what}Precondition failed: {text} in precondition: {given[key]}, {text} in "
                                   f"object meta: {meta[key]}")
        gates = (meta.get("annotations") or {}).get(GATES)
        if gates and json.loads(gates):
            raise Refusal(409, what + f"pod {name} has non-empty .spec.schedulingGates")

    async def resize(self, method, ns, name, head, body):
        verb = {"PATCH": "patch", "GET": "get"}.get(method)
        kind = head.get("content-type").partition(";")[0]
        if not verb:
            raise Refusal(405, f"{method} of pods/resize is not served by the test proxy")
        await self.authorize(verb, ns, name, head)
        for _ in range(20):
            pod, revision, key = await self.stored(ns, name)
            if verb == "get":
                break
            if kind not in ("application/strategic-merge-patch+json", "application/merge-patch+json"):
                raise Refusal(415, f"the body of the request was in an unknown format: {kind}")
            try:
                patch = json.loads(body)
                assert isinstance(patch, dict)
            except (ValueError, AssertionError):
                raise Refusal(400, "the patch is not a JSON object") from None
            new = resized(pod, patch, kind.startswith("application/strategic"), *await self.surroundings(pod))
            if new == pod:
                break
            pod, done = await self.swap(key, revision, new)
            if done:
                break
        else:
            raise Refusal(409, f'Operation cannot be fulfilled on pods "{name}": too many concurrent changes')
        return 200, {"content-type": "application/json"}, json.dumps(modern(pod)).encode()

    async def swap(self, key, revision, new):
        """(stored pod, True), or (None, False) if it has changed meanwhile."""
        value = json.loads(json.dumps(new))
        value["metadata"].pop("resourceVersion")
        text = base64.b64encode(json.dumps(value, separators=(",", ":")).encode() + b"\n").decode()
        got = await self.gateway("txn", {
            "compare": [{"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision}],
            "success": [{"requestPut": {"key": key, "value": text}}]})
        if not got.get("succeeded"):
            return None, False
        new["metadata"]["resourceVersion"] = got["header"]["revision"]
        return new, True

    async def surroundings(self, pod):
        """(node or None, limit ranges, quotas) of a pod."""
        async def ask(path):
            head, text = await self.api.call("GET", path, self.admin)
            return json.loads(text) if head.first[1] == "200" else {}
        node, base = pod["spec"].get("nodeName"), f"/api/v1/namespaces/{pod['metadata']['namespace']}"
        return (await ask(f"/api/v1/nodes/{node}") or None if node else None,
                (await ask(base + "/limitranges")).get("items") or [],
                (await ask(base + "/resourcequotas")).get("items") or [])

    async def authorize(self, verb, ns, name, head):
        """What the account may do to pods/resize is the API server's to say."""
        ask = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
            "resourceAttributes": {"namespace": ns, "name": name, "verb": verb, "resource": "pods",
                                   "subresource": "resize"}}}
        headers = {**self.admin, "authorization": head.get("authorization")}
        reply, text = await self.api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", headers,
                                          json.dumps(ask).encode())
        if reply.first[1] == "401":
            raise Refusal(401, "Unauthorized")
        if not (json.loads(text).get("status") or {}).get("allowed"):
            raise Refusal(403, f'pods "{name}" is forbidden: cannot {verb} resource "pods/resize" in the namespace '
                               f'"{ns}"')

    # Watches.
    async def watch(self, reader, writer, method, target, head, rule):
        if rule and not await self.fault(rule, writer, method, target, head, b""):
            await writer.drain()
            return
        headers = self.forwarded(head)
        headers.pop("accept-encoding", None)
        reply, source, upstream = await self.api.send(method, target, headers, b"")
        left = asyncio.ensure_future(reader.read(1))  # a client that leaves ends its watch, also while nothing happens
        left.add_done_callback(lambda t: (t.cancelled() or t.exception(), upstream.transport.abort()))
        try:
            if reply.first[1] != "200" or not reply.chunked:
                text = await http1.read_body(source, reply, True)
                writer.write(http1.encode(f"HTTP/1.1 {reply.first[1]} -", {
                    "content-type": reply.get("content-type"), "content-length": str(len(text)),
                    "connection": "close"}, text))
                await writer.drain()
                return
            writer.write(http1.encode("HTTP/1.1 200 OK", {"content-type": "application/json",
                                                         "transfer-encoding": "chunked"}))
            watch = Watch(target, writer, upstream, rule if rule and rule.do in END else None)
            self.watching.add(watch)
            try:
                await self.stream(watch, source)
            finally:
                self.watching.discard(watch)
        finally:
            left.cancel()
            upstream.transport.abort()

    async def stream(self, watch, source):
        rest, pods = b"", PODS.match(watch.path.partition("?")[0])
        if watch.rule and not watch.rule.events and self.finish(watch, watch.rule.do):
            return
        async for piece in http1.chunks(source):
            *whole, rest = (rest + piece).split(b"\n")
            out = []
            for line in whole:
                if pods and MARK in line:
                    line = modern_text(line)
                watch.last = line
                watch.events += 1
                out.append(line + b"\n")
                if watch.rule and watch.events >= watch.rule.events:
                    send(watch.writer, b"".join(out))
                    await watch.writer.drain()
                    self.finish(watch, watch.rule.do)
                    return
            while watch.stalled > asyncio.get_running_loop().time():
                await asyncio.sleep(0.02)
            if watch.writer.transport.is_closing():
                return
            if out:
                send(watch.writer, b"".join(out))
                await watch.writer.drain()
        watch.writer.write(b"0\r\n\r\n")

    def finish(self, watch, do):
        """Ends a watch in one of the ways that faults.py lists."""
        if do == "gone":
            send(watch.writer, json.dumps({"type": "ERROR", "object": {
                **status(410, "too old resource version: 1 (2)"), "reason": "Expired"}}).encode() + b"\n")
        if do == "cut-mid":
            send(watch.writer, watch.last[:max(len(watch.last) // 2, 1)])
        if do in ("end", "gone"):
            watch.writer.write(b"0\r\n\r\n")
            watch.writer.close()
        elif do == "cut-mid":  # what is written goes out before the end
            watch.writer.close()
        else:
            http1.reset(watch.writer)
        return True

    # The control endpoint.
    def control(self, method, what, body):
        try:
            given = json.loads(body) if body else {}
            if what == "rules" and method == "POST":
                self.faults.add(given)
            elif what == "rules" and method == "DELETE":
                self.faults.clear()
            elif what == "options" and method == "POST":
                self.options.update(given)
            elif what == "watches" and method == "POST":
                return 200, {"watches": self.each_watch(given)}
        except (ValueError, KeyError, TypeError, re.error) as e:
            return 400, {"message": str(e)}
        return 200, {"rules": self.faults.report(), "options": self.options, "counts": self.counts,
                     "watches": [w.path for w in self.watching]}

    def each_watch(self, given):
        hit = [w for w in self.watching if re.search(given.get("path", ""), w.path)]
        for w in hit:
            if given["do"] == "stall":
                w.stalled = asyncio.get_running_loop().time() + given["seconds"]
            elif given["do"] in END:
                self.finish(w, given["do"])
                w.upstream.transport.abort()
            else:
                raise ValueError("do must be stall, " + ", ".join(END))
        return len(hit)


END = ("cut", "cut-mid", "end", "gone")


def send(writer, data):
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def generic(path):
    """A path without the names of objects."""
    return re.sub(r"/(namespaces|pods|nodes|leases|events)/[^/]+", r"/\1/*", path)


def with_resize(text):
    found = json.loads(text)
    if "resources" in found and not any(r["name"] == "pods/resize" for r in found["resources"]):
        found["resources"].append(RESIZE)
    return json.dumps(found).encode()


def modern_text(text):
    found = json.loads(text)
    if "items" in found:
        for pod in found["items"] or []:
            modern(pod)
    elif found.get("kind") == "Pod":
        modern(found)
    elif (found.get("object") or {}).get("kind") == "Pod":
        modern(found["object"])
    return json.dumps(found, separators=(",", ":")).encode()


def gates_as_note(body):
    """A pod, or a patch of one, with its schedulingGates as an annotation; null or an empty list removes them."""
    found = json.loads(body)
    spec = found.get("spec") if isinstance(found, dict) else None
    if spec and "schedulingGates" in spec:
        gates = spec.pop("schedulingGates")
        notes = found.setdefault("metadata", {}).get("annotations") or {}
        notes[GATES] = json.dumps(gates) if gates else None if "kind" not in found else "[]"
        found["metadata"]["annotations"] = notes
    return json.dumps(found).encode()


async def serve(o):
    server = Server(o.upstream, o.etcd, o.certificate, o.key, sys.stdin.readline().strip())
    listening = await asyncio.start_server(server.client, "127.0.0.1", o.port, ssl=server.tls, limit=1 << 22,
                                           backlog=512)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, sys.exit, 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


class Proxy:
    """The proxy as a child process; `url` is where it listens."""

    def __init__(self, cluster, admin=None):
        import subprocess
        import process
        self.cluster, self.process = cluster, process
        certs = cluster.file("certs/apiserver")
        command = ["/usr/bin/python3", "-u", __file__, "--upstream", cluster.url, "--etcd", cluster.etcd_url,
                   "--certificate", certs + ".crt", "--key", certs + ".key", "--port", process.free_port()]
        self.child = process.start(command, open(cluster.file("proxy.log"), "ab"), stdout=subprocess.PIPE,
                                   stdin=subprocess.PIPE)
        self.child.stdin.write((cluster.tokens["admin"] + "\n").encode())  # not on the command line
        self.child.stdin.close()
        port = self.child.stdout.readline().decode().strip()
        if not port:
            raise AssertionError("the proxy does not start: " + cluster.said("proxy.log"))
        self.port, self.url = int(port), f"https://127.0.0.1:{port}"
        self.admin, self.scheduler = cluster.admin.to(self.url), cluster.scheduler.to(self.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.stop(self.child, signal.SIGKILL)
        self.child.stdout.close()

    def ask(self, method, what, body=None):
        tls = ssl.create_default_context(cafile=self.cluster.ca)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=tls)
        try:
            connection.request(method, "/_proxy/" + what, json.dumps(body) if body is not None else None)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(answer["message"])
        return answer

    def fault(self, **rule):
        self.ask("POST", "rules", rule)

    def clear(self):
        self.ask("DELETE", "rules")

    def hits(self):
        """How often each rule has hit, in the order in which they were given."""
        return [r["hits"] for r in self.ask("GET", "rules")["rules"]]

    def counts(self):
        """Requests by method and path, names of objects as `*`."""
        return self.ask("GET", "rules")["counts"]

    def watches(self, do, path="", seconds=0):
        """Does something to the watches that are open now; how many there were."""
        return self.ask("POST", "watches", {"do": do, "path": path, "seconds": seconds})["watches"]

    def options(self, **options):
        self.ask("POST", "options", options)


def main():
    parser = argparse.ArgumentParser(description="The administrator's token is read from standard input.")
    for name in ("upstream", "etcd", "certificate", "key"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--port", type=int, default=0)
    try:
        asyncio.run(serve(parser.parse_args()))
    except (KeyboardInterrupt, SystemExit):
        pass


if __name__ == "__main__":
    main()
