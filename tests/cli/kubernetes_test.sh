#!/bin/sh
# deploy/kubernetes: every manifest parses, and its names agree with each other and with the program; the helper script
# is short and reports what it should.
. "$SRC/tests/cli/expect.sh"
command -v python3 >/dev/null && python3 -c 'import yaml' 2>/dev/null || exit 77
for command in "cluster schedule" serve; do
    expect 0 $command --help
    grep -o '^  --[a-z-]*' "$dir/out" | tr -d ' ' >"$dir/$(echo "$command" | tr ' ' _).flags"
done
python3 - "$SRC" "$dir" <<'PY' || fail "the manifests are not what they should be"
import glob, os, re, sys
import yaml
src, out = sys.argv[1:]
folder = os.path.join(src, "deploy", "kubernetes")
files = {os.path.basename(f): list(yaml.safe_load_all(open(f))) for f in glob.glob(folder + "/*.yaml")}
named = {(d["kind"], d.get("metadata", {}).get("name")): d for docs in files.values() for d in docs if d}
def check(ok, why):
    if not ok: sys.exit(why)
for d in named.values():
    check(d["apiVersion"] and d["kind"], f"no kind: {d}")
flags = {c: set(open(f"{out}/{c}.flags").read().split()) for c in ("cluster_schedule", "serve")}

pods = named["Deployment", "cotenant"]["spec"]["template"]["spec"]
box = pods["containers"][0]
args = box["args"]
check(args[:2] == ["cluster", "schedule"], "the command")
for a in args[2:]:
    check(a.split("=")[0] in flags["cluster_schedule"], f"cluster schedule has no option {a}")
port = box["ports"][0]
check(f"--listen=0.0.0.0:{port['containerPort']}" in args, "the port")
for probe in ("livenessProbe", "readinessProbe"):
    check(box[probe]["httpGet"]["port"] == port["name"], f"port of {probe}")
    check(f'"{box[probe]["httpGet"]["path"]}"' in open(src + "/src/kube/kube_server.c").read(), f"page of {probe}")
check(named["Deployment", "cotenant"]["spec"]["replicas"] == 2, "replicas")

