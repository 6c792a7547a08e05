"""A Kubernetes control plane on loopback: etcd and kube-apiserver, with an administrator and a scheduler's account.

    with Cluster() as c:
        c.admin.list("/api/v1/nodes")

KUBE_APISERVER names the server's binary; tools/kube-apiserver is asked otherwise. Nothing is left behind: the processes
die with this one, and the folder goes when it exits.
"""
import atexit
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import process
from api import Api, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RBAC = os.path.join(ROOT, "deploy", "kubernetes", "rbac.yaml")
ACCOUNT = ("cotenant", "cotenant")  # namespace and name of the scheduler's account, unless RBAC says otherwise
COLLECTIONS = {"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "ConfigMap": "configmaps",
               "Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles", "Lease": "leases",
               "ClusterRoleBinding": "clusterrolebindings", "PriorityClass": "priorityclasses",
               "CustomResourceDefinition": "customresourcedefinitions", "PodDisruptionBudget": "poddisruptionbudgets"}
GLOBAL = ("Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "CustomResourceDefinition")


class Missing(Exception):
    """The API server cannot be had here: the caller is skipped."""


def binary():
    path = os.environ.get("KUBE_APISERVER")
    if path:
        return path
    got = subprocess.run([os.path.join(ROOT, "tools", "kube-apiserver")], stdout=subprocess.PIPE, text=True)
    if got.returncode:
        raise Missing("kube-apiserver is neither cached nor can it be built")
    return got.stdout.strip()


class Cluster:
    def __init__(self, rbac=RBAC, flags=(), seconds=120):
        """rbac: manifest of the scheduler's rights; without the file, rights that suffice for every call."""
        self.server, self.flags, self.seconds = binary(), list(flags), seconds
        if not shutil.which("etcd") or not shutil.which("openssl") or not shutil.which("setpriv"):
            raise Missing("etcd, openssl or setpriv is not installed (deps-kube.txt)")
        process.on_signals()
        self.dir = tempfile.mkdtemp(prefix="cotenant-kube-")
        atexit.register(self.stop)
        self.manifest = open(rbac).read() if rbac and os.path.exists(rbac) else None
        self.account = account_of(self.manifest) if self.manifest else ACCOUNT
        self.etcd = self.api = None
        self.write_files()
        try:
            self.start_etcd()
            self.start_api()
            self.prepare()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def file(self, name):
        return os.path.join(self.dir, name)

    def write_files(self):
        ns, name = self.account
        self.tokens = {"admin": "admintoken-" + os.urandom(8).hex(), "scheduler": "schedtoken-" + os.urandom(8).hex()}
        with open(self.file("tokens.csv"), "w") as f:
            f.write(f"{self.tokens['admin']},admin,uid-admin,system:masters\n")
            f.write(f"{self.tokens['scheduler']},system:serviceaccount:{ns}:{name},uid-scheduler,"
                    f'"system:serviceaccounts,system:serviceaccounts:{ns},system:authenticated"\n')
        for account, token in self.tokens.items():
            with open(self.file(account + ".token"), "w") as f:
                f.write(token)
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["openssl", "genrsa", "-out", self.file("sa.key"), "2048"], **quiet)
        subprocess.run(["openssl", "rsa", "-in", self.file("sa.key"), "-pubout", "-out", self.file("sa.pub")], **quiet)

    # Processes.
    def start_etcd(self):
        for attempt in range(5):
            client, peer = process.free_port(), process.free_port()
            self.etcd_url, to = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
            command = ["etcd", "--name", "default", "--data-dir", self.file(f"etcd-{attempt}"),
                       "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url,
                       "--listen-peer-urls", to, "--initial-advertise-peer-urls", to,
                       "--initial-cluster", f"default={to}", "--unsafe-no-fsync", "--logger", "zap",
                       "--quota-backend-bytes", str(4 << 30)]
            self.etcd = process.start(command, open(self.file("etcd.log"), "ab"))
            try:
                until(lambda: self.etcd.poll() is not None or self.etcd_healthy(), self.seconds,
                      lambda: "etcd healthy: " + self.said("etcd.log"))
            except AssertionError:
                process.stop(self.etcd)
                raise
            if self.etcd.poll() is None:
                return
        raise AssertionError("etcd does not start: " + self.said("etcd.log"))

    def etcd_healthy(self):
        try:
            with urllib.request.urlopen(self.etcd_url + "/health", timeout=2) as r:
                return json.load(r).get("health") == "true"
        except (OSError, ValueError):
            return False

    def command(self):
        return [self.server, "--etcd-servers=" + self.etcd_url, "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1", f"--secure-port={self.port}", "--cert-dir=" + self.file("certs"),
                "--service-cluster-ip-range=10.99.0.0/24",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-account-key-file=" + self.file("sa.pub"),
                "--service-account-signing-key-file=" + self.file("sa.key"), "--authorization-mode=RBAC",
                "--token-auth-file=" + self.file("tokens.csv"), "--disable-admission-plugins=ServiceAccount",
                "--endpoint-reconciler-type=none", "--storage-media-type=application/json", *self.flags]

    def start_api(self):
        """Takes a free port at first, and the same one when it is started again."""
        first = not hasattr(self, "port")
        for _ in range(5):
            if first:
                self.port = process.free_port()
            self.url, self.ca = f"https://127.0.0.1:{self.port}", self.file("certs/apiserver.crt")
            self.api = process.start(self.command(), open(self.file("apiserver.log"), "ab"))
            until(lambda: self.api.poll() is not None or self.ready(), self.seconds,
                  lambda: "API server ready: " + self.said("apiserver.log"), 0.1)
            if self.api.poll() is None:
                return
            time.sleep(0 if first else 1)
        raise AssertionError("kube-apiserver does not start: " + self.said("apiserver.log"))

    def ready(self):
        if not os.path.exists(self.ca):
            return False
        try:
            self.admin = Api(self.url, self.tokens["admin"], self.ca)
            return self.admin.call("GET", "/readyz", timeout=5).status == 200
        except OSError:
            return False

    def kill_api(self, sig=signal.SIGKILL):
        self.api.send_signal(sig)
        self.api.wait()
        process.stop(self.api)

    def restart_api(self):
        """Seconds from kill -9 until it is ready again."""
        start = time.monotonic()
        self.kill_api()
        self.start_api()
        return time.monotonic() - start

    def stop(self):
        for child in (self.api, self.etcd):
            process.stop(child, signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)

    def said(self, log, characters=3000):
        try:
            with open(self.file(log), "rb") as f:
                return f.read().decode(errors="replace")[-characters:]
        except OSError:
            return ""

    def rss(self, child):
        with open(f"/proc/{child.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    # Accounts.
    def prepare(self):
        self.scheduler = Api(self.url, self.tokens["scheduler"], self.ca)
        until(lambda: self.admin.call("GET", "/api/v1/namespaces/default").status == 200, 60, "namespace default")
        self.namespace(self.account[0])
        self.apply(self.manifest if self.manifest else json_documents(default_rbac(*self.account)))

    def namespace(self, name):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        reply = self.admin.call("POST", "/api/v1/namespaces", body)
        assert reply.status in (201, 409), reply.text

    def apply(self, text):
        """Creates the objects of a manifest, of one YAML or JSON document or several; the server parses them."""
        for document in documents(text):
            head = head_of(document)
            kind, version = head["kind"], head["apiVersion"]
            if kind not in COLLECTIONS:
                continue
            path = ("/api/" if "/" not in version else "/apis/") + version
            if kind not in GLOBAL:
                path += f"/namespaces/{head.get('namespace', 'default')}"
            reply = self.admin.call("POST", f"{path}/{COLLECTIONS[kind]}", document, "application/yaml")
            if reply.status == 409 and kind != "Namespace":
                path = f"{path}/{COLLECTIONS[kind]}/{head['name']}"
                reply = self.admin.call("PUT", path, document, "application/yaml")
            assert reply.status in (200, 201, 409), f"{kind} {head.get('name')}: {reply.text}"

    def kubeconfig(self, account="scheduler", url=None, inline=False, token_file=False):
        """Path of a kubeconfig for `admin` or `scheduler`; url: a proxy's."""
        ca = f"certificate-authority: {self.ca}"
        if inline:
            with open(self.ca, "rb") as f:
                ca = "certificate-authority-data: " + base64.b64encode(f.read()).decode()
        token = f"tokenFile: {self.file(account + '.token')}" if token_file else f"token: {self.tokens[account]}"
        path = self.file(f"{account}-{len(os.listdir(self.dir))}.kubeconfig")
        with open(path, "w") as f:
            f.write(f"""apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: {url or self.url}
    {ca}
contexts:
- name: test
  context:
    cluster: test
    user: {account}
    namespace: {self.account[0]}
users:
- name: {account}
  user:
    {token}
""")
        return path


def documents(text):
    return [d for d in re.split(r"^---.*$", text, flags=re.M) if re.search(r"^[^#\s]", d, re.M)]


def head_of(document):
    """Kind, version, name and namespace, without a YAML parser: what stands at the outermost level and in metadata."""
    if document.lstrip().startswith("{"):
        whole = json.loads(document)
        return {**whole["metadata"], "kind": whole["kind"], "apiVersion": whole["apiVersion"]}
    head = {k: v.strip("\"'") for k, v in re.findall(r"^(kind|apiVersion): *([^\s#]+)", document, re.M)}
    block = re.search(r"^metadata:.*\n((?:[ #].*\n?|\n)*)", document, re.M)
    for k, v in re.findall(r"^  (name|namespace): *([^\s#]+)", block[1] if block else "", re.M):
        head[k] = v.strip("\"'")
    return head


def account_of(manifest):
    """Namespace and name of the ServiceAccount in a manifest."""
    for document in documents(manifest):
        head = head_of(document)
        if head.get("kind") == "ServiceAccount":
            return head.get("namespace", "default"), head["name"]
    return ACCOUNT


def json_documents(objects):
    return "\n---\n".join(json.dumps(o) for o in objects)


def default_rbac(ns, name):
    """Rights that suffice for a scheduler."""
    def rule(groups, resources, *verbs):
        return {"apiGroups": groups, "resources": resources, "verbs": list(verbs)}
    api, look = "rbac.authorization.k8s.io", ("get", "list", "watch")
    rules = [rule([""], ["nodes", "namespaces", "persistentvolumeclaims", "persistentvolumes"], *look),
             rule(["policy"], ["poddisruptionbudgets"], *look),
             rule(["scheduling.k8s.io"], ["priorityclasses"], *look),
             rule(["storage.k8s.io"], ["storageclasses", "csinodes"], *look),
             rule(["scheduling.x-k8s.io"], ["podgroups"], *look),
             rule([""], ["pods"], *look, "delete"), rule([""], ["pods/binding", "pods/eviction"], "create"),
             rule([""], ["pods/status", "pods/resize"], "patch"),
             rule(["events.k8s.io"], ["events"], "create", "patch")]
    own = [rule(["coordination.k8s.io"], ["leases"], "create", "get", "update")]
    subject = [{"kind": "ServiceAccount", "name": name, "namespace": ns}]

    def item(kind, more, namespaced):
        meta = {"name": name, **({"namespace": ns} if namespaced else {})}
        return {"apiVersion": f"{api}/v1", "kind": kind, "metadata": meta, **more}
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": ns}},
            item("ClusterRole", {"rules": rules}, False), item("Role", {"rules": own}, True),
            item("ClusterRoleBinding", {"subjects": subject,
                                        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name}}, False),
            item("RoleBinding", {"subjects": subject, "roleRef": {"apiGroup": api, "kind": "Role", "name": name}},
                 True)]
