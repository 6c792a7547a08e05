"""Serves ONNX's suite and compares every answer with what `cotenant run` writes, bit for bit.

Each case is asked as REST with binary tensors, REST with JSON, gRPC raw and gRPC typed, where its types allow it. What
is left out is named here with its reason, and the numbers of cases are exact: none is lost unseen.
Environment: COTENANT is the program, PB the folder of inference_pb2.py.
"""
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from cases import DATA, Case, NotCarried, same
from wire import Grpc, Refused, Rest

SUITES = {"node": 932, "simple": 23}
GROUP = 120  # models of one server
NOT_CARRIED = {"sequence": 17, "optional": 7}  # inputs or outputs that no message of the protocols can hold
NOT_RUN = {  # `cotenant run` rejects them too
    "test_castlike_FLOAT_to_BFLOAT16_expanded": "has shape 1, the model takes 3x4",
    "test_castlike_FLOAT_to_BFLOAT16": "has shape 1, the model takes 3x4",
    "test_castlike_BFLOAT16_to_FLOAT_expanded": "has shape 1, the model takes 3x4",
    "test_castlike_BFLOAT16_to_FLOAT": "has shape 1, the model takes 3x4",
    "test_adam_multiple": "epsilon is missing",
    "test_gradient_of_add": "operator Gradient",
    "test_gradient_of_add_and_mul": "operator Gradient",
}
NOT_SERVED = {"test_sequence_model8": "dimension 0 is 0, nothing to compute"}  # an input without elements
ASKED = {"rest binary": 924, "grpc raw": 924, "grpc typed": 910, "rest json": 899}  # answers compared, at least


class Server:
    """A server of a folder of models. One core: with more, the last bit of a sum may depend on how it was divided."""

    def __init__(self, folder):
        self.log = open(f"{folder}.log", "w+")
        args = [os.environ["COTENANT"], "serve", folder, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--cores", "1",
                "--metrics", "off", "--admin", "http", "--drain-delay-ms", "0", "--set", "warmup=0",
                "--set", "required=false", "--store", f"{folder}.store"]
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=self.log, text=True)
        said = self.process.stdout.readline().strip()
        assert said.startswith("http "), f"the server did not start: {self.said()}"
        where = dict(part.split(" ") for part in said.split(", "))
        self.rest, self.grpc = Rest(where["http"]), Grpc(where["grpc"], os.environ["PB"])

    def said(self):
        self.log.seek(0)
        return self.log.read()[-2000:]

    def loaded(self):
        """Names of the models that are ready, once none is being loaded."""
        for _ in range(2400):
            models = json.loads(self.rest.call("POST", "/v2/repository/index", "")[1])
            if all(m["state"] != "LOADING" for m in models):
                return {m["name"] for m in models if m["state"] == "READY"}
            time.sleep(0.05)
        raise AssertionError("models are still loading")

    def stop(self):
        self.rest.connection.close()
        self.grpc.channel.close()
        self.process.terminate()
        assert self.process.wait(60) == 0, f"the server did not end as it should: {self.said()}"


def find(work):
    """All cases, and the reasons of those that the protocols cannot carry."""
    cases, not_carried = [], collections.Counter()
    for suite, size in SUITES.items():
        names = sorted(os.listdir(f"{DATA}/{suite}"))
        assert len(names) == size, f"{suite} has {len(names)} cases, not {size}"
        for name in names:
            try:
                cases.append(Case(suite, name, work))
            except NotCarried as e:
                not_carried[str(e)] += 1
    return cases, not_carried


def references(cases, work):
    """What `cotenant run` computes, by case, without those that it rejects."""
    def run(case):
        try:
            return case.run(tempfile.mkdtemp(dir=work))
        except RuntimeError as e:
            reason = NOT_RUN.get(case.name)
            assert reason and reason in str(e), f"{case.name}: {e}"
            return None
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip([c.name for c in cases], pool.map(run, cases)))


def attempt(call, case):
    """The answer, or the reason why there is none."""
    try:
        return call(case.name, case.inputs)
    except Refused as e:
        return str(e)


def ask(server, case):
    """Answers by form."""
    answers = {"rest binary": attempt(server.rest.binary, case), "grpc raw": attempt(server.grpc.raw, case)}
    if all(t.has_typed() for t in case.inputs):
        answers["grpc typed"] = attempt(server.grpc.typed, case)
    first = answers["rest binary"]
    if isinstance(first, dict) and all(t.has_json() for t in case.inputs + list(first.values())):
        answers["rest json"] = attempt(server.rest.json, case)
    return answers


def wrong(case, got, want):
    """What is wrong with an answer; None: nothing."""
    if isinstance(got, str):
        reason = NOT_SERVED.get(case.name)
        return None if reason and reason in got else got
    if case.name in NOT_SERVED:
        return "answered, but listed as not served"
    if sorted(got) != sorted(want):
        return f"outputs {sorted(got)}, not {sorted(want)}"
    differ = [name for name in want if not same(got[name], want[name])]
    return f"not what `cotenant run` computes: {differ}" if differ else None


def serve(number, group, want, work, counts):
    """Asks a group of cases on a server of their own; returns what is wrong."""
    folder, failures = f"{work}/models{number}", []
    for case in group:
        os.makedirs(f"{folder}/{case.name}/1")
        shutil.copyfile(case.path, f"{folder}/{case.name}/1/model.onnx")
    server = Server(folder)
    try:
        ready = server.loaded()
        for case in group:
            answers = ask(server, case) if case.name in ready else {"load": "not ready"}
            for form, got in answers.items():
                counts[form] += 1
                why = wrong(case, got, want[case.name])
                if why:
                    failures.append(f"{case.name}, {form}: {why}")
    finally:
        server.stop()
    return failures


def main(work):
    cases, not_carried = find(work)
    want = references(cases, work)
    cases = [c for c in cases if want[c.name] is not None]
    counts, failures = collections.Counter(), []
    for i in range(0, len(cases), GROUP):
        failures += serve(i, cases[i:i + GROUP], want, work, counts)
    print(f"{len(cases)} cases answered as `cotenant run` does, {len(failures)} wrong;",
          ", ".join(f"{form}: {n}" for form, n in counts.items()))
    print("not carried:", dict(not_carried), "not run:", NOT_RUN, "not served:", NOT_SERVED)
    for f in failures:
        print("FAIL", f)
    assert not failures
    assert not_carried == NOT_CARRIED, not_carried
    assert sum(SUITES.values()) == len(cases) + len(NOT_RUN) + sum(NOT_CARRIED.values())
    for form, n in ASKED.items():
        assert counts[form] >= n, f"{form}: {counts[form]} answers, not {n}"


folder = tempfile.mkdtemp(prefix="onnx-wire-")
try:
    main(folder)
except AssertionError as e:
    sys.exit(f"failed: {e}")
finally:
    shutil.rmtree(folder)