account = named["ServiceAccount", "cotenant"]["metadata"]
check(pods["serviceAccountName"] == account["name"], "the account")
for kind in ("ClusterRoleBinding", "RoleBinding"):
    b = named[kind, "cotenant"]
    check(b["subjects"] == [{"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}], kind)
    check((b["roleRef"]["kind"], b["roleRef"]["name"]) in named, f"role of {kind}")
lease = next(a for a in args if a.startswith("--lease-name=")).split("=")[1]
check(any(r.get("resourceNames") == [lease] for r in named["Role", "cotenant"]["rules"]), "the lease's name")
rules = named["ClusterRole", "cotenant"]["rules"] + named["Role", "cotenant"]["rules"]
for r in rules:
    check("*" not in r["verbs"] + r["resources"] + r["apiGroups"], f"a wildcard: {r}")
    check(not {"pods", "nodes", "secrets"} & set(r["resources"]) or set(r["verbs"]) <= {"get", "list", "watch"},
          f"a right to change: {r}")
watched = re.findall(r'"/(?:api|apis)/[^"]*/([a-z]+)",', open(src + "/src/kube/cluster_kube_watch.c").read())
check(len(watched) >= 8, f"collections watched: {watched}")
for kind in watched:
    check(any(kind in r["resources"] and {"list", "watch"} <= set(r["verbs"]) for r in rules), f"no right to watch {kind}")
for r in rules:
    for kind in r["resources"] if "watch" in r["verbs"] else []:
        check(kind in watched, f"{kind} need not be watched")

volumes = {v["name"]: v for v in pods["volumes"]}
check({m["name"] for m in box["volumeMounts"]} == set(volumes), "volumes")
switch = next(a for a in args if a.startswith("--switch-file=")).split("=")[1]
mount = next(m for m in box["volumeMounts"] if switch.startswith(m["mountPath"] + "/"))
data = named["ConfigMap", volumes[mount["name"]]["configMap"]["name"]]["data"]
check(yaml.safe_load(data[os.path.basename(switch)]) == {"act": "all"}, "the switch file")
records = next(a for a in args if a.startswith("--records=")).split("=")[1]
check(any(records.startswith(m["mountPath"] + "/") and not m.get("readOnly") for m in box["volumeMounts"]), "the records")

labels = named["Deployment", "cotenant"]["spec"]["template"]["metadata"]["labels"]
for d in (named["PodMonitor", "cotenant"]["spec"]["selector"], named["NetworkPolicy", "cotenant"]["spec"]["podSelector"],
          named["Deployment", "cotenant"]["spec"]["selector"]):
    check(d["matchLabels"].items() <= labels.items(), f"a selector: {d}")
check(named["Service", "cotenant"]["spec"]["selector"].items() <= labels.items(), "the service's selector")
for ports in (named["PodMonitor", "cotenant"]["spec"]["podMetricsEndpoints"],
              [{"port": p["targetPort"]} for p in named["Service", "cotenant"]["spec"]["ports"]],
              [{"port": p["port"]} for r in named["NetworkPolicy", "cotenant"]["spec"]["ingress"] for p in r["ports"]]):
    check(all(p["port"] == port["name"] for p in ports), f"a port: {ports}")
listed = named["Kustomization", None] if ("Kustomization", None) in named else files["kustomization.yaml"][0]
check(all(r in files for r in listed["resources"]), "resources of the kustomization")

known = set(re.findall(r'"((?:cotenant\.io|scheduling\.x-k8s\.io)/[a-z-]+)"', open(src + "/src/kube/kube_labels.def").read()))
gang = named["Job", "train-gang"]["spec"]
meta = gang["template"]["metadata"]
used = {k for k in {**meta["labels"], **meta["annotations"]} if "cotenant.io/" in k} - {"cotenant.io/reports-progress"}
check(used <= known, f"labels that are not read: {used - known}")
check(meta["annotations"]["cotenant.io/gang-min"] == str(gang["parallelism"]) == str(gang["completions"]), "the gang's size")
check(gang["template"]["spec"]["schedulerName"] == next(a for a in args if "scheduler-name" in a).split("=")[1], "its scheduler")
serve = named["Deployment", "inference"]["spec"]["template"]["spec"]
for a in serve["containers"][0]["args"]:
    check(not a.startswith("--") or a.split("=")[0] in flags["serve"], f"serve has no option {a}")
check(("PriorityClass", serve["priorityClassName"]) in named, "its priority class")
PY

# The options and commands that the document shows exist.
grep -o -e '^cotenant [a-z ]*' "$SRC/docs/kubernetes.md" | sed 's/ *$//' | sort -u >"$dir/commands"
[ -s "$dir/commands" ] || fail "the document shows no command"
while read -r _ words; do expect 0 $words --help; done <"$dir/commands"
grep -o -e '`--[a-z-]*' "$SRC/docs/kubernetes.md" | tr -d '`' | sort -u | while read -r flag; do
    grep -qx -e "$flag" "$dir/cluster_schedule.flags" || fail "docs/kubernetes.md: cluster schedule has no option $flag"
done || exit 1

# The helper: one report each `seconds`, with the rate, and no exception without a server.
[ "$(wc -l <"$SRC/examples/kubernetes_progress.py")" -lt 100 ] || fail "the helper is long"
cd "$SRC/examples" && POD_NAMESPACE=ns POD_NAME=p POD_UID=u PYTHONDONTWRITEBYTECODE=1 timeout 60 python3 - <<'PY' || fail "the helper"
import http.server, json, threading
from kubernetes_progress import Progress
got, codes = [], [200, 503, 200]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        self.send_response(codes.pop(0))
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
now = [0.0]
p = Progress(f"http://127.0.0.1:{server.server_address[1]}", seconds=10, clock=lambda: now[0])
for i in range(51):
    p.step()
    now[0] += 0.5
body = {"namespace": "ns", "pod": "p", "uid": "u", "iterations_per_second": 2.0}
want = [("/progress", {**body, "iterations": n}) for n in (21, 41, 41)]
assert got == want, got
server.shutdown()
server.server_close()
assert Progress("http://127.0.0.1:1", timeout=0.2).report(1.0) is False
PY
